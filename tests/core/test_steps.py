"""What there may be much of is worked out in steps, none of which is long, and comes to what it stood at."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from copy import copy
from typing import Any

import pytest

from supervisor.core import facts, spending
from supervisor.core.apply import apply
from supervisor.core.books import DAYS, MODELS
from supervisor.core.ledger import Report, Usage
from supervisor.core.spending import BY, By
from supervisor.doors import wire
from supervisor.doors.pieces import MANY, pieces
from tests.core.play import OPERATOR, Play, agent, fleet

#: Agents, each with as many rows as one can have.
MANY_AGENTS = 40


def full() -> Play:
    play = Play(fleet(agent("lead")))
    play.ready("lead")
    days = [f"2026-10-{day + 1:02d}" for day in range(31)] + [f"2026-11-{day + 1:02d}" for day in range(DAYS - 31)]
    play.project.books.days |= dict.fromkeys(days)
    for number in range(2, 2 + MANY_AGENTS):
        node = copy(play.node("lead"))
        node.id, node.name, node.parent, node.children, node.rows = f"a{number}", f"n{number}", "a1", [], {}
        node.days = tuple((day, f"m{at}", Usage(input=number)) for day in days for at in range(MODELS))
        node.own = node.branch = Usage(input=number * len(days) * MODELS)
        play.project.agents[node.id] = node
    return play


@pytest.mark.parametrize("group", BY)
def test_no_step_of_a_query_looks_at_more_than_some_rows_and_what_is_spent_meanwhile_is_not_in_it(
    monkeypatch: pytest.MonkeyPatch, group: By
) -> None:
    play, looked = full(), 0
    before = spending.spending(play.project, OPERATOR, 5e3, None, group)
    pages: Any = spending._pages

    def counted(*given: Any, **more: Any) -> Iterator[spending.Page]:
        nonlocal looked
        for rows, lines in pages(*given, **more):
            looked += rows
            yield rows, lines

    monkeypatch.setattr(spending, "_pages", counted)
    steps, most, whole = spending.spent(play.project, OPERATOR, 5e3, None, group), 0, 0
    found: list[Any] = []

    def stepped() -> Iterator[None]:
        found.append((yield from steps))

    for _ in stepped():
        most, whole, looked = max(most, looked), whole + looked, 0
        apply(play.project, facts.Spent("a1", 1, (Report("call", Usage(input=7, calls=1)),)), 5e3)
    most, whole = max(most, looked), whole + looked
    assert found == [before]
    assert whole >= MANY_AGENTS * DAYS * MODELS
    assert most <= spending.ROWS + DAYS * MODELS + MODELS + 1


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        None,
        {"a": [1] * (MANY + 1)},
        {"x": 1, "rows": [{"\u00fc": "\ud800"}] * (3 * MANY + 5), "y": {"z": []}},
        {"one": [0.5] * MANY, "two": ["t"] * (MANY * 2)},
    ],
)
def test_an_answer_in_pieces_is_the_same_line(value: object) -> None:
    found = [*pieces(7, value)]
    assert b"".join(found) == wire.result(7, value)
    lists = [each for each in value.values() if isinstance(each, list)] if isinstance(value, dict) else []
    assert len(found) >= max(map(len, lists), default=0) / MANY


def test_the_first_large_batch_finds_its_codec_made() -> None:
    """In a process of its own: whoever came before would have made it."""
    program = """
import builtins, json
from supervisor.runtime.journal import codec
from tests.core.play import OPERATOR, Play, accept, agent, fleet
play = Play()
taken = play.facts(accept(fleet(*(agent(f"n{number}") for number in range(3)))))
made, compiled = [], builtins.compile
builtins.compile = lambda *given, **more: made.append(1) or compiled(*given, **more)
codec.warm()
warm = len(made)
for fact in taken:
    if type(fact).__name__ in ("Accepted", "Born"):
        codec.dump(fact)
print(json.dumps([warm, len(made)]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=60)
    warm, after = json.loads(done.stdout)
    assert after == warm > 0
