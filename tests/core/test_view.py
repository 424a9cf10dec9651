"""What is shown: totals that add up, refusals and numbers in the units that people and programs are promised."""

from __future__ import annotations

from supervisor.core import facts, spending, view
from supervisor.core.grants import Grant
from supervisor.core.ledger import NANO
from supervisor.core.requests import Disband, Fork, Instruct
from tests.core.play import OPERATOR, Play, agent, fleet


def family() -> Play:
    """`lead` spent 10 and 1 USD, its child `one` 5, `second` 7."""
    play = Play(fleet(agent("lead", grant=Grant(tokens=100, cost=3 * NANO, children=2)), agent("second")))
    play.facts(Fork("Go.", kind="lines", name="one", parent="lead", grant=Grant(tokens=30), role="tester", max_tasks=4))
    play.ready("lead", "one", "second")
    play.spend("lead", 10, cost=NANO, output=2)
    play.spend("one", 5, calls=1)
    play.spend("second", 7)
    return play


def test_own_and_branch_stand_apart_and_gone_agents_are_in_the_total() -> None:
    play = family()
    play.facts(Disband("one"))
    play.exit("one")
    shown = spending.spending(play.project, OPERATOR, play.stamp.at)
    assert [(row["name"], row["own"]["input"], row["branch"]["input"]) for row in shown["agents"]] == [
        ("lead", 10, 15), ("second", 7, 7), ("one", 5, 5),
    ]  # fmt: skip
    assert (shown["total"]["input"], shown["total"]["cost"]) == (22, 1.0)
    assert spending.spending(play.project, play.by("lead"), 0.0)["total"]["input"] == 15
    assert spending.spending(play.project, OPERATOR, 0.0, play.node("second"))["total"]["input"] == 7


def test_an_agent_is_shown_with_what_it_holds_and_has_left() -> None:
    play = family()
    lead = view.tree(play.project, OPERATOR, "warden", play.stamp.at)["agents"][0]
    assert lead["grant"]["tokens"] == {"held": 100, "spent": 12, "reserved": 30, "free": 58, "over": 0}
    assert lead["grant"]["cost"] == {"held": 3.0, "spent": 1.0, "reserved": 0.0, "free": 2.0, "over": 0.0}
    (one,) = lead["children"]
    assert (one["name"], one["role"], one["state"], one["tasks"]) == ("one", "tester", "working", {"done": 0, "max": 4})
    assert one["pid"] == 101


def test_a_branch_of_the_tree_is_shown_alone() -> None:
    play = family()
    shown = view.tree(play.project, OPERATOR, "warden", 0.0, play.node("one"))["agents"]
    assert [one["name"] for one in shown] == ["one"]


def test_an_exit_record_names_what_had_to_be_ended() -> None:
    play = family()
    killed = (facts.Killed(77, "sleep", "KILL", escaped=True),)
    play.tell(facts.Exited("a3", 1, None, 15, 2.0, killed, (78,)))
    assert view.ended([play.node("a3")]) == [
        {
            "id": "a3", "name": "one", "state": "gone", "unkillable": [78],
            "killed": [{"pid": 77, "argv0": "sleep", "how": "KILL", "escaped": True}],
        }
    ]  # fmt: skip


def test_an_agent_is_told_who_it_is() -> None:
    play = family()
    me = view.whoami(play.project, play.node("one"))
    assert (me["id"], me["name"], me["role"], me["parent"]) == ("a3", "one", "tester", {"id": "a1", "name": "lead"})
    assert me["grant"]["tokens"]["free"] == 25
    assert me["task"] == "Go."
    assert view.whoami(play.project, play.node("lead"))["bounds"]["children"] == 2


def test_what_would_be_lost_is_told_before_it_is_ended() -> None:
    play = family()
    play.facts(Instruct("one", "Another."))
    assert view.unsettled(play.node("one")) == {"tasks": 1, "inputs": 1, "turn": True}
    assert view.unsettled(play.node("second")) == {"tasks": 0, "inputs": 0, "turn": False}


def test_a_tree_as_deep_as_the_cap_is_drawn() -> None:
    play = Play(fleet(agent("n0"), depth=64))
    for level in range(1, 64):
        play.facts(Fork(kind="lines", name=f"n{level}", parent=f"n{level - 1}"))
    shown, deep = view.tree(play.project, OPERATOR, "warden", 0.0)["agents"], 0
    while shown:
        shown, deep = shown[0]["children"], deep + 1
    assert deep == 64
