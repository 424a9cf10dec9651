"""The kind `lines`: what is a status line, what is plain output, and what books nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from supervisor.core.facts import Blocked, Fact, Garbled, Read, Ready, Said, Spent, Spoke, TurnEnded, TurnStarted
from supervisor.core.ledger import Report, Usage
from supervisor.core.spec import KindSpec
from supervisor.kinds.lines import LINES
from supervisor.kinds.lines_talk import LinesConversation
from tests.kinds.drive import SEAT, feed, only, seat, task

USAGE = b'{"fleet":"usage","scope":"call","id":"c1","input":1200,"output":80,"cost":0.0125,"context":41.5}'


@pytest.fixture
def opened() -> LinesConversation:
    conversation = LINES.converse(SEAT)
    conversation.open()
    return conversation


def said(conversation: LinesConversation) -> list[dict[str, object]]:
    return [json.loads(line) for line in conversation.outgoing().splitlines()]


def test_a_program_is_ready_as_soon_as_it_runs() -> None:
    place = seat(session="s-1")
    conversation = LINES.converse(place)
    assert conversation.open() == [Ready("a7", 3, session="s-1")]
    assert conversation.read(b'{"fleet":"ready"}') == []
    assert conversation.read(b'{"fleet":"ready","session":"own","model":"m"}') == [
        Ready("a7", 3, session="own", model="m")
    ]


def test_its_command_is_started_as_it_stands_and_told_who_it_is() -> None:
    place = seat(session="s-1", resume=True, home="/h")
    launch = LINES.launch(KindSpec("mine", "lines", ("mine", "--jsonl")), place)
    assert launch.argv == ("mine", "--jsonl")
    told = {"NAME": "worker", "HOME": "/h", "SESSION": "s-1", "RESUME": "1", "MODEL": ""}
    assert dict(launch.env) == {f"FLEET_{key}": value for key, value in told.items()}


@pytest.mark.parametrize(
    ("line", "last"),
    [
        (b"Reading the notes", "Reading the notes"),
        (b'{"level":"info","fleet":"north"}', '{"level":"info","fleet":"north"}'),
        (b'[{"fleet":"usage"}]', '[{"fleet":"usage"}]'),
        (b'{"fleets":"usage"', '{"fleets":"usage"'),
        (b"\x1b[1;32m10 %\x1b[0m\r\x1b[1;32m20 %\x1b[0m\r", "20 %"),
        (b"caf\xc3\xa9 \xff\xfe", "caf\xe9 \ufffd\ufffd"),
        (b"one\ttwo  three\x07", "one two three"),
    ],
)
def test_plain_output_is_never_garbled(opened: LinesConversation, line: bytes, last: str) -> None:
    assert opened.read(line) == [Spoke("a7", 3, last)]


@pytest.mark.parametrize("line", [b"", b"   ", b"\x1b[0m", b"\r"])
def test_an_empty_line_says_nothing(opened: LinesConversation, line: bytes) -> None:
    assert opened.read(line) == []


def test_each_status_line_is_its_fact(opened: LinesConversation) -> None:
    usage = Usage(input=1200, output=80, calls=1, cost=12_500_000)
    assert opened.read(USAGE) == [Spent("a7", 3, (Report("call", usage, id="c1", context=41.5),))]
    assert opened.read(b' { "fleet" : "status", "text": "half way\\nthere" }\r') == [Spoke("a7", 3, "there")]
    assert opened.read(b'{"fleet":"blocked","on":"person","question":"Merge?"}') == [
        Blocked("a7", 3, on="person", question="Merge?")
    ]
    assert opened.read(b'{"fleet":"done","verdict":"pass","summary":"all green","later":[1]}') == [
        Said("a7", 3, status="done", verdict="pass", summary="all green")
    ]


def test_every_number_of_a_total_is_taken(opened: LinesConversation) -> None:
    numbers = {
        "input": 1,
        "cache_read": 2,
        "cache_write": 3,
        "output": 5,
        "reasoning": 4,
        "calls": 6,
        "cost": 7,
    }
    line = json.dumps({"fleet": "usage", "scope": "total", "epoch": "e", "model": "m", **numbers}).encode()
    usage = Usage(1, 2, 3, 5, 4, 6, 0, 7_000_000_000)
    assert opened.read(line) == [Spent("a7", 3, (Report("total", usage, epoch="e", model="m"),))]


LIES = [
    "-1",
    "-0.5",
    "true",
    "null",
    '"7"',
    "7.0",
    "1e3",
    "9007199254740992",
    "1e999",
    "NaN",
    "Infinity",
    "[]",
]


@pytest.mark.parametrize("number", LIES)
@pytest.mark.parametrize("key", ["input", "cache_read", "cache_write", "output", "reasoning", "calls"])
def test_a_count_that_cannot_be_true_books_nothing(opened: LinesConversation, key: str, number: str) -> None:
    (fact,) = opened.read(f'{{"fleet":"usage","scope":"call","{key}":{number}}}'.encode())
    assert isinstance(fact, Garbled)


@pytest.mark.parametrize("number", ["-0.01", "true", "null", '"1"', "1e999", "NaN", "9007200"])
def test_a_sum_that_cannot_be_true_books_nothing(opened: LinesConversation, number: str) -> None:
    assert only(opened.read(f'{{"fleet":"usage","scope":"call","cost":{number}}}'.encode()), Garbled)


@pytest.mark.parametrize(
    "line",
    [
        b'{"fleet":"usage","scope":"call","input":1',
        b'{"fleet":"usage","scope":"call","input":1}}',
        b'{"fleet":"usage","input":1}',
        b'{"fleet":"usage","scope":"day","input":1}',
        b'{"fleet":"usage","scope":"call","input":1,"input":2}',
        b'{"fleet":"usage","scope":"call","output":1,"reasoning":2}',
        b'{"fleet":"usage","scope":"call","context":101}',
        b'{"fleet":"usage","scope":"call","model":7}',
        b'{"fleet":"usages","scope":"call","input":1}',
        b'{"fleet":7}',
        b'{"fleet":null}',
        b'{"fleet":"status"}',
        b'{"fleet":"turn"}',
        b'{"fleet":"turn","state":"ended","outcome":"fine"}',
        b'{"fleet":"turn","state":"ended","inputs":"m1"}',
        b'{"fleet":"done","summary":["x"]}',
        b'{"fleet":"blocked"}',
        b'{"fleet":"status","text":"\xff"}',
        b'{"fleet":' + b"[" * 100_000,
    ],
)
def test_a_line_of_ours_that_cannot_be_taken_is_garbled(opened: LinesConversation, line: bytes) -> None:
    (fact,) = opened.read(line)
    assert isinstance(fact, Garbled)
    assert (fact.lines, fact.bytes) == (1, len(line))
    assert fact.why


def test_text_that_no_file_can_hold_is_replaced(opened: LinesConversation) -> None:
    (fact,) = only(opened.read(b'{"fleet":"done","summary":"a\\ud800b"}'), Said)
    assert fact.summary == "a?b"


@given(st.binary(max_size=300), st.integers(0, 4))
def test_no_line_raises_and_no_torn_line_books(noise: bytes, kind: int) -> None:
    conversation = LINES.converse(SEAT)
    line = [noise, b'{"fleet":' + noise, USAGE[: len(noise)], USAGE[:-1] + noise, USAGE + noise][kind]
    facts = conversation.read(line.replace(b"\n", b" "))
    assert not only(facts, Spent) or line.replace(b"\n", b" ").strip(b" \t\r") == USAGE or kind == 3


def test_a_stream_cut_anywhere_books_its_complete_lines() -> None:
    for cut in range(2 * len(USAGE) + 2):
        spent = only(feed(LINES.converse(SEAT), (USAGE + b"\n" + USAGE + b"\n")[:cut]), Spent)
        assert len(spent) == (cut >= len(USAGE)) + (cut >= 2 * len(USAGE) + 1)


def test_a_program_reads_its_texts_unchanged_and_is_introduced_once(opened: LinesConversation) -> None:
    opened.hand((task("one\n\u2028\ud800"), task("two", "m2")), "You are worker (a7).")
    first, second = said(opened)
    you = first.pop("you")
    assert first == {"fleet": "task", "id": "m1", "text": "one\n\u2028\ud800", "by": "operator"}
    assert isinstance(you, dict)
    assert (you["id"], you["name"], you["words"]) == ("a7", "worker", "You are worker (a7).")
    assert second == {"fleet": "task", "id": "m2", "text": "two", "by": "operator"}


def test_an_interruption_is_a_line_and_the_end_of_stdin_is_the_polite_stop(opened: LinesConversation) -> None:
    opened.interrupt()
    opened.close()
    assert said(opened) == [{"fleet": "interrupt"}]


def turn(state: str, **more: object) -> bytes:
    return json.dumps({"fleet": "turn", "state": state, **more}).encode()


def test_a_turn_begins_and_ends_once(opened: LinesConversation) -> None:
    opened.hand((task("go"),), "")
    facts: list[Fact] = []
    for line in (turn("started"), turn("started"), turn("ended", text="Done."), turn("ended", text="Again.")):
        facts += opened.read(line)
    assert facts == [TurnStarted("a7", 3), TurnEnded("a7", 3, "ok", text="Done.")]


def test_a_text_that_meets_the_end_of_a_turn_carries_the_turn_on(opened: LinesConversation) -> None:
    opened.hand((task("one"),), "")
    opened.read(turn("started"))
    opened.hand((task("two", "m2"),), "")
    facts = opened.read(turn("ended", inputs=["m1"], text="First."))
    facts += opened.read(turn("started")) + opened.read(turn("ended", inputs=["m2"], text="Second."))
    assert facts == [TurnEnded("a7", 3, "ok", text="Second.")]


def test_what_it_begins_with_is_known_of_a_program_that_says_so(opened: LinesConversation) -> None:
    (ready,) = opened.read(b'{"fleet":"ready","session":"s","turns":true}')
    assert ready == Ready("a7", 3, session="s", tells=True)
    opened.hand((task("one"), task("two", "m2")), "")
    assert opened.read(turn("started", inputs=["m1"])) == [Read("a7", 3, ("m1",)), TurnStarted("a7", 3)]
    assert opened.read(turn("started", inputs=["m1", "m9"])) == [], "it was begun with, and another was never given"
    assert opened.read(turn("started")) == [Read("a7", 3, ("m2",))], "all of them, where none is named"


def test_whether_it_tells_is_true_or_false(opened: LinesConversation) -> None:
    assert only(opened.read(b'{"fleet":"ready","turns":1}'), Garbled)


def test_a_text_that_was_given_before_is_marked(opened: LinesConversation) -> None:
    opened.hand((task("one"), evolve(task("two", "m2"), again=True)), "")
    assert [message.get("again") for message in said(opened)] == [None, True]


def test_done_ends_the_turn_of_a_program_that_tells_no_turns(opened: LinesConversation) -> None:
    opened.hand((task("go"),), "")
    facts = opened.read(b'{"fleet":"done","summary":"all green"}')
    assert only(facts, TurnEnded) == [TurnEnded("a7", 3, "ok", text="all green")]
    assert not only(opened.read(b'{"fleet":"done"}'), TurnEnded)


def test_done_leaves_the_turn_to_a_program_that_tells_its_turns(opened: LinesConversation) -> None:
    opened.hand((task("go"),), "")
    opened.read(turn("started"))
    assert not only(opened.read(b'{"fleet":"done"}'), TurnEnded)


def test_a_huge_plain_line_costs_no_decoding(opened: LinesConversation) -> None:
    (fact,) = only(opened.read(b"x" * 4_000_000), Spoke)
    assert len(fact.last) == 200


def test_the_examples_of_the_documentation_are_taken(opened: LinesConversation) -> None:
    text = (Path(__file__).parents[2] / "docs" / "status-lines.md").read_text()
    lines = [line for line in text.splitlines() if line.startswith('{"fleet"')]
    ours = {"brief", "task", "digest", "answer", "interrupt"}
    from_program = [line for line in lines if json.loads(line)["fleet"] not in ours]
    assert len(from_program) >= 7
    for line in from_program:
        assert not only(opened.read(line.encode()), Garbled), line
