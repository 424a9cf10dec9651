"""How full a conversation's window is: of its last call, as who said it, and never a guess."""

from __future__ import annotations

import pytest

from supervisor.core.facts import Spent
from supervisor.core.ledger import UNKNOWN, ZERO, Report, Usage, joined
from supervisor.core.metrics import families
from supervisor.core.state import Node
from supervisor.core.view import context
from supervisor.runtime.pricing import Estimator, source
from tests.core.play import Play, agent, fleet


def told(play: Play, *reports: Report) -> Node:
    play.tell(Spent("a1", 1, reports))
    return play.project.agents["a1"]


@pytest.fixture
def play() -> Play:
    play = Play(fleet(agent("lead")))
    play.ready("lead")
    return play


def shown(percent: float | None, held: int | None, window: int | None, whose: str | None) -> dict[str, object]:
    return {
        "context_percent": percent, "context_tokens": held, "context_window": window, "context_window_from": whose,
    }  # fmt: skip


def test_the_last_call_says_how_full_the_window_is_and_a_compaction_empties_it(play: Play) -> None:
    node = told(play, Report("call", Usage(input=10), id="c1", model="m", held=50, window=200))
    assert context(node) == shown(25.0, 50, 200, "program")
    told(play, Report("call", Usage(input=10), id="c2", model="m", held=150))
    assert context(node) == shown(75.0, 150, 200, "program")
    told(play, UNKNOWN)
    assert context(node) == shown(None, None, 200, "program")
    told(play, Report("call", Usage(input=10), id="c3", model="m", held=20))
    assert context(node)["context_percent"] == 10.0
    assert node.own.calls == 0, "what says this alone is no call"


def test_a_call_that_says_nothing_of_it_such_as_a_subagents_changes_nothing(play: Play) -> None:
    node = told(play, Report("call", Usage(input=10), id="c1", model="m", held=50, window=200))
    told(play, Report("call", Usage(input=9000), id="c2", model="other"))
    assert context(node) == shown(25.0, 50, 200, "program")


def test_another_models_window_is_not_taken_for_its_own(play: Play) -> None:
    node = told(play, Report("call", Usage(input=10), id="c1", model="m", held=50, window=200))
    told(play, Report("call", Usage(input=10), id="c2", model="n", held=60))
    assert context(node) == shown(None, 60, None, None)


def test_what_the_program_says_in_percent_is_believed(play: Play) -> None:
    node = told(play, Report("call", ZERO, context=41.5))
    assert context(node) == shown(41.5, None, None, None)
    told(play, Report("call", ZERO, context=12.0, held=100, window=1000))
    assert context(node) == shown(12.0, 100, 1000, "program")
    told(play, Report("call", ZERO, context=float("nan")))
    assert context(node)["context_percent"] == 12.0


def test_two_reports_in_one_line_of_the_journal_keep_what_was_said_last() -> None:
    first = Report("total", ZERO, held=5, window=10, sized="t")
    assert joined(first, Report("total", ZERO)) == first
    assert joined(first, Report("total", ZERO, held=7)) == Report("total", ZERO, held=7, window=10, sized="t")
    assert joined(first, Report("total", ZERO, held=7, window=20)) == Report("total", ZERO, held=7, window=20)


def test_a_window_that_no_program_says_is_the_tables_and_marked_as_that() -> None:
    told = Report("call", Usage(input=9), model="claude-sonnet-4-5", held=9)
    sized = Estimator(lambda: "")(told)
    assert (sized.window, sized.sized) == (200_000, source())
    for program_says in (Estimator(lambda: "", sizes=True),):
        assert program_says(told).window is None
    assert Estimator(lambda: "")(Report("call", ZERO, model="mine-1", held=9)).window is None, "no guess"
    assert Estimator(lambda: "")(Report("call", ZERO, model="claude-sonnet-4-5")).window is None, "nothing is held"
    spoken = Estimator(lambda: "claude-sonnet-4-5")
    spoken(Report("call", ZERO, window=77, held=1))
    assert spoken(Report("call", ZERO, held=2)).window is None, "it has spoken of its own"


def test_the_fullest_window_of_each_role_and_model_is_counted(play: Play) -> None:
    told(play, Report("call", Usage(input=10), id="c1", model="m", held=50, window=200))
    found = {family["name"]: family["samples"] for family in families([play.project])}
    ((labels, ratio),) = found["fleet_context_highest_ratio"]
    assert (labels["model"], ratio) == ("m", 0.25)
    assert [value for _, value in found["fleet_context_tokens"]] == [50]
