"""The drawing of the tree: the same at the same width, within the width, and readable with many agents."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.ctl import plain
from supervisor.ctl.branches import ROWS, Fold, below
from supervisor.ctl.screen import Screen
from supervisor.ctl.tree import draw
from tests.ctl import fleets
from tests.ctl.test_plain import NASTY, SAFE

GOLDEN = Path(__file__).parent / "golden"
#: Some hours before the one time of day in `fleets.small`.
NOW = 1_700_000_000.0


def screen(width: int, *, utf8: bool = True, colour: bool = False) -> Screen:
    return Screen(width, 40, utf8=utf8, colour=colour, tty=colour)


def drawn(answer: dict[str, Any], width: int, **fold: Any) -> list[str]:
    return draw(answer, screen(width), Fold(**fold), now=NOW)


@pytest.mark.parametrize(
    ("name", "fleet", "on"),
    [
        ("tree-80.txt", fleets.small, screen(80)),
        ("tree-160.txt", fleets.small, screen(160)),
        ("tree-80-ascii.txt", fleets.small, screen(80, utf8=False)),
        ("tree-80-colour.txt", fleets.small, screen(80, colour=True)),
        ("tree-80-crowd.txt", fleets.crowd, screen(80)),
        ("tree-160-deep.txt", fleets.deep, screen(160)),
    ],
)
def test_a_tree_is_drawn_as_it_always_was(monkeypatch: pytest.MonkeyPatch, name: str, fleet: Any, on: Screen) -> None:
    monkeypatch.setattr("time.localtime", __import__("time").gmtime)
    assert "\n".join(draw(fleet(), on, Fold(), now=NOW)) + "\n" == (GOLDEN / name).read_text("utf-8")


def test_two_hundred_agents_stay_on_about_a_screen_and_say_that_they_are_folded() -> None:
    lines = drawn(fleets.crowd(200), 80)
    assert len(lines) <= ROWS + 4
    assert lines[-1] == "folded in part; --all shows all"
    assert any("47 gone" in line for line in lines[:2]), "the head counts every agent, folded ones too"


def test_what_is_folded_is_counted_to_the_last_agent() -> None:
    lines = drawn(fleets.crowd(200), 120)
    hidden = sum(int(line.split("… ")[1].split()[0]) for line in lines if "… " in line)
    shown = sum(1 for line in lines if "worker-" in line.split("…")[0] or "team-" in line or line.startswith("lead"))
    assert hidden + shown == 200


def test_all_shows_every_agent_and_folds_nothing() -> None:
    fleet = fleets.crowd(200)
    lines = drawn(fleet, 80, everything=True)
    assert len(lines) == 200 + 3
    for agent in below(fleet["agents"]):
        assert any(f" {agent['name']} " in f" {line} " for line in lines)
    assert "folded" not in lines[-1]


def test_a_working_branch_below_one_that_is_gone_is_not_folded_away() -> None:
    late = fleets.agent("a2", "late", state="working")
    fleet = {"project": "p", "agents": [fleets.agent("a1", "early", late, state="gone")]}
    assert any("late" in line for line in drawn(fleet, 80))


def test_ages_grow_between_two_answers() -> None:
    fleet = {"project": "p", "agents": [fleets.agent("a1", "one", elapsed=50.0)]}
    assert " 50s " in draw(fleet, screen(80), Fold(), now=NOW)[-1]
    assert " 53s " in draw(fleet, screen(80), Fold(), since=3.2, now=NOW)[-1]


def test_an_empty_project_says_what_to_do() -> None:
    assert "supervisorctl up" in drawn({"project": "p", "agents": []}, 80)[-1]


TEXT = st.one_of(NASTY, st.none())
STATES = st.one_of(st.sampled_from(["working", "standing", "gone", "parked", "waiting"]), NASTY)


def agents(children: st.SearchStrategy[list[dict[str, Any]]]) -> st.SearchStrategy[dict[str, Any]]:
    number = st.integers(0, 10**12)
    return st.builds(
        lambda name, texts, state, kids, own, until, percent: fleets.agent(
            "a1", name or "", *kids, state=state, own=own, until=until, context_percent=percent, **texts
        ),
        TEXT,
        st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("role", "kind", "last", "summary", "verdict", "waiting_on"), TEXT)
        ),
        STATES,
        children,
        number,
        st.one_of(st.none(), st.floats(0, 4e9), NASTY),
        st.one_of(st.none(), st.floats(0, 200)),
    )


FORESTS = st.recursive(
    st.lists(agents(st.just([])), max_size=4), lambda inner: st.lists(agents(inner), max_size=4), max_leaves=20
)


@settings(max_examples=60, deadline=None)
@given(FORESTS, NASTY, st.integers(20, 200), st.booleans(), st.booleans())
def test_no_line_is_wider_than_the_screen_or_holds_a_sign_that_moves_it(
    forest: list[dict[str, Any]], project: str, width: int, utf8: bool, everything: bool
) -> None:
    answer = {"project": project, "tier": project, "agents": forest}
    for line in draw(answer, screen(width, utf8=utf8), Fold(everything=everything), now=NOW):
        assert plain.width(line) <= width
        assert {unicodedata.category(sign) for sign in line} <= SAFE
        assert utf8 or line.isascii()


@settings(max_examples=20, deadline=None)
@given(FORESTS)
def test_a_pipe_gets_no_colour(forest: list[dict[str, Any]]) -> None:
    assert "\x1b" not in "".join(drawn({"project": "p", "agents": forest}, 80))


@settings(max_examples=40, deadline=None)
@given(FORESTS, st.integers(20, 160))
def test_colour_changes_no_column(forest: list[dict[str, Any]], width: int) -> None:
    import re

    answer = {"project": "p", "agents": forest}
    coloured = draw(answer, screen(width, colour=True), Fold(), now=NOW)
    assert [re.sub("\x1b\\[[0-9;]*m", "", line) for line in coloured] == drawn(answer, width)
