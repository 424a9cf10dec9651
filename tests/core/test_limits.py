"""Parked agents and stopped logins, by the core alone: one sentence of the rules each."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from supervisor.core import facts, requests, view
from supervisor.core.decide.park import APART, FURTHEST, PROBE, WAITS
from supervisor.core.facts import Fact, Limit, Parked, Started, Starting, TaskEnded, Tripped, Unparked
from supervisor.core.grants import Grant
from tests.core.play import OPERATOR, Play, agent, fleet

LOGIN = "login-1"


def begun(*names: str, **spec: Any) -> Play:
    """Mains with one login, that stand by."""
    play = Play(fleet(*(agent(name, **spec) for name in names)))
    for name in names:
        come_up(play, name)
    return play


def come_up(play: Play, name: str, login: str = LOGIN, session: str = "s", **ready: Any) -> list[Fact]:
    node = play.node(name)
    return [
        *play.tell(Started(node.id, node.run, 100, 1, login)),
        *play.tell(facts.Ready(node.id, node.run, session, **ready)),
    ]


def limit(play: Play, name: str, sort: Limit = "rate", until: float | None = None) -> list[Fact]:
    node = play.node(name)
    return play.tell(facts.Limited(node.id, node.run, sort, until, "429"))


def meet(play: Play, name: str, sort: Limit = "rate", until: float | None = None) -> list[Fact]:
    """A task that meets a limit, and the end of its turn."""
    play.ask(requests.Instruct(name, "Do it.\nAll of it."))
    taken = limit(play, name, sort, until)
    node = play.node(name)
    return [*taken, *play.tell(facts.TurnEnded(node.id, node.run, "error", "", "429"))]


def of(kind: type, taken: list[Fact]) -> list[Fact]:
    return [fact for fact in taken if isinstance(fact, kind)]


def wait(play: Play, name: str) -> float:
    """How long it is parked from now on."""
    until = play.node(name).until
    assert until is not None
    return until - play.stamp.at


@pytest.mark.parametrize("sort", [*WAITS])
def test_where_no_end_is_named_it_is_ours_and_doubles_in_a_row_up_to_the_longest(sort: Limit) -> None:
    play, waits = begun("one"), list[float]()
    play.ask(requests.Instruct("one", "Go."))
    for _ in range(9):
        limit(play, "one", sort)
        waits.append(wait(play, "one"))
        play.due("one")
    first, longest = WAITS[sort]
    assert waits[0] == first
    assert waits[-1] == longest
    assert all(after in (2 * before, longest) for before, after in pairwise(waits))


def test_a_row_ends_with_an_answer() -> None:
    play = begun("one")
    meet(play, "one")
    play.due("one")
    limit(play, "one")
    assert wait(play, "one") == 30
    play.due("one")
    play.spend("one", 5, output=3)
    limit(play, "one")
    assert wait(play, "one") == 15


@pytest.mark.parametrize("until", [FURTHEST * 2 + 1000, 1e300, float("inf"), float("nan"), -1e9])
def test_an_end_that_cannot_be_is_none(until: float) -> None:
    play = begun("one")
    meet(play, "one", "quota", until)
    assert round(wait(play, "one")) == 3599
    assert not play.node("one").park.named  # type: ignore[union-attr]  # it is parked


def test_an_end_that_is_over_is_waited_for_longer_each_time_in_a_row() -> None:
    play, waits = begun("one"), list[float]()
    play.ask(requests.Instruct("one", "Go."))
    for _ in range(9):
        limit(play, "one", until=play.stamp.at - 5)
        waits.append(wait(play, "one"))
        play.due("one")
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_of_two_ends_the_named_one_counts_and_of_two_named_ones_the_later() -> None:
    play = Play(fleet(agent("one")))
    come_up(play, "one", login="")
    play.ask(requests.Instruct("one", "Go."))
    limit(play, "one", "quota")
    limit(play, "one", "quota", 1500.0)
    assert play.node("one").until == 1500
    limit(play, "one", "rate", 1400.0)
    limit(play, "one", "auth")
    assert play.node("one").until == 1500
    limit(play, "one", "rate", 1600.0)
    assert play.node("one").until == 1600


@pytest.mark.parametrize("outcome", ["ok", "error", "aborted"])
def test_a_turn_that_met_a_limit_ends_no_task_however_it_ends(outcome: facts.Outcome) -> None:
    play = begun("one")
    play.ask(requests.Instruct("one", "Go."))
    limit(play, "one")
    assert of(TaskEnded, play.tell(facts.TurnEnded(play.node("one").id, 1, outcome, "Done!"))) == []
    assert play.node("one").task is not None


def test_what_the_agent_itself_says_is_done_is_done() -> None:
    play = begun("one")
    play.ask(requests.Instruct("one", "Go."))
    node = play.node("one")
    play.tell(facts.Said(node.id, 1, "done", "", "All of it."))
    limit(play, "one")
    assert of(TaskEnded, play.tell(facts.TurnEnded(node.id, 1, "error"))) == [TaskEnded(node.id, "done", "All of it.")]


def test_what_goes_on_is_free_and_is_told_to_go_on_with_what_it_had() -> None:
    play = Play(fleet(agent("one", grant=Grant(turns=1))))
    come_up(play, "one")
    for _ in range(3):
        meet(play, "one") if play.node("one").task is None else limit(play, "one")
        play.tell(facts.TurnEnded(play.node("one").id, 1, "error"))
        taken = play.due("one")
    text = play.node("one").handed[0].text
    assert "Go on with your task where you were: Do it. All of it." in text
    assert [type(fact) for fact in taken][-3:] == [Unparked, facts.Queued, facts.Handed]
    account = play.node("one").accounts["turns"]
    assert (account.spent, account.held, play.node("one").own.turns) == (1, 1, 1)
    assert of(TaskEnded, play.end_turn("one", "Done.")) == [TaskEnded(play.node("one").id, "done", "Done.")]


@pytest.mark.parametrize(("session", "fresh"), [("", False), ("s", True)])
def test_another_conversation_is_given_the_whole_task(session: str, fresh: bool) -> None:
    play = Play(fleet(agent("one")))
    come_up(play, "one", session=session)
    meet(play, "one")
    play.exit("one", 1)
    play.due("one")
    come_up(play, "one", session=session, fresh=fresh)
    assert play.node("one").handed[0].text.endswith("do this task.\nDo it.\nAll of it.")


def test_what_was_not_begun_with_is_given_as_itself() -> None:
    play = Play(fleet(agent("one")))
    come_up(play, "one", tells=True)
    meet_text = "Do it."
    play.ask(requests.Instruct("one", meet_text))
    limit(play, "one")
    play.exit("one", 1)
    play.due("one")
    come_up(play, "one", tells=True)
    (given,) = play.node("one").handed
    assert (given.sort, given.text, given.again) == ("task", meet_text, True)
    assert play.node("one").own.turns == 1


def test_a_parent_is_told_once_until_a_model_has_answered() -> None:
    play = Play(fleet(agent("lead", agent("kid"))))
    come_up(play, "lead")
    come_up(play, "kid", "login-2")

    def told(taken: list[Fact]) -> int:
        return sum(isinstance(fact, facts.Queued) and " is parked " in fact.input.text for fact in taken)

    assert told(meet(play, "kid")) == 1
    for _ in range(3):
        play.due("kid")
        assert told(limit(play, "kid")) == 0
    play.due("kid")
    play.spend("kid", 5, output=3)
    assert told(limit(play, "kid")) == 1
    waiting = play.node("lead").inbox
    assert [item.wake for item in waiting] == [False, False], "news, and no reason for a turn"
    assert "UTC" in waiting[0].text


def test_a_question_is_still_open_after_a_park() -> None:
    play = begun("asks", "meets")
    play.ask(requests.Instruct("asks", "Go."))
    node = play.node("asks")
    play.tell(facts.Blocked(node.id, 1, "person", "May I?"))
    play.end_turn("asks")
    meet(play, "meets", "quota")
    assert play.node("asks").state == "parked"
    play.ask(requests.Instruct("asks", "You may."))
    assert of(facts.Handed, play.due("meets")) != []
    play.spend("meets", 5, output=3)
    assert of(Unparked, play.due("asks")) == [Unparked(node.id, "waiting")]
    assert [item.text for item in play.node("asks").handed] == ["You may."]


def test_only_quotas_and_failed_logins_stop_a_login() -> None:
    for sort in WAITS:
        play = begun("one", "two")
        taken = meet(play, "one", sort)
        assert bool(of(Tripped, taken)) == (sort in ("quota", "auth"))
        assert (play.node("two").state == "parked") == (sort in ("quota", "auth"))


def test_a_turn_that_runs_is_left_to_its_end_and_the_next_one_waits() -> None:
    play = begun("one", "two")
    play.ask(requests.Instruct("two", "Go."))
    play.ask(requests.Instruct("two", "And on."))
    meet(play, "one", "quota", 2000.0)
    assert play.node("two").state == "working"
    taken = play.end_turn("two", "Done.")
    assert of(TaskEnded, taken) == [TaskEnded(play.node("two").id, "done", "Done.")]
    assert play.node("two").state == "parked"
    assert (play.node("two").until, len(play.node("two").inbox)) == (2000, 1)


def test_a_login_that_is_stopped_is_stopped_anew_only_for_much_longer() -> None:
    play = begun("one", "two", "three")
    for name in ("two", "three"):
        play.ask(requests.Instruct(name, "Go."))
    meet(play, "one", "quota", 2000.0)
    assert of(Tripped, limit(play, "two", "quota", 2030.0)) == []
    assert len(of(Tripped, limit(play, "three", "quota", 2300.0))) == 1
    assert {play.node(name).until for name in ("one", "two", "three")} == {2300.0}


def test_at_its_end_one_is_tried_and_the_others_wait_for_how_that_goes() -> None:
    play = begun("one", "two", "three")
    meet(play, "one", "quota", 1100.0)
    assert of(Unparked, play.due("one")) != []
    for name in ("two", "three"):
        assert of(Parked, play.due(name)) != []
        assert wait(play, name) >= PROBE
    play.spend("one", 5, output=3)
    assert play.project.tripped == {}
    assert (wait(play, "two"), wait(play, "three")) == (APART, 2 * APART)


def test_one_that_leaves_instead_of_being_tried_is_followed_by_the_next() -> None:
    play = begun("one", "two")
    meet(play, "one", "quota", 1100.0)
    play.due("one")
    play.ask(requests.Disband("one"))
    assert of(Unparked, play.due("two")) != []


def test_a_run_that_its_login_holds_up_has_not_failed() -> None:
    play = begun("one", restart="on-failure")
    meet(play, "one", "quota", 2000.0)
    (born,) = of(facts.Born, play.facts(requests.Fork(kind="lines", name="new", task="Go.")))
    assert isinstance(born, facts.Born)
    taken = play.tell(facts.Unstarted(born.agent, 1, "its login takes no more for now", LOGIN))
    assert [type(fact) for fact in taken] == [facts.Unstarted, Parked]
    new = play.node("new")
    assert (new.state, new.until, new.crashes, new.crashed, len(new.inbox)) == ("parked", 2000, 0, 0, 1)
    play.facts(requests.Start("new"), OPERATOR)
    assert (new.state, new.run, new.trying) == ("starting", 2, True)


def test_a_daemon_that_takes_over_parks_again_and_starts_nobody_who_waits() -> None:
    play = begun("one", "two")
    meet(play, "one", "quota", 2000.0)
    taken = play.reopen()
    assert of(Starting, taken) == []
    assert {fact.agent for fact in taken if isinstance(fact, Parked)} == {"a1", "a2"}
    assert play.node("one").task is not None
    assert of(TaskEnded, taken) == []


def test_logins_are_shown_with_how_many_wait() -> None:
    play = begun("one", "two")
    meet(play, "one", "quota", 2000.0)
    (shown,) = view.tree(play.project, OPERATOR, "warden", 1500.0)["limits"]
    assert shown == {"kinds": ["lines"], "sort": "quota", "until": 2000.0, "text": "429", "parked": 2}
    one = view.agent(play.project, play.node("one"), 1500.0)
    assert (one["until"], one["limit"]) == (2000.0, {"sort": "quota", "text": "429"})


def test_after_another_login_in_the_same_place_all_who_wait_there_come_back() -> None:
    play = Play(fleet(*(agent(name) for name in ("one", "two", "beside"))))
    for name, login in (("one", "home.anna"), ("two", "home.anna"), ("beside", "other.anna")):
        come_up(play, name, login)
    meet(play, "one", "auth")
    meet(play, "beside", "auth")
    play.exit("one")
    play.facts(requests.Start("one"), OPERATOR)
    come_up(play, "one", "home.ben")
    play.spend("one", 5, output=3)
    assert [*play.project.tripped] == ["other.anna"]
    assert wait(play, "two") == APART
    assert wait(play, "beside") > 1000


def test_who_waits_in_a_place_waits_for_whoever_logs_in_there() -> None:
    play = Play(fleet(*(agent(name) for name in ("one", "two", "runs"))))
    for name, login in (("one", "home.anna"), ("two", "home.ben"), ("runs", "home.cleo")):
        come_up(play, name, login)
    meet(play, "one", "quota", 2000.0)
    assert play.node("two").park is None, "another account goes on"
    meet(play, "two", "quota", 3000.0)
    assert {play.node(name).until for name in ("one", "two")} == {3000.0}
    assert play.node("runs").park is None


def test_those_of_other_projects_come_back_behind() -> None:
    play = begun("one", "two")
    meet(play, "one", "quota", 2000.0)
    play.tell(facts.Mended(LOGIN, elsewhere=True, after=5.0))
    assert wait(play, "two") == 5.0 + APART
