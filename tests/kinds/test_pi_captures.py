"""Recorded streams of pi: what is made of them beside their books, which tests/captures holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from supervisor.core.facts import Ready, Spoke, TurnEnded, TurnStarted
from supervisor.kinds.pi import PI
from tests.kinds.drive import SEAT, context, feed, only, task

CAPTURES = Path(__file__).parents[1] / "captures" / "pi"


def capture(name: str) -> bytes:
    return (CAPTURES / f"{name}.jsonl").read_bytes()


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
