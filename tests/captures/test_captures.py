"""Every recorded stream of every kind: booked to the token, whole, doubled, with strange lines and fields in it, and
cut wherever a program may die."""

from __future__ import annotations

import io
import json
import re
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.ctl import recorded
from supervisor.kinds.table import KINDS
from tests.captures.expected import CASES, EXPECTED, HERE, NUMBERS, bill, books, check, data, shown

STRANGE = b'{"type":"new_thing","usage":{"input":9,"input_tokens":9,"output_tokens":9},"id":"x"}\n'
#: Lines that tell the usage of one call.
CALLS = {
    "pi": re.compile(rb'\{"type":"message_end","message":\{"role":"assistant".*"totalTokens":[1-9]'),
    "opencode": re.compile(rb'\{"type":"step_finish"'),
    "codex": re.compile(rb'.*"method":"thread/tokenUsage/updated"'),
}


def test_every_capture_is_expected_to_be_something() -> None:
    assert {f"{path.parent.name}/{path.stem}" for path in HERE.glob("*/*.jsonl")} == EXPECTED.keys()
    assert {name.partition("/")[0] for name in CASES} == KINDS.keys() - {"lines", "scripted"}, (
        "a kind joins by being there"
    )


@pytest.mark.parametrize("name", CASES)
def test_a_stream_is_booked_as_it_was_billed(name: str) -> None:
    assert check(name, shown(books(name, data(name)))) == []


@pytest.mark.parametrize("name", CASES)
def test_doubled_lines_are_booked_once(name: str) -> None:
    doubled = b"\n".join(b"\n".join((line, line)) for line in data(name).splitlines())
    doubled += b"\n" * data(name).endswith(b"\n")
    once, twice = shown(books(name, data(name))), shown(books(name, doubled))
    assert {*twice.pop("errors")} == {*once.pop("errors")}
    assert twice == once


@pytest.mark.parametrize("name", CASES)
def test_lines_and_fields_that_nobody_knows_change_nothing(name: str) -> None:
    lines = data(name).removesuffix(b"\n").split(b"\n")
    mixed = b"".join(STRANGE + _with_a_field(line + b"\n") + STRANGE for line in lines)
    assert shown(books(name, mixed)) == shown(books(name, data(name)))


def test_an_object_over_many_lines_is_whole_without_a_last_newline_and_torn_without_its_bracket() -> None:
    whole = data("gemini/p_json")
    assert whole.endswith(b"\n}")
    assert not books("gemini/p_json", whole).incomplete
    assert all(books("gemini/p_json", whole[:cut]).incomplete for cut in range(3, len(whole)))


def _with_a_field(line: bytes) -> bytes:
    """The same object with something more in it, behind what is there."""
    if not (line.startswith(b"{") and line.endswith(b"}\n")) or line == b"{}\n":
        return line
    return line[:-2] + b',"fleet_unknown":{"usage":{"input":5}}}\n'


@pytest.mark.parametrize("name", CASES)
def test_a_stream_that_is_cut_between_lines_books_what_stands_before_and_says_what_is_missing(name: str) -> None:
    """What is booked only grows; where more of a turn would come, it is said to be incomplete."""
    ends = [0, *accumulate(len(line) for line in data(name).splitlines(keepends=True))]
    cuts = [shown(books(name, data(name)[:end])) for end in ends]
    for number, cut in enumerate(cuts):
        assert all(cut[key] <= later[key] for key in (*NUMBERS, "calls", "turns") for later in cuts[number + 1 :]), (
            number
        )
        after = next((later for later in cuts[number:] if later["input"] != cut["input"]), None)
        if after is not None and after["turns"] == cut["turns"]:
            assert cut["incomplete"], f"after line {number}"


@pytest.mark.parametrize("name", [name for name in CASES if data(name) and not data(name).startswith(b"{\n")])
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_stream_that_is_cut_in_a_line_books_the_lines_before(name: str, draw: st.DataObject) -> None:
    printed = data(name)
    cut = draw.draw(st.integers(1, len(printed) - 1).filter(lambda at: printed[at - 1 : at] != b"\n"))
    torn = shown(books(name, printed[:cut]))
    assert torn["incomplete"]
    before = printed.rfind(b"\n", 0, cut) + 1
    # Without its end the last line may be whole all the same: then it says what it says.
    whole = printed[cut : cut + 1] == b"\n"
    same = shown(books(name, printed[: cut + 1] if whole else printed[:before]))
    # By its beginning it may show that a call began, of which nothing is known.
    assert torn | {"incomplete": True, "unsaid": 0} == same | {"incomplete": True, "unsaid": 0}


@pytest.mark.parametrize(
    "name", [name for name in CASES if name.partition("/")[0] in CALLS and "unsaid" not in EXPECTED[name]]
)
def test_each_line_of_a_call_is_booked_when_it_is_there(name: str) -> None:
    lines, at, seen = data(name).splitlines(keepends=True), 0, 0
    for line in lines:
        at += len(line)
        if CALLS[name.partition("/")[0]].match(line):
            seen += 1
            got = shown(books(name, data(name)[:at]))
            assert {key: got[key] for key in NUMBERS} == bill(name, seen)


@pytest.mark.parametrize("kind", sorted(KINDS))
@given(
    noise=st.lists(st.one_of(st.binary(max_size=60), st.sampled_from([b"{}", b"[]", b"null", b'{"type":1}', b"\xff{"])))
)
def test_noise_is_nothing_and_raises_nothing(kind: str, noise: list[bytes]) -> None:
    told = recorded.read(KINDS[kind], io.BytesIO(b"\n".join(noise)))
    assert recorded.booked(KINDS[kind], [told], []).spent.tokens == 0


def test_expectations_are_what_the_model_billed() -> None:
    """Spelt out once, by hand."""
    assert bill("claude/stream_session") == {
        "input": 4600, "cache_read": 860, "cache_write": 126, "output": 166, "reasoning": 0,
    }  # fmt: skip
    assert bill("codex/appserver_session") == {
        "input": 4040 - 640, "cache_read": 640, "cache_write": 0, "output": 124, "reasoning": 21,
    }  # fmt: skip
    assert bill("qwen/stream_session")["input"] == 8410 - 1310
    assert bill("opencode/run_tool")["output"] == 67 + 14
    assert json.dumps(EXPECTED["pi/json_tool"]) == '{"calls": [0, 1], "turns": 1}'
