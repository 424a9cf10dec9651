"""Who burnt the tokens: by agent, branch, model, role and day, gone agents included, however long ago."""

from __future__ import annotations

from datetime import date

import pytest
from attrs import evolve

from supervisor.core import books, facts, spending, view
from supervisor.core.grants import Grant
from supervisor.core.ledger import NANO, ZERO, Report, Usage
from supervisor.core.requests import Disband, Fork
from supervisor.core.spending import By
from tests.core.play import OPERATOR, Play, agent, fleet

TODAY = date(2026, 11, 30)


def on(play: Play, day: str) -> None:
    """The local day of what comes."""
    play.stamp = evolve(play.stamp, day=day)


def call(play: Play, name: str, tokens: int, model: str = "", **more: int) -> None:
    """One model call."""
    node = play.node(name)
    report = Report("call", Usage(input=tokens, calls=1, **more), model=model)
    play.tell(facts.Spent(node.id, node.run, (report,)))


def family() -> Play:
    """`lead` (an integrator) with `one` and `two` (reviewers), and `second`, on two days."""
    play = Play(fleet(agent("lead", role="integrator"), agent("second")))
    for name in ("one", "two"):
        play.facts(Fork("Go.", kind="lines", name=name, parent="lead", role="reviewer"))
    play.ready("lead", "second", "one", "two")
    on(play, "2026-11-29")
    call(play, "lead", 100, "big")
    call(play, "one", 10, "small")
    on(play, "2026-11-30")
    call(play, "one", 20, "small")
    call(play, "one", 5, "big")
    call(play, "second", 7, "small", cost=NANO)
    return play


def inputs(play: Play, group: By, since: str = spending.ALL, *, branch: str = "") -> dict[str, int]:
    """The rows in which tokens were spent."""
    node = play.node(branch) if branch else None
    told = spending.spending(play.project, OPERATOR, 5e3, node, group, since)
    of = "branch" if group == "branch" else "own"
    rows = told["agents"] if group in ("agent", "branch") else told["rows"]
    key = "name" if group in ("agent", "branch") else group
    assert told["total"]["input"] == sum(row[of]["input"] for row in rows)
    return {row[key]: row[of]["input"] for row in rows if row[of]["input"]}


def test_the_same_books_are_read_by_agent_branch_model_role_and_day() -> None:
    play = family()
    assert inputs(play, "agent") == {"second": 7, "lead": 100, "one": 35}
    assert inputs(play, "branch") == {"second": 7, "lead": 135}
    assert inputs(play, "model") == {"small": 37, "big": 105}
    assert inputs(play, "role") == {"": 7, "integrator": 100, "reviewer": 35}
    assert inputs(play, "day") == {"2026-11-30": 32, "2026-11-29": 110}


def test_the_costliest_is_first_and_where_no_cost_is_known_who_spent_most() -> None:
    assert [*inputs(family(), "agent")] == ["second", "lead", "one"]
    assert [*inputs(family(), "day")] == ["2026-11-30", "2026-11-29"]


def test_a_day_shows_what_was_spent_from_then_on() -> None:
    play = family()
    assert inputs(play, "agent", "2026-11-30") == {"second": 7, "one": 25}
    assert inputs(play, "branch", "2026-11-30") == {"second": 7, "lead": 25}
    assert inputs(play, "agent", "2026-12-01") == {}


def test_an_agent_and_all_below_it_stand_apart_and_leaves_add_up_to_the_root() -> None:
    """A parent's branch is its own and its descendants', and never counts one of them twice."""
    play = family()
    rows = {row["name"]: row for row in spending.spending(play.project, OPERATOR, 5e3)["agents"]}
    assert (rows["lead"]["own"]["input"], rows["lead"]["branch"]["input"]) == (100, 135)
    assert inputs(play, "branch", branch="lead") == {"lead": 100, "one": 35}
    assert inputs(play, "agent", branch="one") == {"one": 35}


def test_who_is_gone_and_forgotten_is_still_named_with_what_it_spent() -> None:
    play = family()
    play.facts(Disband("one"))
    play.exit("one")
    play.tell(facts.Forgotten("a3"))
    assert "a3" not in play.project.agents
    rows = {row["id"]: row for row in spending.spending(play.project, OPERATOR, 5e3)["agents"]}
    assert (rows["a3"]["name"], rows["a3"]["role"], rows["a3"]["state"]) == ("one", "reviewer", "gone")
    assert rows["a3"]["own"]["input"] == 35
    assert inputs(play, "branch", "2026-11-30") == {"second": 7, "lead": 25}
    assert inputs(play, "agent", "2026-11-30", branch="lead") == {"one": 25}
    mine = spending.spending(play.project, play.by("second"), 5e3)
    assert [row["name"] for row in mine["agents"]] == ["second"], "another instance's dead are behind the wall as well"


def test_an_old_day_keeps_its_roles_and_models_and_an_agent_its_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "DAYS", 2)
    play = family()
    on(play, "2026-12-01")
    call(play, "second", 1, "small")
    assert books.written(play.node("lead")) == (), "the 29th is not kept agent by agent any more"
    assert inputs(play, "day") == {"2026-12-01": 1, "2026-11-30": 32, "2026-11-29": 110}
    assert inputs(play, "role", "2026-11-29") == {"": 8, "integrator": 100, "reviewer": 35}
    assert inputs(play, "model") == {"small": 38, "big": 105}
    assert inputs(play, "agent") == {"second": 8, "lead": 100, "one": 35}, "while it is in view"
    assert inputs(play, "agent", "2026-11-29") == {"second": 8, "": 110, "one": 25}
    assert play.replayed() == play.project


def test_books_stay_small_whatever_agents_call_themselves_and_their_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "ROWS", 20)
    play = family()
    for number in range(200):
        call(play, "lead", 1, f"model-{number}")
    for number in range(30):
        child = play.facts(Fork("Go.", kind="lines", name=f"k{number}", parent="lead", role=f"role-{number}"))[0]
        assert isinstance(child, facts.Born)
        play.ready(child.agent)
        call(play, child.agent, 1, f"own-{number}")
        play.facts(Disband(child.agent))
        play.exit(child.agent)
        play.tell(facts.Forgotten(child.agent))
    kept = play.project.books
    assert len(play.node("lead").rows) <= 2 * (books.MODELS + 1)
    assert sum(1 + len(past.rows) for past in kept.past.values()) <= 20
    assert len(kept.summed["2026-11-30"]) <= books.PAIRS + 1
    assert len(kept.ever) <= books.EVER + 1
    assert spending.spending(play.project, OPERATOR, 0.0)["total"] == view.usage(
        sum((play.node(name).branch for name in ("lead", "second")), ZERO)
    )


def test_a_turn_belongs_to_the_model_that_answers_in_it() -> None:
    """When it begins a program may not have said yet what it runs on, or only by another name."""
    play = Play(fleet(agent("lead", task="Begin.", model="big-*")))
    on(play, "2026-11-30")
    play.ready("lead")
    assert play.node("lead").rows == {("2026-11-30", "big-*"): Usage(turns=1)}
    call(play, "lead", 5, "big-7")
    assert play.node("lead").rows == {("2026-11-30", "big-7"): Usage(input=5, calls=1, turns=1)}


def test_a_day_begins_with_its_first_usage_and_is_told_once() -> None:
    play = Play(fleet(agent("lead")))
    play.ready("lead")
    on(play, "2026-11-30")
    spoke = play.tell(facts.Spoke("a1", 1, "hello"))
    assert not any(isinstance(fact, facts.Dawned) for fact in spoke)
    spent = facts.Spent("a1", 1, (Report("call", Usage(input=1)),))
    assert play.tell(spent)[:2] == [facts.Dawned("2026-11-30"), spent]
    assert play.tell(spent)[0] == spent
    on(play, "2026-12-01")
    assert play.tell(spent)[0] == facts.Dawned("2026-12-01")


def test_calls_whose_usage_never_came_are_counted_with_their_agent_and_model() -> None:
    play = family()
    play.tell(facts.Spent("a3", 1, (), incomplete=2))
    told = spending.spending(play.project, OPERATOR, 5e3, None, "model", "2026-11-30")
    assert {row["model"]: row["own"]["incomplete"] for row in told["rows"]} == {"small": 0, "big": 2}
    assert told["total"]["incomplete"] == play.node("lead").branch.incomplete == 2


def test_models_without_a_price_are_named() -> None:
    told = spending.spending(family().project, OPERATOR, 5e3)
    assert told["unpriced"] == ["big"]


def test_tokens_of_a_child_are_carved_from_its_parent_and_its_turns_are_its_own() -> None:
    """A child that spends its reservation leaves its parent what that had left, and no turn of the parent's is used."""
    play = Play(fleet(agent("lead", grant=Grant(tokens=100, turns=5))))
    play.facts(Fork("Go.", kind="lines", name="kid", parent="lead", grant=Grant(tokens=30, turns=2)))
    play.ready("lead", "kid")
    call(play, "kid", 30)
    held = view.accounts(play.node("lead"))
    assert held["tokens"] | {"over": 0} == {"held": 100, "spent": 0, "reserved": 30, "free": 70, "over": 0}
    assert (held["turns"]["spent"], held["turns"]["reserved"]) == (0, 2)
    assert view.accounts(play.node("kid"))["tokens"]["free"] == 0


@pytest.mark.parametrize(
    ("text", "day"),
    [("today", "2026-11-30"), ("yesterday", "2026-11-29"), ("1d", "2026-11-30"), ("7d", "2026-11-24"),
     ("2026-11-01", "2026-11-01"), (" ALL ", "")],
)  # fmt: skip
def test_days_are_written_as_people_say_them(text: str, day: str) -> None:
    assert spending.first_day(text, TODAY) == day


@pytest.mark.parametrize("text", ["", "0d", "-1d", "7", "999999999d", "2026-13-01", "2026-1-1", "20261130", "tomorrow"])
def test_what_is_no_day_is_said_with_what_would_be_one(text: str) -> None:
    with pytest.raises(ValueError, match="such as 7d"):
        spending.first_day(text, TODAY)
