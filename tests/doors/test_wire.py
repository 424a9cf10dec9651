"""The wire reads every well-formed request, names what is wrong with every other, and holds bounded memory."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.doors import wire


def _line(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tree"} | members).encode()


def _problem(line: bytes) -> wire.WireError:
    with pytest.raises(wire.WireError) as caught:
        wire.parse(line)
    return caught.value


def _read(line: bytes) -> wire.Request | wire.WireError:
    try:
        return wire.parse(line)
    except wire.WireError as problem:
        return problem


# --- lines


@given(st.binary(max_size=4000), st.lists(st.integers(1, 50), max_size=60), st.integers(1, 64))
def test_lines_do_not_depend_on_how_the_bytes_were_cut(data: bytes, cuts: list[int], limit: int) -> None:
    whole = wire.Splitter(limit).feed(data)
    splitter, cut, at = wire.Splitter(limit), [], 0
    for size in cuts:
        cut += splitter.feed(data[at : at + size])
        at += size
    cut += splitter.feed(data[at:])
    assert cut == whole


@given(st.lists(st.binary(min_size=1, max_size=30).filter(lambda line: b"\n" not in line and bool(line.strip()))))
def test_every_line_comes_out_once_and_whole(lines: list[bytes]) -> None:
    assert wire.Splitter().feed(b"".join(line + b"\n" for line in lines)) == lines


def test_an_endless_line_is_reported_once_and_never_held() -> None:
    splitter = wire.Splitter(1000)
    reports: list[bytes | None] = []
    most = 0
    for _ in range(5000):
        reports += splitter.feed(b"x" * 4096)
        most = max(most, splitter.held)
    assert reports == [None]
    assert most <= 1000
    assert splitter.feed(b"\nnext\n") == [b"next"]


def test_a_line_of_exactly_the_limit_is_taken_and_one_byte_more_is_not() -> None:
    assert wire.Splitter(5).feed(b"12345\n123456\n1\n") == [b"12345", None, b"1"]


def test_blank_lines_are_nothing() -> None:
    assert wire.Splitter().feed(b"\n \r\n\t\n") == []


# --- requests


def test_a_request_reads_as_it_was_written() -> None:
    line = wire.request("r-1", "fork", {"task": "schreibe \u00fc\u2028", "tokens": 300000, "wall": 1.5, "wait": True})
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert wire.parse(line[:-1]) == wire.Request(
        "r-1", "fork", {"task": "schreibe \u00fc\u2028", "tokens": 300000, "wall": 1.5, "wait": True}
    )


def test_a_long_text_full_of_brackets_and_quotes_is_taken() -> None:
    text = '[agents."x"]\n{a, [b]} \\ \u2028' * 20_000
    assert wire.parse(_line(params={"content": text})).params["content"] == text


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b'{"a":"' + b'\\",' * 200_000,
        b"nonsense",
        b'{"jsonrpc":"2.0","id":1,"method":"tree"} x',
        b"\xff\xfe",
        b'{"jsonrpc":"2.0","id":1,"method":"\xc3"}',
        b"\xef\xbb\xbf" + _line(),
        b"[" * 9000,
        b'{"a":' * 9000 + b"1" + b"}" * 9000,
        b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tree","params":{"a\\uDC01":1}}',
    ],
)
def test_what_is_no_json_text_is_a_parse_error_without_an_id(line: bytes) -> None:
    assert (_problem(line).code, _problem(line).id) == (wire.PARSE, None)


@pytest.mark.parametrize(
    "line",
    [
        b"1",
        b'"tree"',
        b"null",
        b"[" + _line() + b"]",
        b"[]",
        b"[" + b"[]," * 300_000 + b"[]]",
        b'{"jsonrpc":"2.0","id":1,"method":"tree","params":{"a":[' + b"1," * 300_000 + b"1]}}",
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tree","method":"shutdown"}',
        b'{"jsonrpc":"2.0","id":1,"method":"stop","params":{"agent":"a1","agent":"a2"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"fork","params":{"tokens":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"fork","params":{"wall":-Infinity}}',
        b'{"jsonrpc":"2.0","id":1,"method":"fork","params":{"wall":1e999}}',
        b'{"jsonrpc":"2.0","id":1,"method":"fork","params":{"tokens":' + b"9" * 500_000 + b"}}",
        b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"tree"}',
    ],
)
def test_json_that_is_no_single_request_is_invalid(line: bytes) -> None:
    assert _problem(line).code == wire.INVALID


@pytest.mark.parametrize("ident", [None, True, 1.5, [], {}, "x" * 257])
def test_an_id_is_an_integer_or_a_short_string(ident: object) -> None:
    problem = _problem(_line(id=ident))
    assert (problem.code, problem.id) == (wire.INVALID, None)


def test_a_notification_is_refused_because_every_verb_answers() -> None:
    assert _problem(b'{"jsonrpc":"2.0","method":"tree"}').code == wire.INVALID


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"jsonrpc": "1.0"}, wire.INVALID),
        ({"jsonrpc": 2.0}, wire.INVALID),
        ({"method": 7}, wire.INVALID),
        ({"params": "x"}, wire.INVALID),
        ({"params": None}, wire.INVALID),
        ({"params": ["lead"]}, wire.PARAMS),
        ({"parms": {}}, wire.INVALID),
        ({"principal": "operator"}, wire.INVALID),
    ],
)
def test_a_wrong_member_is_named_under_the_requests_own_id(members: dict[str, object], code: int) -> None:
    problem = _problem(_line(**members, id="mine"))
    assert (problem.code, problem.id) == (code, "mine")


@given(st.binary(max_size=300))
def test_any_bytes_are_a_request_or_one_clear_error(line: bytes) -> None:
    read = _read(line)
    if isinstance(read, wire.WireError):
        assert read.code in (wire.PARSE, wire.INVALID, wire.PARAMS)
        assert wire.failed(read.id, read).count(b"\n") == 1


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "jsonrpc": st.just("2.0") | _JSON,
            "id": st.integers() | _JSON,
            "method": st.text() | _JSON,
            "params": _JSON,
            "more": _JSON,
        },
    )
)
def test_any_object_is_a_request_or_one_clear_error(value: dict[str, object]) -> None:
    read = _read(json.dumps(value).encode())
    if isinstance(read, wire.WireError):
        assert read.code in (wire.PARSE, wire.INVALID, wire.PARAMS)
    else:
        assert value["jsonrpc"] == "2.0"
        assert (read.id, read.method) == (value["id"], value["method"])
        assert type(read.id) in (int, str)


# --- answers


@given(st.integers() | st.text(max_size=20), _JSON)
def test_an_answer_is_one_line_that_its_client_reads_back(ident: int | str, value: object) -> None:
    try:
        line = wire.result(ident, value)
    except ValueError:
        return  # not a number, or infinite: nothing that JSON can say
    assert line.count(b"\n") == 1
    try:
        reply = wire.reply(line[:-1])
    except wire.WireError as problem:
        reply = wire.Failure(None, problem)  # a number too long to take from anyone
    if isinstance(reply, wire.Failure):
        assert "digits" in reply.error.message
    else:
        assert isinstance(reply, wire.Result)
        assert reply.id == ident


def test_a_byte_that_was_no_utf8_does_not_cost_the_answer() -> None:
    reply = wire.reply(wire.result(1, {"last": "caf\udce9"}))
    assert reply == wire.Result(1, {"last": "caf?"})


def test_a_refusal_keeps_its_fields_on_the_way() -> None:
    reply = wire.reply(wire.error(4, wire.REFUSED, "no", {"code": "budget", "asked": 5, "held": 3, "used": None}))
    assert isinstance(reply, wire.Failure)
    assert (reply.id, reply.error.code, reply.error.message) == (4, wire.REFUSED, "no")
    assert reply.error.data == {"code": "budget", "asked": 5, "held": 3, "used": None}


def test_a_notification_is_told_from_an_answer() -> None:
    assert wire.reply(wire.notification("logs", {"line": "x"})) == wire.Notification("logs", {"line": "x"})


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"[]", b'{"jsonrpc":"2.0","id":1}', b'{"jsonrpc":"2.0","id":[],"result":1}']
)
def test_what_is_no_answer_is_said_so(line: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.reply(line)
