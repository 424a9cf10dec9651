"""A task waits for those of the agent's children: who is woken for what they have to tell, and what ends the wait when
nobody has anything to tell."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor.core import facts, view
from supervisor.core.facts import Fact
from supervisor.core.grants import Grant
from supervisor.core.requests import Disband, Fork, Instruct, Restarting, Start, Stop
from tests.core.play import OPERATOR, Play, agent, fleet


def ended(taken: list[Fact]) -> list[tuple[str, str]]:
    """Whose tasks ended in these facts, and how."""
    return [(fact.agent, fact.status) for fact in taken if isinstance(fact, facts.TaskEnded)]


def handed(taken: list[Fact]) -> list[str]:
    """Who was given something."""
    return [fact.agent for fact in taken if isinstance(fact, facts.Handed)]


def family(many: int = 1, lead: str = "lines", child: str = "lines", **spec: Any) -> Play:
    """`lead` in its first turn, and so many children with tasks of their own under way: `c0` (a2), `c1` (a3), …"""
    play = Play(fleet(agent("lead", kind=lead, task="Build it.", **spec), agent("other")))
    play.ready("lead", "other")
    for number in range(many):
        play.facts(Fork("Go.", kind=child, name=f"c{number}"), play.by("lead"))
        play.ready(f"c{number}")
    return play


def test_a_turn_that_ends_while_a_child_works_ends_no_task() -> None:
    play = family()
    assert play.end_turn("lead", "I have asked c0.")[1:] == [facts.Awaiting("a1", ("a3",))]
    lead = play.node("lead")
    assert (lead.state, lead.tasks) == ("waiting", 0)
    assert view.agent(play.project, lead, 5e3)["waiting_on"] == "c0 (a3)"


def test_the_last_childs_digest_wakes_the_parent_and_the_turn_it_gets_ends_the_task() -> None:
    play = family(2)
    play.end_turn("lead", "I have asked both.")
    taken = play.end_turn("c0", "Half.")
    assert (ended(taken), handed(taken)) == ([("a3", "done")], ["a1"])
    assert play.end_turn("lead", "One is there.")[1:] == [facts.Awaiting("a1", ("a4",))]
    play.end_turn("c1", "Whole.")
    assert ended(play.end_turn("lead", "All of it.")) == [("a1", "done")]
    assert play.node("lead").summary == "All of it."
    assert play.node("lead").tasks == 1


def test_done_that_the_agent_says_itself_is_believed_whatever_its_children_do() -> None:
    play = family()
    play.tell(facts.Said("a1", 1, "done", summary="They will go on."))
    assert ended(play.end_turn("lead")) == [("a1", "done")]
    play = family()
    play.end_turn("lead")
    assert ended(play.tell(facts.Said("a1", 1))) == [("a1", "done")], "while it waits as well"


@pytest.mark.parametrize(("outcome", "status"), [("error", "failed"), ("aborted", "interrupted")])
def test_a_turn_that_ends_badly_ends_its_task(outcome: facts.Outcome, status: str) -> None:
    play = family()
    assert ended(play.tell(facts.TurnEnded("a1", 1, outcome))) == [("a1", status)]


def test_a_child_that_stands_by_is_not_waited_for() -> None:
    play = family()
    play.end_turn("c0")
    taken = play.end_turn("lead")
    assert (ended(taken), handed(taken)) == ([], ["a1"]), "what the child ended with is told within the task"
    assert ended(play.end_turn("lead", "Told.")) == [("a1", "done")]


def test_a_brief_that_is_not_begun_with_yet_is_an_open_task() -> None:
    play = Play(fleet(agent("lead", task="Build it.")))
    play.ready("lead")
    play.facts(Fork("Go.", kind="lines"), play.by("lead"))
    assert play.end_turn("lead")[1:] == [facts.Awaiting("a1", ("a2",))]


def test_a_child_that_no_budget_lets_begin_is_not_waited_for() -> None:
    play = Play(fleet(agent("lead", task="Build it.")))
    play.ready("lead")
    play.facts(Fork("Go.", kind="lines", grant=Grant(turns=0)), play.by("lead"))
    play.ready("a2")
    assert ended(play.end_turn("lead")) == [("a1", "done")]


def test_a_text_that_was_given_before_waits_and_one_that_is_given_later_does_not() -> None:
    play = family()
    play.facts(Instruct("lead", "Second."))
    play.end_turn("lead", "I have asked c0.")
    assert play.node("lead").state == "waiting"
    taken = play.facts(Instruct("lead", "Third."))
    assert ended(taken) == [("a1", "superseded")]
    assert play.node("lead").task == facts.Input("m3", "task", "Second.", "operator")
    play.end_turn("lead")
    assert play.node("lead").state == "waiting", "the next one waits for the same child"
    play.end_turn("c0")
    taken = play.end_turn("lead")
    assert ended(taken) == [("a1", "done")]
    assert play.node("lead").task == facts.Input("m4", "task", "Third.", "operator")


@pytest.mark.parametrize("how", ["exit", "crash", "disband", "stop", "wall"])
def test_however_a_child_leaves_the_wait_ends_in_a_turn_that_tells_of_it(how: str) -> None:
    play = family()
    play.end_turn("lead")
    match how:
        case "exit":
            taken = play.exit("c0", 0)
        case "crash":
            taken = play.exit("c0", 1)
        case "wall":
            taken = [*play.tell(facts.Expired("a3")), *play.exit("c0")]
        case _:
            taken = [*play.facts(Disband("c0") if how == "disband" else Stop("c0")), *play.exit("c0")]
    assert handed(taken) == ["a1"]
    assert ended(play.end_turn("lead")) == [("a1", "done")]


def test_a_child_whom_the_agent_ends_itself_is_not_waited_for() -> None:
    play = family()
    play.facts(Disband("c0"), play.by("lead"))
    assert ended(play.end_turn("lead")) == [("a1", "done")]
    assert handed(play.exit("c0")) == [], "it is not woken for what it did itself"


def test_a_stopped_child_that_keeps_its_task_is_not_waited_for_and_comes_back_with_it() -> None:
    play = Play(fleet(agent("lead", agent("c0", task="Go.", resume="continue"), task="Build it.")))
    play.ready("lead", "c0")
    play.end_turn("lead")
    assert play.node("lead").state == "waiting"
    play.facts(Stop("c0"))
    assert ended(play.exit("c0")) == [("a1", "done")]
    play.facts(Start("c0"))
    play.ready("c0")
    assert "a1" in handed(play.end_turn("c0"))


def test_a_child_that_never_began_and_is_gone_ends_the_wait_without_a_turn() -> None:
    play = Play(fleet(agent("lead", task="Build it.")))
    play.ready("lead")
    play.facts(Fork("Go.", kind="lines"), play.by("lead"))
    play.end_turn("lead", "So far.")
    taken = [*play.facts(Disband("a2")), *play.exit("a2")]
    assert (ended(taken), handed(taken)) == ([("a1", "done")], [])
    assert play.node("lead").summary == "So far."


def test_a_parent_without_a_turn_left_is_done_as_well_as_it_was() -> None:
    play = Play(fleet(agent("lead", task="Build it.", grant=Grant(turns=2))))
    play.ready("lead")
    play.facts(Fork("Go.", kind="lines", grant=Grant(turns=1)), play.by("lead"))
    play.ready("a2")
    play.end_turn("lead", "So far.")
    assert play.node("lead").state == "waiting"
    taken = play.end_turn("a2")
    assert ended(taken) == [("a2", "done"), ("a1", "done")]
    assert handed(taken) == []


def test_a_parked_child_is_waited_for_and_a_parked_parent_waits_on() -> None:
    play = family()
    play.end_turn("lead")
    play.tell(facts.Limited("a3", 1, "rate"))
    play.tell(facts.TurnEnded("a3", 1, "error", "", "429"))
    assert play.node("lead").state == "waiting"
    play.tell(facts.Parked("a1", 9e8, "quota", shared=True))
    play.due("c0")
    play.end_turn("c0")
    assert play.node("lead").state == "parked"
    assert handed(play.due("lead")) == ["a1"]
    assert ended(play.end_turn("lead")) == [("a1", "done")]


def test_a_wait_goes_up_the_tree_level_by_level() -> None:
    play = family()
    play.facts(Fork("Deeper.", kind="lines", name="deep"), play.by("c0"))
    play.ready("deep")
    play.end_turn("lead")
    play.end_turn("c0")
    assert [play.node(name).state for name in ("lead", "c0", "deep")] == ["waiting", "waiting", "working"]
    play.end_turn("deep")
    assert ended(play.end_turn("c0")) == [("a3", "done")]
    assert ended(play.end_turn("lead")) == [("a1", "done")]


def test_the_last_task_of_a_budget_ends_with_the_children_and_not_before_them() -> None:
    play = family(max_tasks=1)
    play.end_turn("lead")
    assert play.node("lead").state == "waiting"
    assert play.node("c0").state == "working", "nobody is released under its working children"
    play.end_turn("c0")
    play.end_turn("lead")
    assert play.node("lead").state == "stopping"


@pytest.mark.parametrize("resume", ["stand", "continue"])
def test_the_daemons_death_leaves_no_wait_behind(resume: str) -> None:
    play = family(resume=resume)
    play.end_turn("lead")
    taken = play.reopen()
    assert (("a1", "interrupted") in ended(taken)) == (resume == "stand")
    assert play.project.awaiting == {}
    taken = play.ready("lead")
    assert (handed(taken) == ["a1"]) == (resume == "continue")


def test_a_restart_of_the_parent_ends_the_wait() -> None:
    play = family()
    play.end_turn("lead")
    play.facts(Restarting("lead"))
    assert ended(play.exit("lead")) == [("a1", "interrupted")]


def errand(**spec: Any) -> Play:
    """`lead`, whose program does one task and ends, and its child, both at work."""
    play = Play(fleet(agent("lead", kind="errand", task="Build it.", **spec)))
    play.ready("lead")
    play.facts(Fork("Go.", kind="lines", name="c0"), play.by("lead"))
    play.ready("c0")
    return play


@pytest.mark.parametrize("tells", [True, False])
def test_one_that_does_a_task_and_ends_waits_without_a_process_and_is_started_for_what_there_is_to_tell(
    tells: bool,
) -> None:
    play = errand()
    if tells:
        play.end_turn("lead")
    taken = play.exit("lead")
    assert ended(taken) == []
    assert (play.node("lead").state, play.node("lead").alive) == ("waiting", False)
    assert facts.Starting("a1", 2, resume=True) in play.end_turn("c0")
    taken = play.ready("lead")
    (given,) = [fact for fact in taken if isinstance(fact, facts.Handed)]
    assert given.inputs == ("m3",), "the digest alone: its task is known to it"
    if tells:
        assert ended(play.end_turn("lead")) == [("a1", "done")]
        play.exit("lead")
    else:
        assert ended(play.exit("lead")) == [("a1", "done")]
    assert play.node("lead").state == "standing"


def test_one_that_waits_without_a_process_waits_on_under_another_daemon_until_its_children_are_done_for() -> None:
    play = errand()
    play.end_turn("lead")
    play.exit("lead")
    taken = play.reopen()
    assert ("a2", "interrupted") in ended(taken)
    assert facts.Starting("a1", 2, resume=True) in taken, "it hears what became of them"
    play.ready("lead")
    assert ended(play.end_turn("lead")) == [("a1", "done")]


def test_one_that_waits_without_a_process_and_is_stopped_was_interrupted() -> None:
    play = errand()
    play.end_turn("lead")
    play.exit("lead")
    taken = [*play.facts(Stop("lead")), *play.exit("c0")]
    assert ("a1", "interrupted") in ended(taken)
    assert play.node("lead").state == "stopped"


def test_who_waits_is_told_as_such_to_every_reader() -> None:
    play = family(5)
    play.end_turn("lead")
    drawn = view.tree(play.project, OPERATOR, "warden", 5e3)["agents"][0]
    assert drawn["state"] == "waiting"
    assert drawn["waiting_on"] == "c0 (a3), c1 (a4), c2 (a5) and 2 more"
    assert play.replayed() == play.project
