"""What an agent is told of itself, and how it is named in what others are told."""

from __future__ import annotations

from supervisor.core.grants import Grant
from supervisor.core.ledger import NANO
from supervisor.core.requests import Fork
from supervisor.core.words import called, digest, holding, introduction
from tests.core.play import Play, agent, fleet


def test_an_introduction_says_name_id_parent_role_purpose_and_what_is_held() -> None:
    play = Play(fleet(agent("lead", grant=Grant(tokens=2_000_000, tools=("read", "bash")))))
    play.facts(
        Fork(kind="lines", name="tests", parent="lead", role="tester", description="runs the tests", max_tasks=4,
             grant=Grant(tokens=300_000, turns=20, cost=NANO // 2, depth=0, wall=5400.0))
    )  # fmt: skip
    said = introduction(play.project, play.node("tests"))
    for words in (
        "You are tests (id a2), an agent of the project project",
        "You were started by lead (id a1).",
        "Your role: tester.",
        "What you are for: runs the tests",
        "300k of 300k tokens; 20 of 20 turns; $0.5000 of $0.5000 cost; depth 0; wall 1h30m; tools read, bash.",
        "released after 4 tasks",
        "supervisorctl whoami",
    ):
        assert words in said


def test_a_main_was_started_by_a_person() -> None:
    play = Play(fleet(agent("lead")))
    said = introduction(play.project, play.node("lead"))
    assert "You were started by a person." in said
    assert "You hold: no limits of its own." in said


def test_what_is_shared_is_said_to_be() -> None:
    play = Play(fleet(agent("lead", agent("one"), grant=Grant(tokens=100, models=()), task="Go.")))
    play.ready("lead")
    play.spend("lead", 40)
    assert holding(play.project, play.node("one")) == "60 of 100 tokens shared with lead; models none"


def test_what_is_not_allowed_is_said() -> None:
    play = Play(fleet(agent("lead", grant=Grant(fork=False, talk=False))))
    assert holding(play.project, play.node("lead")) == "no right to fork; no right to talk"


def test_a_digest_names_agent_id_and_role_and_says_that_it_is_none_of_the_persons() -> None:
    play = Play(fleet(agent("lead", role="integrator"), agent("second")))
    assert called(play.node("lead")) == "lead (a1, integrator)"
    assert called(play.node("second")) == "second (a2)"
    assert digest("x").startswith("[fleet: an automatic event, not a request from the person]")
