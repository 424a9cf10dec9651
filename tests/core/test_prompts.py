"""What a program asks a person: approve and deny answer exactly one prompt, and only while it is up."""

from __future__ import annotations

import pytest

from supervisor.core import asking, facts, view
from supervisor.core.facts import Fact
from supervisor.core.requests import Approve, Deny, Fork, Instruct, Restarting, Stop
from tests.core.play import EVENT, Play, agent, fleet


def asked(*names: str, **more: object) -> Play:
    """`kid` under `lead`, in a turn, in which it asks these."""
    play = Play(fleet(agent("lead")))
    play.ready("lead")
    play.facts(Fork(kind="lines", name="kid", parent="lead", task="Go.", **more))  # type: ignore[arg-type]  # fields of Fork
    play.ready("kid")
    for name in names:
        ask(play, name)
    return play


def ask(play: Play, name: str, question: str = "Delete it?") -> list[Fact]:
    """The program asks."""
    node = play.node("kid")
    return play.tell(facts.Blocked(node.id, node.run, "person", question, name))


def told(taken: list[Fact]) -> list[str]:
    """What the parent was told."""
    return [fact.input.text.removeprefix(EVENT) for fact in taken if isinstance(fact, facts.Queued)]


def shown(play: Play) -> tuple[str, object, str]:
    """What the tree shows of it."""
    one = view.agent(play.project, play.node("kid"), 0.0)
    return one["state"], one["prompt"], one["waiting_on"]


def test_a_prompt_is_shown_with_its_question_and_the_parent_is_told_once() -> None:
    play = asked()
    taken = ask(play, "p1", "May I\ndelete it?")
    assert shown(play) == ("waiting", {"id": "p1", "question": "May I\ndelete it?"}, "person")
    assert told(taken) == ["kid (a2) waits for a person to approve or deny: May I delete it? (prompt p1)"]
    assert play.node("lead").state == "working", "it is woken: it waits for one that would wait for ever"
    assert told(ask(play, "p1")) == []


@pytest.mark.parametrize("allow", [True, False])
def test_an_answer_goes_to_the_program_and_its_turn_goes_on(allow: bool) -> None:
    play = asked("p1")
    said = play.facts(Approve("kid")) if allow else play.facts(Deny("kid", "p1", "Not now."))
    assert said == [facts.Answered("a2", 1, "p1", allow, "" if allow else "Not now.")]
    assert shown(play) == ("working", None, "")
    assert play.node("kid").task is not None
    assert play.end_turn("kid", "Well.")[1:2] == [facts.TaskEnded("a2", "done", "Well.")]


def test_what_is_gone_is_refused_and_what_is_up_now_is_named() -> None:
    play = asked("p1")
    play.tell(facts.Withdrawn("a2", 1, "p1"))
    assert shown(play) == ("working", None, "")
    ask(play, "p2", "Push it?")
    no = play.refused(Approve("kid", "p1"))
    assert (no.code, no.field, no.asked, no.held) == ("state", "prompt", "p1", "p2")
    assert no.message == "kid does not ask 'p1' any more, if it ever did. Up now: p2: Push it?"
    assert shown(play)[0] == "waiting"
    play.facts(Approve("kid", "p2"))
    no = play.refused(Deny("kid", "p2"))
    assert (no.code, no.held) == ("state", None)
    assert no.message == "kid asks nothing now that approve or deny would answer"


def test_a_question_that_is_taken_back_ends_with_its_turn() -> None:
    play = asked("")
    assert play.node("kid").asks
    play.tell(facts.Withdrawn("a2", 1, ""))
    assert shown(play) == ("working", None, "")
    assert not play.node("kid").asks
    assert play.end_turn("kid", "Well.")[1:2] == [facts.TaskEnded("a2", "done", "Well.")]


def test_of_several_prompts_one_must_be_named_and_the_others_stay_up() -> None:
    play = asked("p1", "p2")
    no = play.refused(Approve("kid"))
    assert no.message == "kid asks more than one thing; name the prompt. Up now: p1: Delete it?; p2: Delete it?"
    play.facts(Deny("kid", "p1"))
    assert shown(play) == ("waiting", {"id": "p2", "question": "Delete it?"}, "person")
    play.facts(Approve("kid", "p2"))
    assert shown(play)[0] == "working"


def test_an_agent_answers_nobodys_prompts() -> None:
    play = asked("p1")
    for by in ("lead", "kid"):
        assert play.refused(Approve("kid"), play.by(by)).code == "authority"
        assert play.refused(Deny("kid"), play.by(by)).code == "authority"


def test_a_text_does_not_answer_a_prompt_and_waits() -> None:
    play = asked("p1")
    assert play.facts(Instruct("kid", "Yes."))[1:] == []
    assert play.facts(Approve("kid"))[1:] == []
    ended = play.end_turn("kid", "Well.")
    assert [fact for fact in ended if isinstance(fact, facts.Handed) and fact.agent == "a2"] != []


def test_a_question_that_a_text_answers_is_not_approved_and_the_refusal_says_how() -> None:
    play = asked()
    play.tell(facts.Blocked("a2", 1, "person", "Which one?"))
    assert shown(play) == ("waiting", None, "person")
    assert play.refused(Approve("kid")).message.endswith(
        "; its question is answered by a text: supervisorctl instruct kid TEXT"
    )
    ask(play, "p1")
    play.facts(Approve("kid"))
    assert shown(play) == ("waiting", None, "person"), "it still asks the other thing"
    play.facts(Instruct("kid", "That one."))
    assert shown(play) == ("working", None, "")


def test_the_end_of_a_turn_withdraws_what_it_asked() -> None:
    play = asked("p1", "p2")
    taken = play.end_turn("kid", "I gave it up.")
    assert [fact.prompt for fact in taken if isinstance(fact, facts.Withdrawn)] == ["p1", "p2"]
    assert (shown(play)[0], play.node("kid").tasks) == ("standing", 1)
    assert play.refused(Approve("kid", "p1")).code == "state"


@pytest.mark.parametrize("restart", ["never", "on-failure"])
def test_the_end_of_a_run_withdraws_what_it_asked(restart: str) -> None:
    play = asked("p1", restart=restart)
    play.exit("kid", 1)
    node = play.node("a2")
    assert (node.prompts, node.state) == ({}, "gone" if restart == "never" else "backoff")
    assert play.refused(Approve("a2", "p1")).code == "state"


def test_a_stop_a_restart_and_a_death_of_the_daemon_withdraw_what_it_asked() -> None:
    for end in (Stop("kid"), Restarting("kid")):
        play = asked("p1")
        play.facts(end)
        assert play.refused(Approve("kid")).code == "state"
        assert play.tell(facts.Withdrawn("a2", 1, "p1"))[1:] == []
    play = asked("p1")
    play.reopen()
    assert play.refused(Approve("kid")).code == "state"


def test_one_that_asks_before_it_is_ready_waits_and_takes_its_task_after_the_answer() -> None:
    play = Play(fleet(agent("lead")))
    play.ready("lead")
    play.facts(Fork(kind="lines", name="kid", parent="lead", task="Go."))
    play.tell(facts.Started("a2", 1, 100, 1))
    ask(play, "trust", "Do you trust this directory?")
    assert shown(play) == ("waiting", {"id": "trust", "question": "Do you trust this directory?"}, "person")
    play.facts(Approve("kid"))
    assert shown(play)[0] == "starting"
    ready = play.tell(facts.Ready("a2", 1, "s"))
    assert [fact for fact in ready if isinstance(fact, facts.Handed)] != []
    play = Play(fleet(agent("kid", task="Go.")))
    play.tell(facts.Started("a1", 1, 100, 1))
    play.tell(facts.Blocked("a1", 1, "person", "Trust?", "trust"))
    assert play.tell(facts.Ready("a1", 1, "s"))[1:] == [], "ready, and it asks still"
    assert play.node("kid").state == "waiting"
    (_, handed) = play.facts(Approve("kid"))
    assert isinstance(handed, facts.Handed)


def test_a_program_that_asks_without_end_fills_nothing() -> None:
    play = asked(*(f"p{number}" for number in range(asking.PROMPTS + 5)))
    assert len(play.node("kid").prompts) == asking.PROMPTS
    ask(play, "long", "x" * 100_000)
    assert all(len(question) <= asking.QUESTION for question in play.node("kid").prompts.values())


def test_a_prompt_of_a_run_that_is_over_asks_nobody() -> None:
    play = asked(restart="on-failure")
    play.exit("kid", 1)
    play.due("kid")
    assert play.tell(facts.Blocked("a2", 1, "person", "May I?", "p1"))[1:] == []
    assert play.node("kid").prompts == {}


def test_what_is_asked_by_a_run_that_is_being_ended_asks_nobody() -> None:
    play = asked()
    play.facts(Restarting("kid"))
    assert ask(play, "p1")[1:] == []
    assert (play.node("kid").state, play.node("kid").prompts) == ("starting", {})
