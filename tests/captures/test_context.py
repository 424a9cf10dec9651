"""How full each program's window is at the end of a capture, and who says so."""

from __future__ import annotations

import pytest
from attrs import evolve

from supervisor.core.facts import Spent
from supervisor.core.state import Node
from supervisor.core.view import context
from supervisor.kinds.recorded import seat
from supervisor.kinds.table import KINDS
from supervisor.runtime.pricing import Estimator, estimator, source
from tests.captures.expected import data
from tests.core.play import Play, agent, fleet


def full(name: str, price: Estimator | None = None) -> Node:
    """The agent that printed this."""
    play = Play(fleet(agent("lead")))
    play.ready("lead")
    node = play.node("lead")
    kind = KINDS[name.partition("/")[0]]
    reader, price = kind.recorded(seat(kind.name)), price or estimator(kind, lambda: node.model)
    said = [fact for line in data(name).splitlines() for fact in reader.read(line)]
    for fact in [*said, *reader.ended()]:
        if isinstance(fact, Spent):
            play.tell(evolve(fact, agent=node.id, run=node.run, reports=tuple(map(price, fact.reports))))
    return node


@pytest.mark.parametrize(
    ("name", "held", "window"),
    [
        ("claude/p_tool", 1100 + 210 + 31, 200_000),
        ("claude/stream_session", 1300 + 230 + 33, 200_000),
        ("codex/appserver_session", 1573, 258_400),
        ("pi/rpc_session", 1573, 100_000),
        ("opencode/acp_session", 1750, 100_000),
    ],
)
def test_a_program_that_says_how_large_its_window_is_is_believed(name: str, held: int, window: int) -> None:
    assert context(full(name)) == {
        "context_percent": round(100 * held / window, 2),
        "context_tokens": held,
        "context_window": window,
        "context_window_from": "program",
    }


@pytest.mark.parametrize(
    ("name", "held"), [("opencode/run_tool", 1351), ("gemini/p_ok", 1240), ("gemini/p_tool", None)]
)
def test_a_window_that_neither_program_nor_table_says_is_not_shown(name: str, held: int | None) -> None:
    assert context(full(name)) == {
        "context_percent": None, "context_tokens": held, "context_window": None, "context_window_from": None,
    }  # fmt: skip


def test_a_window_that_only_the_table_says_is_marked_as_that() -> None:
    node = full("opencode/run_tool", Estimator(lambda: "anthropic/claude-sonnet-4-5"))
    assert context(node) == {
        "context_percent": round(100 * 1351 / 200_000, 2),
        "context_tokens": 1351,
        "context_window": 200_000,
        "context_window_from": source(),
    }
