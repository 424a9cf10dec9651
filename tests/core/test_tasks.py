"""A task waits, is handed over, and ends; an agent that has done its tasks is released, and one may follow it."""

from __future__ import annotations

import pytest

from supervisor.core import facts
from supervisor.core.decide.task import INBOX
from supervisor.core.facts import Fact, Input
from supervisor.core.grants import Grant
from supervisor.core.requests import Disband, Down, Fork, Instruct, Restarting, Start, Stop
from tests.core.play import EVENT, Play, agent, fleet


def digest(number: int, text: str, *, wake: bool = True) -> Input:
    """What the fleet tells an agent."""
    return Input(f"m{number}", "digest", EVENT + text, "fleet", wake)


def handed(taken: list[Fact]) -> list[tuple[str, tuple[str, ...]]]:
    """Which texts went to whom."""
    return [(fact.agent, fact.inputs) for fact in taken if isinstance(fact, facts.Handed)]


def family(*, parent: str = "", **child: object) -> Play:
    """`lead`, standing by, and its child `one` with a first task under way."""
    play = Play(fleet(agent("lead", task=parent)))
    play.facts(Fork("Go.", kind="lines", name="one", parent="lead", **child))  # type: ignore[arg-type]  # fields of Fork
    play.ready("lead", "one")
    return play


def test_a_brief_is_handed_once_the_program_is_ready_and_introduces_the_agent() -> None:
    play = Play(fleet(agent("lead", task="Begin.")))
    assert play.tell(facts.Started("a1", 1, 5, 1))[1:] == []
    assert play.tell(facts.Ready("a1", 1, "s"))[1:] == [facts.Handed("a1", 1, ("m1",), turn=True, introduce=True)]
    play.end_turn("lead")
    assert play.facts(Instruct("lead", "More."))[1:] == [facts.Handed("a1", 1, ("m2",), turn=True)]


def test_a_task_ends_with_the_turn_that_leaves_nothing_queued_and_wakes_the_parent() -> None:
    play = family()
    assert play.end_turn("one", "Done.\nAll of it.") == [
        facts.TurnEnded("a2", 1, "ok", "Done.\nAll of it."),
        facts.TaskEnded("a2", "done", "Done. All of it."),
        facts.Queued("a1", digest(2, "one (a2) ended task 1: done. Done. All of it.")),
        facts.Handed("a1", 1, ("m2",), turn=True, introduce=True),
    ]


@pytest.mark.parametrize(("outcome", "status"), [("ok", "done"), ("error", "failed"), ("aborted", "interrupted")])
def test_how_a_turn_ended_is_how_its_task_did(outcome: facts.Outcome, status: str) -> None:
    play = family()
    assert facts.TaskEnded("a2", status, "broken") in play.tell(facts.TurnEnded("a2", 1, outcome, "", "broken"))


def test_done_within_a_turn_ends_the_task_with_the_turn() -> None:
    play = family()
    assert play.tell(facts.Said("a2", 1, "done", "good", "Merged."))[1:] == []
    assert facts.TaskEnded("a2", "done", "Merged.") in play.end_turn("one", "Bye.")
    assert play.node("one").verdict == "good"


def test_a_second_task_waits_for_the_first() -> None:
    play = family()
    assert handed(play.facts(Instruct("one", "Second."))) == []
    assert handed(play.facts(Instruct("one", "Third."))) == []
    taken = play.end_turn("one")
    assert ("a2", ("m2",)) in handed(taken), "one at a time"
    assert play.node("one").task == Input("m2", "task", "Second.", "operator")


def test_a_turn_takes_all_digests_and_one_task() -> None:
    play = family()
    play.end_turn("one")
    play.facts(Instruct("lead", "Next."))
    play.facts(Instruct("one", "Again."))
    play.end_turn("one")
    assert [item.id for item in play.node("lead").inbox] == ["m3", "m5"]
    assert handed(play.end_turn("lead")) == [("a1", ("m3", "m5"))]


def test_what_there_is_to_tell_goes_before_the_next_task_while_one_is_under_way() -> None:
    play = family(parent="Begin.")
    play.facts(Instruct("lead", "Next."))
    play.end_turn("one")
    assert handed(play.end_turn("lead")) == [("a1", ("m4",))]
    assert handed(play.end_turn("lead")) == [("a1", ("m3",))]


def test_what_does_not_wake_waits_for_a_turn_and_goes_along() -> None:
    play = family(grant=Grant(tokens=10))
    play.spend("one", 8)
    assert [item.wake for item in play.node("lead").inbox] == [False]
    assert play.node("lead").state == "standing"
    assert handed(play.facts(Instruct("lead", "Look.")))[0][1] == ("m3", "m4")


def test_a_waiting_agent_takes_the_next_text_as_its_answer() -> None:
    play = family()
    play.tell(facts.Blocked("a2", 1, "person", "May I?\nReally?"))
    assert (play.node("one").state, play.node("one").last) == ("waiting", "May I?")
    assert play.end_turn("one")[1:] == [], "it waits on: its task is not over"
    assert play.facts(Instruct("one", "Yes."))[1:] == [facts.Handed("a2", 1, ("m2",), turn=True)]
    ended = [fact for fact in play.end_turn("one") if isinstance(fact, facts.TaskEnded)]
    assert len(ended) == 1, "both end as one"
    assert play.node("one").tasks == 1


def test_an_answer_joins_the_turn_that_still_runs() -> None:
    play = family()
    play.tell(facts.Blocked("a2", 1, "person"))
    assert play.facts(Instruct("one", "Yes."))[1:] == [facts.Handed("a2", 1, ("m2",), turn=False)]
    assert (play.node("one").state, play.node("one").own.turns) == ("working", 1)
    assert facts.TaskEnded("a2", "done", "") in play.end_turn("one")


def test_what_was_given_before_the_question_is_no_answer() -> None:
    play = family()
    play.facts(Instruct("one", "Second."))
    play.tell(facts.Blocked("a2", 1, "person"))
    assert handed(play.end_turn("one")) == []
    assert handed(play.facts(Instruct("one", "Yes."))) == [("a2", ("m3",))]
    assert ("a2", ("m2",)) in handed(play.end_turn("one"))


def test_digests_wait_for_the_end_of_the_turn_in_which_it_asks() -> None:
    play = family()
    play.facts(Fork("Go.", kind="lines", name="two", parent="one"))
    play.ready("two")
    play.tell(facts.Blocked("a2", 1, "two"))
    assert handed(play.end_turn("two")) == []
    assert handed(play.end_turn("one")) == [("a2", ("m3",))], "then what it waits for may wake it"


def test_one_that_says_done_while_it_waits_does_not_wait_any_more() -> None:
    play = family()
    play.tell(facts.Blocked("a2", 1, "lead"))
    play.end_turn("one")
    assert facts.TaskEnded("a2", "done", "Never mind.") in play.tell(facts.Said("a2", 1, "done", "", "Never mind."))
    assert play.node("one").state == "standing"
    play = family()
    play.tell(facts.Blocked("a2", 1, "lead"))
    assert play.tell(facts.Said("a2", 1, "done", "", "Never mind."))[1:] == []
    assert facts.TaskEnded("a2", "done", "Never mind.") in play.end_turn("one")
    play = family()
    play.tell(facts.Said("a2", 1, "done"), facts.Blocked("a2", 1, "lead"))
    assert play.end_turn("one")[1:] == [], "it asked after that"


def test_an_empty_task_and_one_too_many_are_refused() -> None:
    play = family()
    assert play.refused(Instruct("one", " \n\t")).code == "empty"
    for _ in range(INBOX):
        play.facts(Instruct("one", "More."))
    full = play.refused(Instruct("one", "More."))
    assert (full.code, full.field, full.held, full.used) == ("bound", "inbox", INBOX, INBOX)


def test_its_last_task_releases_it_children_first() -> None:
    play = family(max_tasks=1)
    play.facts(Fork(kind="lines", name="two", parent="one"))
    assert play.end_turn("one", "Done.") == [
        facts.TurnEnded("a2", 1, "ok", "Done."),
        facts.TaskEnded("a2", "done", "Done."),
        facts.Queued("a1", digest(2, "one (a2) ended task 1 of 1: done. Done. It is released now.")),
        facts.Handed("a1", 1, ("m2",), turn=True, introduce=True),
        facts.Leaving("a2", "gone", "tasks", "fleet"),
        facts.Leaving("a3", "gone", "parent", "a2"),
    ]
    assert play.exit("one")[1:] == [], "not before its child"
    assert play.exit("two")[1:] == [facts.Left("a3", "gone"), facts.Left("a2", "gone")]


def test_one_follows_with_name_inbox_and_what_remains() -> None:
    play = family(max_tasks=1, replace=True, grant=Grant(tokens=100, turns=5, descendants=2, wall=60.0))
    play.spend("one", 30)
    play.facts(Instruct("one", "Second."))
    play.end_turn("one", "The first is done.")
    brief = "You follow one (a2), which was released after 1 tasks.\nIts brief was: Go."
    brief += "\nIts last words were: The first is done."
    spec = play.node("one").spec
    taken = play.exit("one", lasted=12.0)
    assert taken[1:] == [
        facts.Left("a2", "gone"),
        facts.Born("a3", "one", "a1", spec, Grant(tokens=70, turns=4, descendants=2, wall=48.0), replaces="a2"),
        facts.Queued("a3", Input("m4", "brief", brief, "fleet", wake=False)),
        facts.Queued("a3", Input("m2", "task", "Second.", "operator")),
        facts.Starting("a3", 1),
        facts.Queued("a1", digest(5, "one (a2) was released; a3 takes its place.", wake=False)),
    ]
    assert handed(play.ready("one")) == [("a3", ("m4", "m2"))], "the brief goes along with the task that waited"
    assert play.node("one").task == Input("m2", "task", "Second.", "operator")


def test_one_that_follows_stands_by_where_nothing_waits() -> None:
    play = family(max_tasks=1, replace=True)
    play.end_turn("one")
    play.exit("one")
    assert handed(play.ready("one")) == []
    assert play.node("one").state == "standing"


@pytest.mark.parametrize(
    ("grant", "field"), [(Grant(tokens=10), "tokens"), (Grant(turns=1), "turns"), (Grant(wall=5.0), "wall")]
)
def test_none_follows_where_nothing_remains_and_the_digest_says_so(grant: Grant, field: str) -> None:
    play = family(max_tasks=1, replace=True, grant=grant)
    play.spend("one", 10)
    play.end_turn("one")
    told = f"one (a2) was released; no other follows: nothing of its {field} is left."
    taken = play.exit("one")
    assert taken[1] == facts.Left("a2", "gone")
    assert [fact.input.text for fact in taken if isinstance(fact, facts.Queued)] == [EVENT + told]
    assert "one" not in play.project.names


def test_the_reservation_passes_to_the_one_that_follows_before_anyone_else_takes_it() -> None:
    play = Play(fleet(agent("lead", grant=Grant(turns=6), task="Begin.")))
    play.facts(Fork("Go.", kind="lines", name="one", parent="lead", grant=Grant(turns=5), max_tasks=1, replace=True))
    play.ready("lead", "one")
    play.end_turn("lead")
    play.facts(Instruct("lead", "More."))
    play.end_turn("one")
    assert handed(play.exit("one")) == [], "four turns come back, and are all the follower's"
    assert play.node("one").accounts["turns"].held == 4
    assert play.node("lead").accounts["turns"].free == 0


def test_two_that_follow_in_one_batch_have_ids_of_their_own() -> None:
    content = fleet(*(agent(name, task="Go.", max_tasks=1, replace=True) for name in ("one", "two")))
    play = Play(content)
    play.ready("one", "two")
    play.tell(facts.Closing())
    for name in ("one", "two"):
        play.end_turn(name)
        play.exit(name)
    born = [fact for fact in play.reopen() if isinstance(fact, facts.Born)]
    assert [(fact.agent, fact.name, fact.replaces) for fact in born] == [("a3", "one", "a1"), ("a4", "two", "a2")]


@pytest.mark.parametrize("request_", [Disband("one"), Disband("lead"), Down()])
def test_whatever_ends_a_branch_ends_the_hope_of_one_that_would_follow(request_: Disband | Down) -> None:
    play = family(max_tasks=1, replace=True)
    play.end_turn("one")
    assert play.node("one").state == "stopping"
    assert any(fact.agent == "a2" for fact in play.facts(request_) if isinstance(fact, facts.Leaving))
    assert play.exit("one")[1] == facts.Left("a2", "gone")
    assert not any(isinstance(fact, facts.Born) for fact in play.batches[-1][1])


def test_a_cut_task_that_was_the_last_does_not_start_another_run() -> None:
    play = family(max_tasks=1)
    play.facts(Restarting("one"))
    taken = play.exit("one")
    assert taken[1] == facts.TaskEnded("a2", "interrupted")
    assert facts.Leaving("a2", "gone", "tasks", "fleet") in taken
    assert facts.Left("a2", "gone") in taken
    assert not any(isinstance(fact, facts.Starting) for fact in taken)


def test_a_stopped_agent_is_not_released_as_well_but_has_done_its_tasks() -> None:
    play = family(max_tasks=1, replace=True)
    play.facts(Stop("one"))
    play.end_turn("one")
    assert play.exit("one")[1:] == [facts.Left("a2", "stopped")]
    assert play.node("one").tasks == 1
    assert play.refused(Start("one")).message == "one has done its 1 tasks; disband it"


def test_a_stop_in_the_middle_of_a_task_interrupts_it_and_the_next_one_is_taken() -> None:
    play = family()
    play.facts(Stop("one"))
    assert play.exit("one")[1:] == [
        facts.TaskEnded("a2", "interrupted"),
        facts.Queued("a1", digest(2, "one (a2) ended task 1: interrupted.")),
        facts.Handed("a1", 1, ("m2",), turn=True, introduce=True),
        facts.Left("a2", "stopped"),
    ]
    play.facts(Start("one"))
    play.ready("one")
    assert handed(play.facts(Instruct("one", "Again."))) == [("a2", ("m3",))]


def test_a_parent_is_not_woken_by_what_it_did_itself() -> None:
    play = family()
    play.facts(Disband("one"), play.by("lead"))
    assert play.exit("one")[1:] == [
        facts.TaskEnded("a2", "interrupted"),
        facts.Queued("a1", digest(2, "one (a2) ended task 1: interrupted.", wake=False)),
        facts.Left("a2", "gone"),
    ]


def test_what_is_said_to_be_done_in_the_last_moment_is_done() -> None:
    play = family()
    play.facts(Disband("one"))
    play.tell(facts.Said("a2", 1, "done", "", "It was done after all."))
    assert play.exit("one", None, 15)[1] == facts.TaskEnded("a2", "done", "It was done after all.")


def test_a_program_that_ends_its_process_ends_its_task() -> None:
    play = family()
    play.tell(facts.Spoke("a2", 1, "42 files read"))
    assert play.exit("one", 0)[1:] == [
        facts.Queued("a1", digest(2, "one (a2) exited with 0.", wake=False)),
        facts.TaskEnded("a2", "done", "42 files read"),
        facts.Queued("a1", digest(3, "one (a2) ended task 1: done. 42 files read")),
        facts.Handed("a1", 1, ("m2", "m3"), turn=True, introduce=True),
        facts.Leaving("a2", "gone", "exit", ""),
        facts.Left("a2", "gone"),
    ], "one turn of the parent's, not two"
    play = family()
    assert facts.TaskEnded("a2", "interrupted") in play.exit("one", 3)


def test_digests_do_not_use_up_the_room_for_tasks() -> None:
    play = family(parent="Begin.")
    for number in range(INBOX + 5):
        play.facts(Fork("Go.", kind="lines", name=f"n{number}", parent="lead"))
        play.exit(f"n{number}", 0)
    assert len(play.node("lead").inbox) > INBOX
    play.facts(Instruct("lead", "More."))


def test_a_task_that_goes_on_after_its_cut_goes_on_first() -> None:
    play = Play(fleet(agent("lead", task="Begin.", resume="continue", restart="on-failure")))
    play.ready("lead")
    play.facts(Instruct("lead", "Second."))
    play.exit("lead", 1)
    assert play.node("lead").task == Input("m1", "brief", "Begin.", "operator")
    play.due("lead")
    taken = play.ready("lead")
    text = f"{EVENT}Your process was started again in the middle of this task; go on with it.\nBegin."
    assert taken[2:] == [
        facts.Queued("a1", Input("m3", "digest", text, "fleet")),
        facts.Handed("a1", 2, ("m3",), turn=True),
    ]
    assert play.tell(facts.Ready("a1", 2, "s"))[1:] == [], "said twice is started once"
    assert play.end_turn("lead")[1:] == [
        facts.TaskEnded("a1", "done", ""), facts.Handed("a1", 2, ("m2",), turn=True),
    ]  # fmt: skip


def test_what_a_run_says_after_its_end_stays_in_the_journal() -> None:
    play = family(restart="always")
    play.exit("one", 1)
    before = play.node("one")
    state, tasks = before.state, before.tasks
    late: list[Fact] = [facts.TurnEnded("a2", 1), facts.Said("a2", 1), facts.Ready("a2", 1, "other")]
    late += [facts.TurnStarted("a2", 1), facts.Blocked("a2", 1, "person"), facts.Started("a2", 1, 9, 9)]
    for fact in late:
        assert play.tell(fact) == [fact]
    node = play.node("one")
    assert (node.state, node.tasks, node.session, node.crashes) == (state, tasks, "s", 1)
