"""The core's tables are whole: no request without a verb, no verb without a reach, no state that leads nowhere."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, get_args

from supervisor.core import facts
from supervisor.core.apply import apply
from supervisor.core.authority import TABLE as REACH
from supervisor.core.lifecycle import AWAY, IDLE, LEAVING, LIVE, TABLE, VARIES, State, after
from supervisor.core.refusals import Code
from supervisor.core.requests import VERB, Request
from supervisor.core.state import Project
from supervisor.doors.verbs import METHODS
from tests.core.refused import RIGHT

DOCS = Path(__file__).parents[2] / "docs"


def made(name: str) -> dict[str, Any]:
    """What a page is made from."""
    return runpy.run_path(str(DOCS / f"{name}.py"))


def test_every_request_has_a_verb_and_every_verb_a_reach() -> None:
    assert VERB.keys() == {*get_args(Request)}
    assert {*VERB.values()} <= REACH.keys()
    assert METHODS.keys() == REACH.keys()


def test_no_verb_runs_anything() -> None:
    assert not {"run", "shell", "exec", "eval", "system", "spawn"} & REACH.keys()


def test_what_is_a_persons_word_or_is_about_all_of_them_is_a_persons_alone() -> None:
    assert {verb for verb, reach in REACH.items() if reach == "operator"} == {
        "approve", "deny", "up", "down", "reload", "config", "save", "shutdown", "metrics",
    }  # fmt: skip


def test_every_state_leads_on_and_is_reached_or_is_the_end() -> None:
    states = {*get_args(State)}
    names = {fact.__name__ for fact in get_args(facts.Fact)}
    assert {state for state, _ in TABLE} == states - {"gone"}
    assert {fact for _, fact in TABLE} <= names
    # `gone` is where a Left may lead.
    assert all(TABLE[pair] == leads[0] for pair, leads in VARIES.items())
    assert {*TABLE.values()} == states - {"gone"}
    assert after("stopping", "Left", "gone") == "gone"
    assert after("parked", "Unparked", "working") == "working"
    assert after("gone", "Starting") == "gone"
    assert states == LIVE | LEAVING | AWAY
    assert IDLE < LIVE
    assert not LIVE & (LEAVING | AWAY)


def test_every_refusal_is_explained_and_held() -> None:
    assert made("make_refusals")["ROWS"].keys() == {*get_args(Code)} == RIGHT.keys()


def test_every_state_is_explained_and_drawn() -> None:
    page = made("make_lifecycle")
    assert page["MEANS"].keys() == {*get_args(State)}
    for (state, fact), to in TABLE.items():
        drawn = page["arrows"]().get((state, to), []) + page["arrows"]().get(("live", to), [])
        assert fact in drawn, (state, fact)


def test_a_fact_about_nobody_changes_nothing() -> None:
    project = Project("p")
    for fact in (facts.Spent("a9", 1, ()), facts.Left("a9", "gone"), facts.Handed("a9", 1, ("m1",), turn=True)):
        apply(project, fact, 1.0)
    assert project == Project("p")
