"""Whose word a model is, step by step, and what follows where a program uses one that its agent does not hold."""

from __future__ import annotations

import pytest
from attrs import evolve

from supervisor.core import facts, models
from supervisor.core.facts import Outside, Ready, Spent
from supervisor.core.grants import Grant
from supervisor.core.ledger import Report
from supervisor.core.requests import Fork, Hold, Restarting
from supervisor.core.spec import Declared, Fleet, Role, Spec
from tests.core.play import EVENT, Play, accept, agent, fleet, usage

ROLE = Role("scout", Spec("lines", role="scout", model="of-role", model_from="role scout"))
BARE = Role("bare", Spec("lines", role="bare"))
DEFAULTS = Spec("", model="of-defaults", model_from="[defaults]")


def lead(**more: object) -> Declared:
    return agent("lead", **({"model": "of-parent", "model_from": "agents.toml"} | more))  # type: ignore[arg-type]  # of Spec


def forked(play: Play, **asked: str) -> tuple[str, str]:
    """What a fork under lead comes to: its model, and whose word that is."""
    born = play.facts(Fork(**asked), play.by("lead"))[0]  # type: ignore[arg-type]  # texts only
    assert isinstance(born, facts.Born)
    return models.chosen(play.project, play.project.agents[born.agent])


def test_a_fork_beats_its_role_that_the_defaults_that_the_parent() -> None:
    play = Play(fleet(lead(), roles=(ROLE, BARE), defaults=DEFAULTS))
    play.ready("lead")
    assert forked(play, role="scout", model="of-fork") == ("of-fork", "fork")
    assert forked(play, role="scout") == ("of-role", "role scout")
    assert forked(play, kind="lines") == ("of-defaults", "[defaults]")
    play.facts(accept(fleet(lead(), roles=(ROLE, BARE))))
    assert forked(play, kind="lines") == ("of-parent", "parent lead (a1)"), "the defaults are those accepted last"
    assert forked(play, role="bare") == ("of-parent", "parent lead (a1)")
    assert forked(play, kind="other") == ("", "program"), "another program knows other models"


def test_a_parent_that_was_told_nothing_gives_what_it_says_it_uses() -> None:
    play = Play(fleet(agent("lead")))
    play.tell(facts.Started("a1", 1, 7, 7), Ready("a1", 1, "s", "its-own"))
    assert forked(play, kind="lines") == ("its-own", "parent lead (a1)")


def test_a_role_that_takes_the_model_back_leaves_it_to_the_program() -> None:
    plain = Role("plain", Spec("lines", role="plain", model_from="role plain"))
    play = Play(fleet(lead(), roles=(plain,)))
    play.ready("lead")
    assert forked(play, role="plain") == ("", "program")


def test_a_forked_agent_keeps_its_model_through_reloads_and_restarts() -> None:
    play = Play(fleet(lead(), defaults=DEFAULTS))
    play.ready("lead")
    assert forked(play, kind="lines", name="child") == ("of-defaults", "[defaults]")
    play.ready("child")
    play.facts(accept(fleet(lead(), defaults=evolve(DEFAULTS, model="newer"))))
    play.facts(Restarting("child"))
    play.exit("child", 0)
    assert models.chosen(play.project, play.node("child")) == ("of-defaults", "[defaults]")
    assert forked(play, kind="lines") == ("newer", "[defaults]"), "and whoever is forked now has the new one"


def test_a_declared_agent_restarts_with_the_model_that_a_reload_gives_it() -> None:
    play = Play(fleet(lead()))
    play.ready("lead")
    assert facts.Rerun("a1", 1) in play.facts(accept(fleet(lead(model="other"))))
    moved = lead(model="other", model_from="[defaults]")
    assert play.facts(accept(fleet(moved)))[1:] == [facts.Respecified("a1", moved.spec)], (
        "whose word it is is no change"
    )
    assert models.chosen(play.project, play.node("lead")) == ("other", "[defaults]")


def test_one_model_that_is_held_is_the_model_of_who_names_none() -> None:
    play = Play(fleet(agent("lead", grant=Grant(models=("small",)))))
    play.ready("lead")
    assert models.chosen(play.project, play.node("lead")) == ("small", "grant")
    assert forked(play, kind="lines") == ("small", "parent lead (a1)")
    assert forked(play, kind="other") == ("small", "grant")


def test_a_fork_that_leaves_open_which_of_several_models_it_uses_is_refused() -> None:
    play = Play(fleet(agent("lead", grant=Grant(models=("small", "big")), model="big")))
    play.ready("lead")
    said = play.refused(Fork(kind="other"), play.by("lead"))
    assert (said.code, said.field, said.held) == ("rights", "models", "small, big")
    assert "name which" in said.message
    assert forked(play, kind="lines") == ("big", "parent lead (a1)")
    assert forked(play, kind="other", model="small") == ("small", "fork")


def test_a_file_whose_agent_uses_a_model_that_it_is_not_given_is_refused() -> None:
    play = Play()
    said = play.refused(accept(fleet(agent("lead", grant=Grant(models=("small-*",)), model="big"))))
    assert (said.code, said.field, said.asked, said.held) == ("rights", "models", "big", "small-*")
    assert play.project.agents == {}


def test_a_program_that_uses_another_model_than_its_agent_holds_is_told_of_once() -> None:
    child = agent("child", grant=Grant(models=("small-*",)), model="small-1", task="")
    play = Play(fleet(agent("lead", child)))
    play.ready("lead", "child")
    calls = Spent("a2", 1, (Report("call", usage(1), model="small-2"), Report("call", usage(1), model="big-1")))
    taken = play.tell(calls)
    assert Outside("a2", 1, "models", "big-1") in taken
    assert [fact.used for fact in taken if isinstance(fact, Outside)] == ["big-1"]
    told = [fact.input for fact in taken if isinstance(fact, facts.Queued)]
    assert [(item.text, item.wake) for item in told] == [
        (EVENT + "child (a2) uses the model big-1, as its program says; it holds small-*.", False)
    ]
    assert not [fact for fact in play.tell(calls) if isinstance(fact, Outside)], "once"
    assert play.node("child").alive, "nothing is ended for it"
    assert models.strange(play.project, play.node("child"), "big-1")
    play.facts(Hold("child", Grant(models=("small-*", "big-*"))))
    assert not models.strange(play.project, play.node("child"), "big-1")


@pytest.mark.parametrize(
    ("held", "used"),
    [
        ("claude-haiku-4-5", "claude-haiku-4-5-20251001"),
        ("claude-haiku-4-5", "anthropic/claude-haiku-4-5"),
        ("anthropic/claude-haiku-4-5", "claude-haiku-4-5"),
        ("sonnet", "claude-sonnet-4-5-20250929"),
        ("claude-*", "anthropic/claude-opus-4"),
        ("claude-opus-4", "claude-opus-4[1m]"),
        ("gpt-5", "gpt-5-2025-08-07"),
    ],
)
def test_one_model_by_another_name_is_no_other_model(held: str, used: str) -> None:
    assert not strange(held, used)


@pytest.mark.parametrize(
    ("held", "used"),
    [("gpt-5", "gpt-5-pro"), ("gpt-5", "gpt-5.5"), ("anthropic/x-1", "router/x-1"), ("sonnet", "claude-opus-4")],
)
def test_another_model_is_another_model(held: str, used: str) -> None:
    assert strange(held, used)


def strange(held: str, used: str) -> bool:
    play = Play(Fleet("project", (agent("lead", grant=Grant(models=(held,))),), kinds=fleet().kinds))
    return models.strange(play.project, play.node("lead"), used)
