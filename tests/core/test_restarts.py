"""What follows the end of a run: another one after a wait, a release, or recovery by another daemon."""

from __future__ import annotations

import pytest
from attrs import evolve

from supervisor.core import facts
from supervisor.core.decide.run import CRASHES, QUICK, SETTLED
from supervisor.core.facts import Fact
from supervisor.core.requests import Disband, Fork, Instruct, Start, Stop
from supervisor.core.spec import Restart
from tests.core.play import Play, agent, fleet


def one(restart: Restart, **more: object) -> Play:
    """`lead`, and its child `one` with this policy, both standing by."""
    play = Play(fleet(agent("lead", restart="always")))
    play.facts(Fork(kind="lines", name="one", parent="lead", restart=restart, **more))  # type: ignore[arg-type]  # fields of Fork
    play.ready("lead", "one")
    return play


def told(taken: list[Fact]) -> list[str]:
    """What the parent was told."""
    return [fact.input.text.partition("] ")[2] for fact in taken if isinstance(fact, facts.Queued)]


@pytest.mark.parametrize(
    ("restart", "code", "signal", "again"),
    [
        ("never", 0, None, False), ("never", 1, None, False), ("never", None, 9, False),
        ("on-failure", 0, None, False), ("on-failure", 1, None, True), ("on-failure", None, 9, True),
        ("on-failure", None, None, True),
        ("always", 0, None, True), ("always", 1, None, True), ("always", None, 15, True),
    ],
)  # fmt: skip
def test_a_policy_decides_what_follows_a_run(
    restart: Restart, code: int | None, signal: int | None, again: bool
) -> None:
    play = one(restart)
    play.exit("one", code, signal)
    assert play.node("a2").state == ("backoff" if again else "gone")


def test_a_parent_is_told_how_its_child_ended() -> None:
    assert told(one("never").exit("one", 3)) == ["one (a2) exited with 3."]
    assert told(one("never").exit("one", None, 9)) == ["one (a2) was ended by signal 9."]
    assert told(one("never").exit("one", None)) == ["one (a2) ended, nobody knows how."]
    play = one("on-failure")
    assert told(play.tell(facts.Exited("a2", 1, 1, lasted=5.0))) == []
    play.due("one")
    assert told(play.tell(facts.Unstarted("a2", 2, "no such file"))) == []
    play = Play(fleet(agent("lead"), agent("other")))
    play.facts(Fork(kind="lines", name="one", parent="lead"))
    assert told(play.tell(facts.Unstarted("a3", 1, "no such file"))) == ["one (a3) could not be started: no such file."]
    assert play.node("a3").state == "gone"


def waited(taken: list[Fact]) -> tuple[float, int]:
    """The wait before the next run (seconds), and the crashes it stands for."""
    (fact,) = (fact for fact in taken if isinstance(fact, facts.BackedOff))
    return fact.delay, fact.crashes


def test_waits_double_and_an_agent_is_given_up_at_last() -> None:
    play = one("on-failure")
    waits = []
    for number in range(1, CRASHES + 1):
        play.ready("one")
        taken = play.exit("one", 1)
        assert waited(taken) == (2.0 ** (number - 1), number)
        assert play.node("one").until == play.stamp.at + 2.0 ** (number - 1)
        waits.append(taken[1])
        play.due("one")
    last = play.exit("one", 2)
    assert last[-2:] == [facts.Leaving("a2", "gone", "crash", ""), facts.Left("a2", "gone")]
    assert told(last) == ["one (a2) failed 6 times in a row and is given up. The last time it exited with 2."]


def test_waits_are_spread_so_that_a_wave_does_not_return_as_one() -> None:
    play = one("on-failure")
    play.stamp = evolve(play.stamp, chance=0.5)
    assert play.exit("one", 1)[1] == facts.BackedOff("a2", 1.1, 1)


def test_a_run_that_lasted_starts_the_count_anew() -> None:
    play = one("on-failure")
    for _ in range(3):
        play.exit("one", 1)
        play.due("one")
    assert play.exit("one", 1, lasted=SETTLED)[1] == facts.BackedOff("a2", 1.0, 1)
    assert play.node("one").crashed == 4, "what was counted is still shown"


def test_a_clean_end_is_no_crash_unless_it_came_at_once() -> None:
    play = one("always")
    for _ in range(9):
        play.ready("one")
        assert waited(play.exit("one", 0)) == (1.0, 0)
        play.due("one")
    assert play.node("one").crashed == 0
    assert waited(play.exit("one", 0, lasted=QUICK / 2)) == (1.0, 1)
    play.due("one")
    assert waited(play.exit("one", 0, lasted=QUICK / 2)) == (2.0, 2)


def test_a_deliberate_end_is_never_a_crash_and_forgives() -> None:
    play = one("on-failure")
    for _ in range(CRASHES):
        play.exit("one", 1)
        play.due("one")
    play.facts(Stop("one"))
    play.exit("one", 1)
    play.facts(Start("one"))
    assert play.exit("one", 1)[1] == facts.BackedOff("a2", 1.0, 1)


def test_children_stay_through_a_crash_of_their_parent() -> None:
    play = one("never")
    play.exit("lead", 1)
    assert (play.node("lead").state, play.node("one").state) == ("backoff", "standing")
    play.facts(Fork(kind="lines", parent="lead"))
    assert play.due("lead")[1:] == [facts.Starting("a1", 2, resume=True)]


def test_a_stop_in_backoff_is_a_stop_at_once() -> None:
    play = one("always")
    play.exit("one", 1)
    assert play.facts(Stop("one"))[1:] == [facts.Left("a2", "stopped")]
    assert play.due("one")[1:] == []


def test_a_wait_that_was_for_another_run_starts_nothing() -> None:
    play = one("always")
    play.exit("one", 1)
    play.due("one")
    play.exit("one", 1)
    assert play.tell(facts.Due("a2", 1))[1:] == []
    assert play.node("one").state == "backoff"


def test_after_a_crash_of_the_daemon_all_that_is_wanted_starts_parents_first() -> None:
    play = Play(fleet(agent("lead", agent("scribe", task="Begin.")), agent("second")))
    play.facts(Fork(kind="lines", name="one", parent="scribe"))
    play.ready("lead", "scribe", "one")
    play.facts(Stop("second"))
    play.exit("second")
    assert play.reopen()[1:] == [
        facts.Lost("a1", 1), facts.Lost("a2", 1), facts.TaskEnded("a2", "interrupted", wake=False),
        facts.Queued("a1", play.node("lead").inbox[0]), facts.Lost("a4", 1),
        *(facts.Starting(agent, 2, resume=True) for agent in ("a1", "a2", "a4")),
    ]  # fmt: skip
    assert not play.node("lead").inbox[0].wake, "nobody is woken by what befell them all"
    play.ready("lead", "scribe", "one")
    assert {play.node(name).state for name in ("lead", "scribe", "one")} == {"standing"}


def test_what_was_leaving_when_the_daemon_died_has_left_and_is_not_brought_back() -> None:
    play = Play(fleet(agent("lead", agent("scribe")), agent("second", agent("clerk"))))
    play.ready("lead", "scribe", "second", "clerk")
    play.facts(Stop("lead"))
    play.facts(Disband("second"))
    play.exit("second")
    taken = play.reopen()
    assert [fact for fact in taken if isinstance(fact, facts.Left | facts.Starting)] == [
        facts.Left("a2", "stopped"), facts.Left("a1", "stopped"), facts.Left("a4", "gone"), facts.Left("a3", "gone"),
    ]  # fmt: skip


def test_crash_counts_tasks_and_budgets_are_what_they_were() -> None:
    play = one("on-failure", max_tasks=5)
    play.facts(Instruct("one", "Go."))
    play.spend("one", 7)
    play.end_turn("one")
    play.exit("one", 1)
    play.due("one")
    play.exit("one", 1)
    before = play.node("one")
    kept = before.crashes, before.crashed, before.tasks, before.own
    play.reopen()
    after = play.node("one")
    assert (after.crashes, after.crashed, after.tasks, after.own) == kept
    assert after.state == "starting"


def test_a_daemon_that_leaves_in_order_settles_nothing_and_the_next_one_goes_on() -> None:
    play = Play(fleet(agent("lead", task="Begin.", max_tasks=1, replace=True), agent("second")))
    play.ready("lead", "second")
    play.facts(Stop("second"))
    play.tell(facts.Closing())
    assert play.exit("second")[1:] == []
    cut = play.exit("lead", 0)
    assert cut[1] == facts.TaskEnded("a1", "interrupted", wake=False), "made to end, it has not done its task"
    assert not any(isinstance(fact, facts.Born | facts.Starting | facts.Left) for fact in cut)
    taken = play.reopen()
    assert [type(fact).__name__ for fact in taken] == ["Opened", "Left", "Born", "Queued", "Starting", "Left"]
    assert play.node("second").state == "stopped"


def test_a_run_that_ended_by_itself_while_the_daemon_left_starts_again() -> None:
    play = one("never")
    play.tell(facts.Closing())
    play.exit("one", 1)
    play.exit("lead", 0)
    assert play.reopen()[1:] == [facts.Starting("a1", 2, resume=True), facts.Starting("a2", 2, resume=True)]


def test_an_end_that_is_reported_twice_is_one() -> None:
    play = one("on-failure")
    play.exit("one", 1)
    lasted = play.node("one").lasted
    assert play.exit("one", 1)[1:] == []
    assert (play.node("one").crashes, play.node("one").lasted) == (1, lasted)
