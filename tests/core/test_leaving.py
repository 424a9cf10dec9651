"""Stop, start, restart, disband and down: who leaves before whom, who comes back, and what every state answers."""

from __future__ import annotations

import pytest

from supervisor.core import facts
from supervisor.core.decide.leave import GONE_KEPT
from supervisor.core.grants import Grant
from supervisor.core.requests import Disband, Down, Fork, Instruct, Rename, Restarting, Start, Stop
from tests.core.play import Play, accept, agent, fleet

CONTENT = fleet(
    agent("lead", agent("scribe", agent("clerk"), grant=Grant(tokens=40)), grant=Grant(tokens=100)), agent("second")
)


def family() -> Play:
    """`lead` with declared `scribe` (and its `clerk`) and forked `one`, all standing by, and `second` beside them."""
    play = Play(CONTENT)
    play.facts(Fork(kind="lines", name="one", parent="lead"))
    play.ready("lead", "scribe", "clerk", "one", "second")
    return play


def states(play: Play) -> dict[str, str]:
    """Everyone's state."""
    return {node.name: node.state for node in play.project.agents.values()}


def test_a_stop_keeps_what_is_declared_and_ends_what_was_forked() -> None:
    play = family()
    assert play.facts(Stop("lead")) == [
        facts.Leaving("a1", "stopped", "asked", "operator"),
        facts.Leaving("a2", "stopped", "parent", "a1"),
        facts.Leaving("a3", "stopped", "parent", "a2"),
        facts.Leaving("a5", "gone", "parent", "a1"),
    ]
    assert play.exit("lead")[1:] == [], "its children leave before it"
    assert play.exit("one")[1:] == [facts.Left("a5", "gone")]
    assert play.exit("scribe")[1:] == []
    assert play.exit("clerk")[1:] == [
        facts.Left("a3", "stopped"), facts.Left("a2", "stopped"), facts.Left("a1", "stopped"),
    ]  # fmt: skip
    assert states(play) == {
        "lead": "stopped",
        "scribe": "stopped",
        "clerk": "stopped",
        "one": "gone",
        "second": "standing",
    }
    assert play.node("lead").accounts["tokens"].reserved == 40, "what is stopped keeps its reservation"


def test_a_start_revives_it_and_its_declared_children_with_their_conversations() -> None:
    play = family()
    play.facts(Stop("lead"))
    for name in ("clerk", "scribe", "one", "lead"):
        play.exit(name)
    assert play.facts(Start("lead")) == [
        facts.Starting("a1", 2, resume=True),
        facts.Starting("a2", 2, resume=True),
        facts.Starting("a3", 2, resume=True),
    ]  # fmt: skip
    assert play.facts(Start("lead")) == []


def test_a_disband_ends_the_branch_for_good_and_nothing_beside_it() -> None:
    play = family()
    play.facts(Disband("lead"))
    for name in ("lead", "scribe", "one", "clerk"):
        play.exit(name)
    assert {name for name, state in states(play).items() if state != "gone"} == {"second"}
    assert play.project.names == {"second": "a4"}
    assert play.node("a1").accounts == {}


def test_a_disbanded_declared_agent_stays_away_until_it_is_started_anew() -> None:
    play = family()
    play.facts(Disband("scribe"))
    play.exit("clerk")
    play.exit("scribe")
    play.facts(accept(fleet(*CONTENT.agents, agent("third"))))
    assert states(play)["scribe"] == "gone"
    assert play.facts(Start("scribe")) == [
        facts.Born("a7", "scribe", "a1", CONTENT.agents[0].children[0].spec, Grant(tokens=40), declared=True),
        facts.Starting("a7", 1),
        facts.Born("a8", "clerk", "a7", CONTENT.agents[0].children[0].children[0].spec, declared=True),
        facts.Starting("a8", 1),
    ]
    assert play.refused(Start("a2")).code == "name", "who it was is somebody else now"


def test_a_start_anew_is_admitted_like_any_birth() -> None:
    play = family()
    play.facts(Disband("scribe"))
    play.exit("clerk")
    play.exit("scribe")
    play.facts(Fork(kind="lines", name="two", parent="lead", grant=Grant(tokens=70)))
    short = play.refused(Start("scribe"))
    assert (short.code, short.asked, short.held, short.reserved) == ("budget", 40, 100, 70)
    play.facts(Disband("two"))
    play.exit("two")
    play.facts(Fork(kind="lines", name="clerk", parent="second"))
    assert play.refused(Start("scribe")).asked == "clerk", "a name below it is somebody's"
    play.facts(Rename("clerk", "writer"))
    play.facts(Start("scribe"))


def test_a_start_counts_against_the_number_of_agents() -> None:
    play = Play(fleet(agent("lead"), agent("second"), agents_max=2))
    play.facts(Stop("lead"))
    play.exit("lead")
    play.facts(Fork(kind="lines"))
    many = play.refused(Start("lead"))
    assert (many.code, many.held, many.used, many.asked) == ("agents", 2, 2, 1)


def test_a_forked_agent_that_is_gone_is_gone_for_good() -> None:
    play = family()
    play.facts(Disband("one"))
    play.exit("one")
    assert play.refused(Start("one")).message == "one is gone for good; fork another"
    assert play.facts(Disband("one")) == play.facts(Stop("one")) == []
    assert play.refused(Instruct("one", "Go.")).code == "state"
    assert play.refused(Restarting("one")).code == "state"
    assert play.refused(Rename("one", "two")).code == "state"


def test_a_child_starts_only_below_a_living_parent() -> None:
    play = family()
    play.facts(Stop("lead"))
    assert play.refused(Start("clerk")).held == "stopping"
    for name in ("clerk", "scribe", "one", "lead"):
        play.exit(name)
    assert play.refused(Start("scribe")).message == "its parent lead is stopped; start that first"
    assert play.refused(Start("clerk")).message == "its parent scribe is stopped; start that first"
    assert play.refused(Fork(kind="lines", parent="lead")).held == "stopped"


def test_a_stop_while_stopping_changes_nothing_and_a_disband_overtakes_it() -> None:
    play = family()
    play.facts(Stop("lead"))
    assert play.facts(Stop("lead")) == []
    assert play.facts(Disband("lead")) == [
        facts.Leaving("a1", "gone", "disband", "operator"),
        facts.Leaving("a2", "gone", "parent", "a1"),
        facts.Leaving("a3", "gone", "parent", "a2"),
    ]
    assert play.facts(Disband("lead")) == play.facts(Stop("lead")) == []
    for name in ("clerk", "scribe", "one", "lead"):
        play.exit(name)
    assert play.node("a1").state == "gone"


def test_a_disband_of_a_stopped_branch_ends_it_children_first() -> None:
    play = family()
    play.facts(Stop("lead"))
    for name in ("clerk", "scribe", "one", "lead"):
        play.exit(name)
    assert [fact for fact in play.facts(Disband("lead")) if isinstance(fact, facts.Left)] == [
        facts.Left("a3", "gone"), facts.Left("a2", "gone"), facts.Left("a1", "gone"),
    ]  # fmt: skip


def test_a_parent_does_not_go_before_the_last_of_several_stopped_children() -> None:
    play = Play(fleet(agent("lead", agent("b"), agent("c"), grant=Grant(descendants=5))))
    play.facts(Stop("lead"))
    for name in ("b", "c", "lead"):
        play.exit(name)
    left = [fact.agent for fact in play.facts(Disband("lead")) if isinstance(fact, facts.Left)]
    assert left == ["a2", "a3", "a1"]


def test_a_run_that_ends_meanwhile_is_no_crash() -> None:
    play = Play(fleet(agent("lead", restart="always")))
    play.ready("lead")
    play.facts(Stop("lead"))
    assert play.exit("lead", None, 9)[1:] == [facts.Left("a1", "stopped")]
    assert play.node("lead").crashed == 0


def test_a_rename_while_stopping_holds() -> None:
    play = family()
    play.facts(Stop("one"))
    play.facts(Rename("one", "two"))
    play.exit("two")
    assert play.node("two").state == "stopped"


def test_a_restart_keeps_the_children_and_the_conversation() -> None:
    play = family()
    assert play.facts(Restarting("lead")) == [facts.Rerun("a1", 1)]
    assert states(play) == {
        "lead": "starting",
        "scribe": "standing",
        "clerk": "standing",
        "one": "standing",
        "second": "standing",
    }
    assert play.facts(Fork(kind="lines", name="two", parent="lead"))[0].__class__ is facts.Born
    assert play.exit("lead", None, 15)[1:] == [facts.Starting("a1", 2, resume=True)]


def test_a_restart_of_a_branch_ends_each_run_of_it() -> None:
    play = family()
    assert play.facts(Restarting("lead", branch=True)) == [facts.Rerun(agent, 1) for agent in ("a1", "a2", "a3", "a5")]


def test_a_restart_in_backoff_does_not_wait() -> None:
    play = Play(fleet(agent("lead", restart="always")))
    play.ready("lead")
    play.exit("lead", 1)
    assert play.facts(Restarting("lead")) == [facts.Starting("a1", 2, resume=True)]
    assert play.tell(facts.Due("a1", 1))[1:] == [], "the wait was for the run before"


def test_a_restart_of_one_that_is_away_says_what_to_do() -> None:
    play = family()
    play.facts(Stop("one"))
    assert play.refused(Restarting("one")).held == "stopping"
    play.exit("one")
    assert play.refused(Restarting("one")).message == "one is stopped; start it instead"


def test_down_ends_all_and_up_begins_afresh() -> None:
    play = family()
    play.facts(Stop("second"))
    play.exit("second")
    assert play.facts(Down())[:2] == [facts.Downed(), facts.Leaving("a1", "gone", "down", "operator")]
    assert play.facts(Down()) == []
    assert "still stopping" in play.refused(accept(CONTENT)).message
    for name in ("clerk", "scribe", "one", "lead"):
        play.exit(name)
    assert {*states(play).values()} == {"gone"}
    assert play.refused(Start("a1")).code == "down"
    assert play.refused(Fork(kind="lines")).code == "down"
    again = play.facts(accept(CONTENT))
    assert [fact.name for fact in again if isinstance(fact, facts.Born)] == ["lead", "scribe", "clerk", "second"]


def test_what_was_disbanded_comes_back_with_down_and_up() -> None:
    play = family()
    play.facts(Disband("second"))
    play.exit("second")
    play.facts(Down())
    for name in ("clerk", "scribe", "one", "lead"):
        play.exit(name)
    assert "second" in [fact.name for fact in play.facts(accept(CONTENT)) if isinstance(fact, facts.Born)]


def test_wall_time_that_is_over_releases_a_living_agent_only() -> None:
    play = family()
    assert play.tell(facts.Expired("a5"))[1:] == [facts.Leaving("a5", "gone", "wall", "")]
    play.facts(Stop("second"))
    assert play.tell(facts.Expired("a4"))[1:] == [], "a stop that is under way stays one"
    play.exit("second")
    assert play.tell(facts.Expired("a4"))[1:] == []


def test_the_newest_of_the_gone_stay_in_view_and_their_usage_for_ever() -> None:
    play = Play(fleet(agent("lead")))
    play.ready("lead")
    for number in range(GONE_KEPT + 5):
        play.facts(Fork(kind="lines", name=f"n{number}", parent="lead"))
        play.spend(f"n{number}", 2)
        play.exit(f"n{number}")
    gone = [node.name for node in play.project.agents.values() if node.state == "gone"]
    assert gone == [f"n{number}" for number in range(5, GONE_KEPT + 5)]
    assert play.node("lead").branch.tokens == 2 * (GONE_KEPT + 5)
    assert play.tell(facts.Spent("a2", 1, ())) == [facts.Spent("a2", 1, ())], "a forgotten one may still be spoken of"


def test_a_main_that_is_forgotten_is_still_in_the_total() -> None:
    play = Play(fleet(agent("lead")))
    for number in range(GONE_KEPT + 1):
        play.facts(Fork(kind="lines", name=f"n{number}"))
        play.spend(f"n{number}", 3)
        play.exit(f"n{number}")
    assert "a2" not in play.project.agents
    assert play.project.folded.tokens == 3


def test_a_disbanded_declared_agent_is_not_forgotten_for_others() -> None:
    play = Play(fleet(agent("lead"), agent("second")))
    play.facts(Disband("second"))
    play.exit("second")
    for number in range(GONE_KEPT + 1):
        play.facts(Fork(kind="lines", name=f"n{number}", parent="lead"))
        play.exit(f"n{number}")
    assert play.node("a2").state == "gone"
    play.facts(Start("second"))


@pytest.mark.parametrize("request_", [Stop("lead"), Disband("lead"), Restarting("lead"), Fork(kind="lines"), Down()])
def test_nothing_is_asked_of_a_daemon_that_leaves(request_: Stop | Disband | Restarting | Fork | Down) -> None:
    play = family()
    play.tell(facts.Closing())
    assert play.refused(request_).code == "down"
