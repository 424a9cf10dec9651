"""Programs that do one task and end: their agents stand by without a process, and a process is started for each text
that wakes."""

from __future__ import annotations

from typing import TypeVar

import pytest

from supervisor.core import facts
from supervisor.core.decide.run import CRASHES, RESUMES
from supervisor.core.facts import Fact
from supervisor.core.grants import Grant
from supervisor.core.requests import Disband, Down, Fork, Instruct, Restarting, Start, Stop
from supervisor.core.spec import KindSpec
from tests.core.play import EVENT, KINDS, Play, accept, agent, fleet

F = TypeVar("F", bound=Fact)
#: What of the parent's is no matter here.
LEAD: dict[type, str] = {facts.Handed: "a1"}


def boy(**more: object) -> Play:
    """`lead`, and under it `boy`, whose program does one task and ends."""
    play = Play(fleet(agent("lead", restart="always")))
    play.ready("lead")
    play.facts(Fork(kind="errand", name="boy", parent="lead", **more))  # type: ignore[arg-type]  # fields of Fork
    return play


def begin(play: Play, name: str = "boy", *, tells: bool = False, speaks: bool = True) -> list[Fact]:
    """Its run starts, is ready, and begins its turn if it speaks of turns."""
    node = play.node(name)
    taken = play.tell(facts.Started(node.id, node.run, 100, 1))
    taken += play.tell(facts.Ready(node.id, node.run, "s", tells=tells))
    if speaks:
        taken += play.tell(facts.TurnStarted(node.id, node.run))
    return taken


def serve(play: Play, name: str = "boy", text: str = "Done.") -> list[Fact]:
    """A whole run: it begins, ends its turn well, and is gone."""
    begin(play, name)
    return [*play.end_turn(name, text), *play.exit(name)]


def named(taken: list[Fact], kind: type[F]) -> list[F]:
    """Those of one sort, but for what the parent is handed."""
    return [fact for fact in taken if isinstance(fact, kind) and getattr(fact, "agent", "") != LEAD.get(kind)]


def told(taken: list[Fact]) -> list[str]:
    """What the parent was told."""
    return [fact.input.text.removeprefix(EVENT) for fact in named(taken, facts.Queued) if fact.input.sort == "digest"]


def test_it_is_born_without_a_process_and_stands_by() -> None:
    play = boy()
    node = play.node("boy")
    assert (node.state, node.alive, node.pid, node.run) == ("standing", False, 0, 0)
    play.facts(Fork(kind="lines", name="kid", parent="boy"))
    assert play.node("kid").state == "starting"


def test_a_brief_starts_a_process_at_once_and_a_text_does_later() -> None:
    play = boy(task="Go.")
    assert (play.node("boy").state, play.node("boy").run) == ("starting", 1)
    taken = begin(play)
    assert named(taken, facts.Handed) == [facts.Handed("a2", 1, ("m1",), turn=True, introduce=True)]
    play.end_turn("boy", "Well.")
    assert play.exit("boy")[1:] == [facts.Stood("a2")]
    taken = play.facts(Instruct("boy", "More."))
    assert taken[1:] == [facts.Starting("a2", 2, resume=True)], "with its conversation"


def test_a_text_that_does_not_wake_starts_nothing_and_goes_along_with_one_that_does() -> None:
    play = boy()
    play.tell(facts.Queued("a2", facts.Input("m8", "digest", "By the way.", "fleet", wake=False)))
    assert (play.node("boy").state, play.node("boy").run) == ("standing", 0)
    play.facts(Instruct("boy", "Go."))
    assert named(begin(play), facts.Handed)[0].inputs == ("m8", "m9")


def test_what_comes_while_its_turn_runs_waits_for_the_next_process() -> None:
    play = boy(task="Go.")
    begin(play)
    play.facts(Instruct("boy", "Then this."))
    assert named(play.end_turn("boy"), facts.Handed) == [], "its stdin is at its end"
    assert play.exit("boy")[1:] == [facts.Stood("a2"), facts.Starting("a2", 2, resume=True)]


def test_a_turn_is_counted_once_and_no_process_is_started_that_no_turn_is_left_for() -> None:
    play = boy(grant=Grant(turns=1), task="Go.")
    serve(play)
    assert play.node("boy").own.turns == 1
    taken = play.facts(Instruct("boy", "More."))
    assert named(taken, facts.Starting) == []
    assert (play.node("boy").state, play.node("boy").alive) == ("standing", False)


def test_an_end_in_the_middle_of_a_turn_fails_the_task_and_tells_why() -> None:
    play = boy(task="Go.", restart="on-failure")
    begin(play)
    taken = play.exit("boy", None, 9)
    assert told(taken) == ["boy (a2) ended task 1: failed. it was ended by signal 9 in the middle of its turn"]
    assert play.node("boy").state == "backoff"
    assert play.due("boy")[1:] == [facts.Stood("a2")], "nothing waits for it: nothing is started"


@pytest.mark.parametrize(("restart", "state"), [("never", "gone"), ("on-failure", "backoff"), ("always", "backoff")])
def test_the_restart_policy_is_about_runs_that_failed(restart: str, state: str) -> None:
    play = boy(task="Go.", restart=restart)
    serve(play)
    assert play.node("boy").state == "standing"
    play.facts(Instruct("boy", "Again."))
    begin(play)
    play.exit("boy", 0)
    assert play.node("a2").state == state, "0 in the middle of a turn is no end of a task"


def test_one_that_fails_each_time_waits_longer_each_time_and_is_given_up() -> None:
    play = boy(restart="always")
    waits = []
    for _ in range(CRASHES + 3):
        play.facts(Instruct("boy", "Go."))
    for _ in range(CRASHES):
        begin(play)
        waits += [fact.delay for fact in named(play.exit("boy", 1), facts.BackedOff)]
        assert not play.node("boy").alive
        play.due("boy")
    assert waits == [2.0**number for number in range(CRASHES)]
    begin(play)
    play.exit("boy", 1)
    assert play.node("a2").state == "gone"


def test_a_task_that_is_done_forgives_crashes() -> None:
    play = boy(restart="on-failure")
    for _ in range(2 * CRASHES):
        play.facts(Instruct("boy", "Go."))
        begin(play)
        assert named(play.exit("boy", 1), facts.BackedOff)[0].crashes == 1
        play.due("boy")
        play.facts(Instruct("boy", "Again."))
        serve(play)


def test_an_end_before_it_had_its_task_is_a_failure_and_the_task_is_still_to_come() -> None:
    play = boy(task="Go.", restart="on-failure")
    taken = play.exit("boy", 0)
    assert named(taken, facts.TaskEnded) == []
    assert play.node("boy").state == "backoff"
    assert play.due("boy")[1:] == [facts.Stood("a2"), facts.Starting("a2", 2)]


def test_one_that_cannot_be_started_has_failed_its_task_by_then() -> None:
    play = boy(task="Go.", restart="on-failure")
    begin(play, speaks=False)
    taken = play.tell(facts.Unstarted("a2", 1, "no such file"))
    assert told(taken) == ["boy (a2) ended task 1: failed. it could not be started: no such file"]
    assert play.node("boy").state == "backoff"


@pytest.mark.parametrize(("code", "status"), [(0, "done"), (3, "failed")])
def test_the_end_of_a_program_that_tells_nothing_of_turns_is_the_turns_end_and_no_crash(code: int, status: str) -> None:
    play = boy(task="Go.")
    begin(play, speaks=False)
    play.tell(facts.Spoke("a2", 1, "all green"))
    taken = play.exit("boy", code)
    (ended,) = named(taken, facts.TaskEnded)
    said = "all green" if code == 0 else "it exited with 3; its last line: all green"
    assert (ended.status, ended.summary) == (status, said)
    assert named(taken, facts.BackedOff) == []
    node = play.node("boy")
    assert (node.state, node.text, node.crashed) == ("standing", "all green", 0)


def test_what_it_said_of_its_task_before_it_ended_stands() -> None:
    play = boy(task="Go.")
    begin(play, speaks=False)
    play.tell(facts.Said("a2", 1, "done", "pass", "14 of 14"))
    (ended,) = named(play.exit("boy", 3), facts.TaskEnded)
    assert (ended.status, ended.summary) == ("done", "14 of 14")


def test_a_task_that_was_not_begun_with_is_given_again_after_a_wait() -> None:
    play = boy(task="Go.", restart="on-failure")
    begin(play, tells=True, speaks=False)
    taken = play.exit("boy", 1)
    assert named(taken, facts.Returned) == [facts.Returned("a2", ("m1",))]
    assert named(taken, facts.TaskEnded) == []
    assert play.node("boy").state == "backoff"
    play.due("boy")
    assert named(begin(play), facts.Handed)[0].inputs == ("m1",)
    assert play.node("boy").own.turns == 1


def test_a_conversation_that_cannot_be_gone_on_with_is_given_up_and_a_fresh_one_begins() -> None:
    play = boy(task="Go.")
    begin(play, tells=True)
    play.end_turn("boy")
    play.exit("boy")
    play.facts(Instruct("boy", "More."))
    for number in range(1, RESUMES + 1):
        assert play.node("boy").talk.resuming
        begin(play, tells=True, speaks=False)
        taken = play.exit("boy", 42)
        assert play.node("boy").state == "backoff", "whatever the policy"
        assert len(named(taken, facts.Abandoned)) == (number == RESUMES)
        play.due("boy")
    assert not play.node("boy").talk.resuming
    (handed,) = named(begin(play, tells=True), facts.Handed)
    assert (handed.inputs, handed.introduce) == (("m3",), True)


def test_who_asked_and_ended_waits_without_a_process_and_the_answer_starts_the_next() -> None:
    play = boy(task="Go.")
    begin(play)
    play.tell(facts.Blocked("a2", 1, "person", "May I?"))
    play.end_turn("boy")
    play.exit("boy")
    node = play.node("boy")
    assert (node.state, node.alive, node.waiting_on) == ("waiting", False, "person")
    play.reopen()
    assert play.node("boy").state == "waiting"
    play.ready("lead")
    taken = play.facts(Instruct("boy", "Yes."))
    assert taken[1:] == [facts.Starting("a2", 2, resume=True)]
    assert named(begin(play), facts.Handed)[0].inputs == ("m2",)
    ended = named(play.end_turn("boy", "Did it."), facts.TaskEnded)
    assert (len(ended), play.node("boy").tasks) == (1, 1), "both end as one task"


def test_a_stop_of_one_that_stands_by_is_a_stop_at_once_and_a_start_starts_no_process() -> None:
    play = boy()
    assert play.facts(Stop("boy"))[1:] == [facts.Left("a2", "stopped")]
    assert play.facts(Start("boy")) == [facts.Stood("a2")]
    assert play.node("boy").state == "standing"
    assert play.facts(Restarting("boy")) == [facts.Stood("a2")]
    assert play.facts(Disband("boy"))[1:] == [facts.Left("a2", "gone")]


def test_a_stop_in_its_turn_interrupts_the_task_and_a_start_goes_on_with_what_waits() -> None:
    play = boy(task="Go.")
    begin(play)
    play.facts(Instruct("boy", "Then this."))
    play.facts(Stop("boy"))
    taken = play.exit("boy", None, 15)
    assert named(taken, facts.TaskEnded)[0].status == "interrupted"
    assert (play.node("boy").state, play.node("boy").crashed) == ("stopped", 0)
    assert play.facts(Start("boy")) == [facts.Stood("a2"), facts.Starting("a2", 2, resume=True)]


def test_a_restart_in_its_turn_is_no_crash() -> None:
    play = boy(task="Go.")
    begin(play)
    play.facts(Restarting("boy"))
    taken = play.exit("boy", None, 15)
    assert [type(fact).__name__ for fact in taken] == ["Exited", "TaskEnded", "Queued", "Handed", "Stood"]
    assert (play.node("boy").state, play.node("boy").crashed) == ("standing", 0)


def test_at_its_last_task_it_is_released_and_another_takes_its_place() -> None:
    play = boy(max_tasks=1, replace=True, task="Go.")
    begin(play)
    taken = play.end_turn("boy", "Done.")
    assert facts.Leaving("a2", "gone", "tasks", "fleet") in taken
    taken = play.exit("boy")
    assert named(taken, facts.Born)[0].replaces == "a2"
    node = play.node("boy")
    assert (node.id, node.state, node.alive) == ("a3", "standing", False)


def test_a_task_whose_run_failed_counts_as_the_last_one() -> None:
    play = boy(max_tasks=1, task="Go.", restart="always")
    begin(play)
    play.exit("boy", 1)
    assert play.node("a2").state == "gone"


def test_after_a_death_of_the_daemon_who_stood_by_stands_by_without_a_process() -> None:
    play = boy()
    assert [fact for fact in play.reopen() if getattr(fact, "agent", "") == "a2"] == [facts.Stood("a2")]
    assert (play.node("boy").state, play.node("boy").alive) == ("standing", False)


@pytest.mark.parametrize("resume", ["stand", "continue"])
def test_after_a_death_of_the_daemon_in_its_turn_only_continue_goes_on(resume: str) -> None:
    play = Play(fleet(agent("lead"), agent("boy", kind="errand", task="Go.", resume=resume)))
    begin(play)
    taken = play.reopen()
    assert len(named(taken, facts.TaskEnded)) == (resume == "stand")
    again = [fact for fact in named(taken, facts.Starting) if fact.agent == "a2"]
    assert again == ([facts.Starting("a2", 2, resume=True)] if resume == "continue" else [])
    if resume == "continue":
        taken = begin(play)
        assert "go on with it.\nGo." in named(taken, facts.Queued)[0].input.text
        assert named(taken, facts.Handed)[0].inputs == ("m2",)
        assert named(play.end_turn("boy", "Well."), facts.TaskEnded)[0].status == "done"


def test_what_was_not_handed_when_the_daemon_died_starts_a_process_again() -> None:
    play = boy(task="Go.")
    taken = play.reopen()
    assert [fact for fact in taken if getattr(fact, "agent", "") == "a2"] == [
        facts.Lost("a2", 1), facts.Stood("a2"), facts.Starting("a2", 2),
    ]  # fmt: skip


def test_a_daemon_that_leaves_starts_nothing_and_the_next_one_goes_on() -> None:
    play = boy(task="Go.")
    begin(play)
    play.facts(Instruct("boy", "More."))
    play.tell(facts.Closing())
    assert named(play.exit("boy", None, 15), facts.Stood) == []
    taken = play.reopen()
    assert [fact for fact in taken if getattr(fact, "agent", "") == "a2"] == [
        facts.Stood("a2"), facts.Starting("a2", 2, resume=True),
    ]  # fmt: skip


def test_a_project_that_is_down_has_none_that_stands_by() -> None:
    play = boy()
    play.facts(Down())
    play.exit("lead")
    assert {node.state for node in play.project.agents.values()} == {"gone"}


def test_a_reload_that_makes_of_a_kind_the_other_sort_is_followed() -> None:
    play = Play(fleet(agent("boy", kind="errand")))
    stays = (*KINDS[:-1], KindSpec("errand", "lines"))
    taken = play.facts(accept(fleet(agent("boy", kind="errand"), kinds=stays)))
    assert taken[1:] == [facts.Starting("a1", 1)]
    play.ready("boy")
    taken = play.facts(accept(fleet(agent("boy", kind="errand"))))
    assert taken[1:] == [facts.Rerun("a1", 1)]
    assert play.exit("boy")[1:] == [facts.Stood("a1")]


def test_the_time_it_stood_by_counts_for_its_wall() -> None:
    play = boy(task="Go.")
    begin(play)
    play.end_turn("boy")
    play.tell(facts.Exited("a2", 1, 0, None, 5.0, stood=20.0))
    assert play.node("boy").lasted == 25.0


@pytest.mark.parametrize("begun", [False, True])
def test_a_process_that_a_spent_budget_ended_has_not_failed(*, begun: bool) -> None:
    play = boy(task="Go.", grant=Grant(tokens=100))
    begin(play, tells=True, speaks=False)
    if begun:
        play.tell(facts.Read("a2", 1, ("m1",)), facts.TurnStarted("a2", 1))
    assert named(play.spend("boy", 200), facts.Interrupted)
    taken = play.exit("boy", 0) if begun else play.exit("boy", None, 15)
    assert named(taken, facts.Stood)
    assert [fact.status for fact in named(taken, facts.TaskEnded)] == (["interrupted"] if begun else [])
    assert (play.node("boy").crashes, len(named(taken, facts.Returned))) == (0, 0 if begun else 1)
    assert not named(taken, facts.Starting), "nothing is left for it"
