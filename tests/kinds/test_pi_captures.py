"""Recorded streams of pi: what is booked of them, whole, doubled, cut and with strange lines between."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from supervisor.core.facts import Garbled, Ready, Spoke, TurnEnded, TurnStarted
from supervisor.core.ledger import Usage
from supervisor.kinds.pi import PI
from tests.kinds.drive import SEAT, booked, context, feed, only, task

CAPTURES = Path(__file__).parent / "captures" / "pi"
BILLS = {
    "json_ok": Usage(input=1000, cache_read=200, output=40, reasoning=7, calls=1, cost=1_100_000),
    "json_tool": Usage(input=2100, cache_read=410, output=81, reasoning=14, calls=2, cost=2_303_000),
    "rpc_session": Usage(input=4600, cache_read=860, output=166, reasoning=28, calls=4, cost=5_018_000),
    "rpc_err500": Usage(),
    "rpc_abort_stream": Usage(),
    "rpc_eof_midturn": Usage(input=1000, cache_read=200, output=40, reasoning=7, calls=1, cost=1_100_000),
    "nologin_rpc": Usage(),
}


def capture(name: str) -> bytes:
    return (CAPTURES / f"{name}.jsonl").read_bytes()


@pytest.mark.parametrize("name", BILLS)
def test_a_stream_is_booked_as_it_was_billed(name: str) -> None:
    assert booked(feed(PI.converse(SEAT), capture(name))) == BILLS[name]


@pytest.mark.parametrize("name", BILLS)
def test_doubled_lines_are_booked_once(name: str) -> None:
    doubled = b"\n".join(line + b"\n" + line for line in capture(name).splitlines())
    assert booked(feed(PI.converse(SEAT), doubled)) == BILLS[name]


@pytest.mark.parametrize("name", BILLS)
def test_lines_of_unknown_types_change_nothing(name: str) -> None:
    strange = b'\n{"type":"new_thing","usage":{"input":9}}\n{"added":1,"type":"other_new_thing"}\n'
    mixed = strange.join(capture(name).splitlines())
    facts = feed(PI.converse(SEAT), mixed)
    assert booked(facts) == BILLS[name]
    assert only(facts, Garbled) == only(feed(PI.converse(SEAT), capture(name)), Garbled)


@pytest.mark.parametrize("name", ["json_tool", "rpc_session"])
def test_a_stream_cut_anywhere_books_its_complete_usage_lines(name: str) -> None:
    data = capture(name)
    ends = [0]
    for line in data.splitlines(keepends=True):
        ends.append(ends[-1] + len(line))
    for before, end in pairwise(ends):
        whole = booked(feed(PI.converse(SEAT), data[:before]))
        for cut in {before + 1, (before + end) // 2, end - 2}:
            torn = feed(PI.converse(SEAT), data[:cut])
            assert booked(torn) == whole, f"cut at byte {cut}"


def test_a_session_is_told_by_its_turns() -> None:
    facts = feed(PI.converse(SEAT), capture("rpc_session"))
    assert only(facts, Ready) == [
        Ready("a7", 3, session="01a22dc0-5552-7617-a550-932b4fcdac90", model="fake/fake-model", fresh=True, tells=True)
    ]
    assert len(only(facts, TurnStarted)) == 2
    assert [(end.outcome, end.text) for end in only(facts, TurnEnded)] == [
        ("ok", "Hello from the fake model."),
        ("ok", "Hello from the fake model."),
    ]
    assert context(facts) == pytest.approx(1.573)
    assert "bash: sleep 2; echo done" in [line.last for line in only(facts, Spoke)]


def test_retries_are_one_turn_that_ends_in_error() -> None:
    facts = feed(PI.converse(SEAT), capture("rpc_err500"))
    assert len(only(facts, TurnStarted)) == 1
    (end,) = only(facts, TurnEnded)
    assert end.outcome == "error"
    assert "scripted failure 500" in end.error
    assert any(line.last.startswith("retry 2 of 3 in 4s: 500") for line in only(facts, Spoke))


def test_an_interrupted_turn_ends_as_aborted() -> None:
    (end,) = only(feed(PI.converse(SEAT), capture("rpc_abort_stream")), TurnEnded)
    assert (end.outcome, end.text) == ("aborted", "tick 1")


def test_a_refused_text_ends_its_turn_so_that_nothing_hangs() -> None:
    conversation = PI.converse(SEAT)
    conversation.open()
    conversation.hand((task("hi"),), "")
    refusal = capture("nologin_rpc").replace(b'"p1"', b'"fleet-2"')
    (end,) = only(conversation.read(refusal.strip()), TurnEnded)
    assert end.outcome == "error"
    assert end.error.startswith("No API key found for the selected model.")
