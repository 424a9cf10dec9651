"""Silence in a turn ends a run only where its file says so, and is a failure then."""

from __future__ import annotations

import pytest

from supervisor.core import facts, view
from supervisor.core.facts import Fact
from supervisor.core.requests import Instruct
from tests.core.play import EVENT, OPERATOR, Play, agent, fleet


def working(**more: object) -> Play:
    """`kid` under `lead`, in a turn."""
    play = Play(fleet(agent("lead", agent("kid", task="Go.", **more))))  # type: ignore[arg-type]  # fields of Spec
    play.ready("lead", "kid")
    return play


def silent(play: Play, seconds: float = 1800.0) -> list[Fact]:
    return play.tell(facts.Silent("a2", 1, seconds))


@pytest.mark.parametrize("most", [0.0, 1800.5])
def test_nothing_is_ended_for_a_silence_that_it_may_keep(most: float) -> None:
    play = working(quiet_kill=most)
    assert silent(play) == []
    assert play.node("kid").state == "working"


@pytest.mark.parametrize("state", ["standing", "waiting", "prompt"])
def test_only_a_turn_is_silent_for_too_long(state: str) -> None:
    play = working(quiet_kill=60.0)
    if state == "standing":
        play.end_turn("kid")
    else:
        play.tell(facts.Blocked("a2", 1, "person", "May I?", "p1" if state == "prompt" else ""))
    assert silent(play) == []


@pytest.mark.parametrize(("restart", "state"), [("never", "gone"), ("on-failure", "backoff"), ("always", "backoff")])
@pytest.mark.parametrize("code", [0, None])
def test_a_run_that_was_ended_for_silence_has_failed_whatever_it_says(
    restart: str, state: str, code: int | None
) -> None:
    play = working(quiet_kill=1800.0, restart=restart)
    assert silent(play) == [facts.Silent("a2", 1, 1800.0)]
    taken = play.exit("kid", code, None if code == 0 else 15)
    (ended,) = [fact for fact in taken if isinstance(fact, facts.TaskEnded)]
    assert (ended.status, ended.summary) == ("failed", "silent for 30m")
    node = play.node("a2")
    assert (node.state, node.reason, node.crashed) == (state, "silent for 30m", int(state == "backoff"))
    told = [fact.input.text.removeprefix(EVENT) for fact in taken if isinstance(fact, facts.Queued)]
    assert told[-1] == "kid (a2) ended task 1: failed. silent for 30m"
    assert (told[0] == "kid (a2) was silent for 30m and was ended for that.") == (restart == "never")


def test_one_that_does_one_task_and_was_silent_has_failed_too() -> None:
    play = Play(fleet(agent("lead", agent("kid", kind="errand", task="Go.", quiet_kill=60.0, restart="always"))))
    play.ready("lead", "kid")
    silent(play)
    play.exit("kid", 0)
    assert (play.node("kid").state, play.node("kid").status) == ("backoff", "failed")


def test_the_next_run_begins_with_a_clean_sheet() -> None:
    play = working(quiet_kill=60.0, restart="on-failure")
    silent(play)
    play.exit("kid", 0)
    play.due("kid")
    play.ready("kid")
    play.facts(Instruct("kid", "Again."))
    play.end_turn("kid", "Well.")
    taken = play.exit("kid", 0)
    assert facts.Leaving("a2", "gone", "exit", "") in taken, "an end with 0 is none that failed"


def test_ages_and_quiet_are_shown_as_they_are_seen_and_are_no_part_of_the_state() -> None:
    play = working(quiet_after=60.0)
    unseen = view.agent(play.project, play.node("kid"), 0.0)
    assert unseen["ages"] == {"process": None, "turn": None, "progress": None, "line": None}
    assert (unseen["silent"], unseen["quiet"], unseen["quiet_after"]) == (None, False, 60.0)
    ages = {"process": 100.0, "turn": 70.0, "progress": 70.0, "line": None}
    for seconds, quiet in ((59.9, False), (60.0, True)):
        seen = {"ages": ages, "silent": seconds}
        (lead,) = view.tree(play.project, OPERATOR, "warden", 0.0, None, lambda _: seen)["agents"]  # noqa: B023  # used at once
        (kid,) = lead["children"]
        assert (kid["ages"], kid["quiet"]) == (ages, quiet)
    play = working(quiet_after=0.0)
    kid = view.agent(play.project, play.node("kid"), 0.0, lambda _: {"ages": ages, "silent": 1e6})
    assert (kid["quiet"], kid["quiet_after"]) == (False, None), "never"
