"""Status lines of a program that asks a person, and of one that does one task and ends."""

from __future__ import annotations

import json

import pytest

from supervisor.core.asking import PROMPTS
from supervisor.core.facts import Blocked, Fact, Garbled, TurnEnded, Withdrawn
from supervisor.kinds.lines import LINES
from supervisor.kinds.lines_talk import LinesConversation
from tests.kinds.drive import SEAT, seat, task


@pytest.fixture
def opened() -> LinesConversation:
    conversation = LINES.converse(SEAT)
    conversation.open()
    return conversation


def say(conversation: LinesConversation, word: str, **more: object) -> list[Fact]:
    return conversation.read(json.dumps({"fleet": word, **more}).encode())


def ask(conversation: LinesConversation, name: str) -> list[Fact]:
    return say(conversation, "blocked", on="person", question="May I?", prompt=name)


def heard(conversation: LinesConversation) -> list[dict[str, object]]:
    return [json.loads(line) for line in conversation.outgoing().splitlines()]


def test_a_prompt_is_asked_and_answered_once(opened: LinesConversation) -> None:
    assert ask(opened, "p1") == [Blocked("a7", 3, "person", "May I?", "p1")]
    opened.answer("p1", allow=False, text="No.")
    opened.answer("p1", allow=True)
    opened.answer("p9", allow=True)
    assert heard(opened) == [{"fleet": "answer", "prompt": "p1", "allow": False, "text": "No."}]
    assert ask(opened, "p1") == [Blocked("a7", 3, "person", "May I?", "p1")], "the same id may ask again"


def test_a_prompt_is_taken_back_and_the_end_of_the_turn_takes_all_back(opened: LinesConversation) -> None:
    opened.hand((task("Go."),), "")
    ask(opened, "p1")
    ask(opened, "p2")
    assert say(opened, "withdrawn", prompt="p1") == [Withdrawn("a7", 3, "p1")]
    assert say(opened, "withdrawn", prompt="p1") == [], "it is gone already"
    assert isinstance(say(opened, "turn", state="ended")[0], TurnEnded)
    heard(opened)
    opened.answer("p2", allow=True)
    assert heard(opened) == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ({"fleet": "blocked", "on": "lead", "prompt": "p2"}, "for a person"),
        ({"fleet": "blocked", "on": "person", "prompt": "p1"}, "up already"),
        ({"fleet": "blocked", "on": "person", "prompt": 7}, "prompt"),
        ({"fleet": "withdrawn"}, "`prompt` is missing"),
    ],
)
def test_a_prompt_that_cannot_be_is_garbled(opened: LinesConversation, line: dict[str, object], why: str) -> None:
    ask(opened, "p1")
    (fact,) = opened.read(json.dumps(line).encode())
    assert isinstance(fact, Garbled)
    assert why in fact.why


def test_more_prompts_than_anyone_answers_are_garbled(opened: LinesConversation) -> None:
    for number in range(PROMPTS):
        ask(opened, f"p{number}")
    assert isinstance(ask(opened, "one-more")[0], Garbled)


def test_the_stdin_of_one_that_does_one_task_ends_after_its_texts() -> None:
    conversation = LINES.converse(seat(once=True))
    conversation.open()
    before = conversation.finished
    conversation.hand((task("Go."),), "")
    assert (before, conversation.finished) == (False, True)
    assert heard(conversation)[0]["text"] == "Go."
    assert isinstance(ask(conversation, "p1")[0], Garbled), "no answer could come"
    assert not LINES.converse(SEAT).finished
