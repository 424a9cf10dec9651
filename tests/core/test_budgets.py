"""Where every token goes: what is carved, charged, told, cut, given back and lifted."""

from __future__ import annotations

from typing import Any

from supervisor.core import budgets, facts
from supervisor.core.facts import Fact
from supervisor.core.grants import Grant
from supervisor.core.requests import Disband, Down, Fork, Hold, Instruct, Rename, Restarting, Start, Stop
from tests.core.play import EVENT, Play, agent, fleet, usage


def numbers(play: Play, name: str, field: str = "tokens") -> tuple[int, int, int, int]:
    """held, spent, reserved, over."""
    account = play.node(name).accounts[field]
    return account.held, account.spent, account.reserved, account.over


def of(taken: list[Fact], *kinds: type) -> list[Any]:
    """The facts of these kinds."""
    return [fact for fact in taken if isinstance(fact, kinds)]


def working(*names: str, grant: Grant, **more: Any) -> Play:
    """A main, `lead`, in a turn, and below it a chain of children in turns of their own."""
    play = Play(fleet(agent("lead", grant=grant, task="Begin.", **more)))
    play.ready("lead")
    above = "lead"
    for name in names:
        play.facts(Fork("Go.", kind="lines", name=name, parent=above))
        play.ready(name)
        above = name
    return play


def chain(play: Play, *carved: tuple[str, int]) -> None:
    """A chain of children below `lead`, each in a turn, with so many tokens."""
    above = "lead"
    for name, tokens in carved:
        play.facts(Fork("Go.", kind="lines", name=name, parent=above, grant=Grant(tokens=tokens)))
        play.ready(name)
        above = name


def test_a_share_is_reserved_at_once_and_what_is_left_of_it_returns() -> None:
    play = working(grant=Grant(tokens=100))
    chain(play, ("one", 60))
    assert numbers(play, "lead") == (100, 0, 60, 0)
    play.spend("one", 25)
    assert numbers(play, "lead") == (100, 0, 60, 0)
    play.facts(Disband("one"))
    assert numbers(play, "lead") == (100, 0, 60, 0), "nothing returns before it is gone"
    play.exit("one")
    assert numbers(play, "lead") == (100, 25, 0, 0)


def test_a_child_that_was_killed_is_settled_like_any_other() -> None:
    play = working(grant=Grant(tokens=100))
    chain(play, ("one", 60))
    play.spend("one", 25)
    play.exit("one", None, 9)
    assert play.node("one" if "one" in play.project.names else "a2").state == "gone"
    assert numbers(play, "lead") == (100, 25, 0, 0)


def test_what_comes_late_is_charged_where_the_account_was_carved_from() -> None:
    play = working(grant=Grant(tokens=100))
    chain(play, ("one", 60))
    play.exit("one", 1)
    play.spend("a2", 30)
    assert numbers(play, "lead") == (100, 30, 0, 0)
    assert (play.node("a2").own.tokens, play.node("lead").own.tokens, play.node("lead").branch.tokens) == (30, 0, 30)


def test_who_names_no_share_draws_on_the_nearest_above() -> None:
    play = working("one", "two", grant=Grant(tokens=100))
    play.spend("two", 30)
    play.spend("one", 20)
    assert numbers(play, "lead") == (100, 50, 0, 0)
    assert play.node("two").accounts == {}


def test_where_nobody_above_holds_one_a_share_is_the_childs_own_limit() -> None:
    play = working(grant=Grant(turns=9))
    chain(play, ("one", 10))
    play.spend("one", 15)
    assert numbers(play, "one") == (10, 15, 0, 5)
    assert "tokens" not in play.node("lead").accounts


def test_what_a_child_is_over_is_its_parents_to_bear() -> None:
    play = working(grant=Grant(tokens=100))
    chain(play, ("one", 20))
    play.spend("one", 50)
    assert numbers(play, "one") == (20, 50, 0, 30)
    assert numbers(play, "lead") == (100, 30, 20, 0)
    assert play.refused(Fork(kind="lines", grant=Grant(tokens=51)), play.by("lead")).used == 30


def test_a_chain_of_three_cannot_spend_almost_three_times_what_its_root_holds() -> None:
    play = working(grant=Grant(tokens=100_000))
    chain(play, ("one", 90_000), ("two", 80_000))
    for name in ("two", "one", "lead"):
        play.spend(name, 90_000)
        assert play.node(name).cut, "each is cut at its first call past its limit at the latest"
    # Seen from the root: its own 90, the 90 it gave away, and the 90 that were spent below beyond these.
    assert play.node("lead").branch.tokens == 270_000
    assert numbers(play, "lead") == (100_000, 180_000, 90_000, 170_000)
    assert play.refused(Fork(kind="lines", grant=Grant(tokens=1)), play.by("two")).code == "budget"
    for name in ("two", "one", "lead"):
        assert play.facts(Instruct(name, "More."))[-1] == facts.Queued(play.node(name).id, play.node(name).inbox[-1]), (
            "no turn starts"
        )


def test_an_agent_that_spends_what_it_gave_its_child_is_over_at_once_for_all_above() -> None:
    play = working(grant=Grant(tokens=100))
    chain(play, ("one", 60), ("two", 50))
    play.spend("one", 40)
    assert numbers(play, "one") == (60, 40, 50, 30)
    assert numbers(play, "lead") == (100, 30, 60, 0)
    play.facts(Disband("two"))
    play.exit("two")
    assert numbers(play, "one") == (60, 40, 0, 0)
    assert numbers(play, "lead") == (100, 0, 60, 0)


def test_eighty_and_a_hundred_percent_are_told_once_to_the_agent_and_its_parent() -> None:
    play = working("one", grant=Grant())
    play.facts(Hold("one", Grant(tokens=100)))
    assert play.spend("one", 79)[1:] == []
    told = play.spend("one", 1)
    text = f"{EVENT}80 % of the tokens budget of one (a2) is used: 20 of 100 left."
    assert told[1:] == [
        facts.Warned("a2", "tokens", 80),
        facts.Queued("a2", facts.Input("m3", "digest", text, "fleet", wake=False)),
        facts.Queued("a1", facts.Input("m4", "digest", text, "fleet", wake=False)),
    ]
    assert play.spend("one", 1)[1:] == []
    full = play.spend("one", 30)
    assert of(full, facts.Warned, facts.Interrupted) == [
        facts.Warned("a2", "tokens", 100), facts.Interrupted("a2", 1, "tokens of one are used up"),
    ]  # fmt: skip
    assert len(of(full, facts.Queued)) == 2
    assert play.spend("one", 30)[1:] == [], "cut once, told once"


def test_straight_past_the_limit_is_told_once_not_twice() -> None:
    play = working(grant=Grant(tokens=100))
    assert of(play.spend("lead", 500), facts.Warned) == [facts.Warned("a1", "tokens", 100)]


def test_all_that_draw_on_a_used_up_account_are_cut_and_nobody_else() -> None:
    play = working("one", "two", grant=Grant(tokens=100))
    play.facts(Fork("Go.", kind="lines", name="own", parent="lead", grant=Grant(tokens=40)))
    play.ready("own")
    cut = of(play.spend("two", 60), facts.Interrupted)
    assert sorted(fact.agent for fact in cut) == ["a1", "a2", "a3"]
    play.facts(Fork("Go.", kind="lines", name="new", parent="own"))


def test_each_turn_is_cut_even_if_the_account_was_used_up_before() -> None:
    play = working(grant=Grant(tokens=100))
    chain(play, ("one", 100))
    assert of(play.spend("lead", 1), facts.Interrupted) == [facts.Interrupted("a1", 1, "tokens of lead are used up")]
    play.end_turn("lead")
    play.facts(Instruct("lead", "More."))
    play.exit("one")
    # What its child did not spend has come back, so the turn may run; and at its end it is cut again, told or not.
    assert play.node("lead").state == "working"
    assert of(play.spend("lead", 98), facts.Warned, facts.Interrupted) == []
    assert of(play.spend("lead", 1), facts.Warned, facts.Interrupted) == [
        facts.Interrupted("a1", 1, "tokens of lead are used up")
    ]


def test_turns_are_counted_by_what_starts_them_and_the_last_one_is_not_cut() -> None:
    play = working(grant=Grant(turns=2))
    assert play.node("lead").own.turns == 1
    play.tell(facts.TurnStarted("a1", 1))
    assert play.node("lead").own.turns == 1, "that is the one that we started"
    play.end_turn("lead")
    last = play.facts(Instruct("lead", "Again."))
    assert of(last, facts.Warned, facts.Interrupted) == [facts.Warned("a1", "turns", 100)]
    assert play.node("lead").state == "working"
    play.end_turn("lead")
    assert len(play.facts(Instruct("lead", "Once more."))) == 1, "no next turn starts"
    over = play.tell(facts.TurnStarted("a1", 1))
    assert numbers(play, "lead", "turns") == (2, 3, 0, 1), "one that the program starts is counted and shown"
    assert of(over, facts.Interrupted) == []


def test_more_wakes_whoever_waited_for_it() -> None:
    play = working("one", "two", grant=Grant(turns=3))
    for name in ("one", "two"):
        play.end_turn(name)
        play.facts(Instruct(name, "Again."))
    assert [play.node(name).state for name in ("one", "two")] == ["standing", "standing"]
    woken = of(play.facts(Hold("lead", Grant(turns=4))), facts.Handed)
    assert [fact.agent for fact in woken] == ["a2"], "there is one more turn, and it goes to the first"
    assert [fact.agent for fact in of(play.facts(Hold("lead", Grant(turns=9))), facts.Handed)] == ["a3"]


def test_what_a_child_leaves_wakes_its_parent() -> None:
    play = working(grant=Grant(turns=3))
    play.facts(Fork("Go.", kind="lines", name="one", parent="lead", grant=Grant(turns=2)))
    play.end_turn("lead")
    assert of(play.facts(Instruct("lead", "Again.")), facts.Handed) == []
    play.facts(Disband("one"))
    assert [fact.agent for fact in of(play.exit("one"), facts.Handed)] == ["a1"]


def test_usage_may_wait_for_more_only_while_it_reaches_no_threshold() -> None:
    play = working("one", grant=Grant(tokens=100))
    node = play.node("one")
    assert budgets.margin(play.project, node, usage(79))
    assert not budgets.margin(play.project, node, usage(80))
    play.spend("one", 85)
    assert budgets.margin(play.project, node, usage(14))
    assert not budgets.margin(play.project, node, usage(15))
    play.spend("one", 15)
    assert not budgets.margin(play.project, node, usage(1)), "with nothing left each call counts at once"
    assert budgets.margin(play.project, node, usage(0, turns=1))


def test_a_grant_is_a_total_within_what_its_holder_has_left() -> None:
    play = working(grant=Grant(tokens=100))
    chain(play, ("one", 20))
    assert play.facts(Hold("one", Grant(tokens=50)), play.by("lead")) == [facts.Granted("a2", Grant(tokens=50))]
    assert play.facts(Hold("one", Grant(tokens=50)))[0] == facts.Granted("a2", Grant(tokens=50)), "twice is once"
    assert numbers(play, "lead") == (100, 0, 50, 0)
    short = play.refused(Hold("one", Grant(tokens=101)))
    assert (short.code, short.asked, short.held, short.used, short.reserved) == ("budget", 51, 100, 0, 50)
    play.spend("one", 30)
    less = play.refused(Hold("one", Grant(tokens=29)))
    assert (less.code, less.asked, less.used) == ("value", 29, 30)
    play.facts(Hold("one", Grant(tokens=30)))
    assert numbers(play, "lead") == (100, 0, 30, 0)
    # A person adds at the root, and nobody else does.
    play.facts(Hold("lead", Grant(tokens=1000)))
    assert play.refused(Hold("lead", Grant(tokens=2000)), play.by("lead")).code == "authority"


def test_what_is_spent_already_costs_nothing_to_grant() -> None:
    play = working(grant=Grant(tokens=100))
    chain(play, ("one", 50))
    play.spend("one", 80)
    assert numbers(play, "lead") == (100, 30, 50, 0)
    play.facts(Hold("one", Grant(tokens=100)))
    assert numbers(play, "lead") == (100, 0, 100, 0)


def test_a_child_cannot_lift_the_cap_that_its_parent_set() -> None:
    play = working(grant=Grant(tokens=100))
    chain(play, ("one", 10), ("two", 5))
    assert play.refused(Hold("one", Grant(tokens=50)), play.by("one")).code == "authority"
    assert play.refused(Hold("lead", Grant(tokens=50)), play.by("one")).code == "authority"
    assert play.refused(Hold("two", Grant(tokens=11)), play.by("one")).code == "budget"
    assert play.refused(Fork(kind="lines", grant=Grant(tokens=11)), play.by("one")).code == "budget"


def test_a_share_named_later_takes_over_what_was_carved_past_it() -> None:
    play = working(grant=Grant(tokens=100, descendants=9))
    play.facts(Fork("Go.", kind="lines", name="one", parent="lead"))
    play.facts(Fork("Go.", kind="lines", name="two", parent="one", grant=Grant(tokens=40)))
    play.ready("one", "two")
    play.spend("one", 5)
    play.spend("two", 50)
    assert numbers(play, "lead") == (100, 15, 40, 0)
    assert play.refused(Hold("one", Grant(tokens=49))).used == 50, "no child holds more than its parent"
    play.facts(Hold("one", Grant(tokens=60)))
    assert numbers(play, "one") == (60, 10, 40, 0)
    assert numbers(play, "lead") == (100, 5, 60, 0)
    assert play.node("two").accounts["tokens"].holder == play.node("one").id
    play.facts(Hold("one", Grant(descendants=1)))
    assert numbers(play, "one", "descendants") == (1, 1, 0, 0)
    assert numbers(play, "lead", "descendants") == (9, 1, 1, 0)
    assert play.refused(Fork(kind="lines", parent="two")).field == "descendants"


def test_seats_are_free_again_when_their_agents_are_gone() -> None:
    play = working("one", "two", grant=Grant(descendants=2))
    assert numbers(play, "lead", "descendants") == (2, 2, 0, 0)
    play.facts(Stop("one"))
    play.exit("two")
    play.exit("one")
    assert numbers(play, "lead", "descendants") == (2, 1, 0, 0), "who is stopped keeps its seat"
    play.facts(Disband("one"))
    assert numbers(play, "lead", "descendants") == (2, 0, 0, 0)


def test_going_round_refunds_nothing_while_children_live() -> None:
    play = working(grant=Grant(tokens=100))
    chain(play, ("one", 60), ("two", 50))
    play.spend("two", 50)
    before = numbers(play, "lead"), numbers(play, "one")
    play.facts(Rename("one", "first"))
    play.facts(Restarting("first"))
    play.exit("first")
    play.ready("first")
    play.facts(Restarting("lead"))
    play.exit("lead")
    play.ready("lead")
    assert (numbers(play, "lead"), numbers(play, "first")) == before
    play.facts(Stop("first"))
    play.exit("two")
    play.exit("first")
    play.facts(Start("first"))
    assert numbers(play, "first") == (60, 50, 0, 0), "its forked child is gone, and what that spent is spent"
    assert numbers(play, "lead") == before[0]


def test_a_replay_knows_the_grant_and_not_the_remainder() -> None:
    play = working(grant=Grant(tokens=100))
    chain(play, ("one", 60))
    play.spend("one", 45)
    project = play.replayed()
    assert (project.agents["a2"].grant.tokens, project.agents["a2"].accounts["tokens"].free) == (60, 15)
    play.reopen()
    assert play.node("one").grant.tokens == 60
    assert numbers(play, "one") == (60, 45, 0, 0)


def test_taking_a_right_from_a_parent_takes_it_from_all_below() -> None:
    play = working(grant=Grant(tools=("read", "bash"), models=("big-*", "small")))
    play.facts(Fork(kind="lines", name="one", parent="lead", grant=Grant(tools=("bash",), models=("big-1*", "small"))))
    play.facts(Hold("lead", Grant(tools=("read",), models=("big-1-x", "other"))))
    said = play.refused(Fork(kind="lines", grant=Grant(tools=("bash",))), play.by("one"))
    assert (said.code, said.held) == ("rights", "")
    play.facts(Fork(kind="lines", model="big-1-x"), play.by("one"))
    assert play.refused(Fork(kind="lines", model="small"), play.by("one")).held == "big-1-x"


def test_the_books_close_at_nothing_when_all_is_over() -> None:
    play = working(grant=Grant(tokens=100, turns=50, cost=900))
    chain(play, ("one", 60), ("two", 50))
    for name in ("lead", "one", "two"):
        play.spend(name, 70, cost=200)
    play.facts(Down())
    for name in ("two", "one", "lead"):
        play.exit(name)
    assert {node.state for node in play.project.agents.values()} == {"gone"}
    assert play.node("a1").branch.tokens == 210
    assert play.node("a1").branch.cost == 600
