"""What a call cost whose program does not say, and how much its model has room for: out of a dated table, marked as
such. It never guesses: a model that the table does not name has no price and no size."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

from attrs import define, evolve, frozen

from supervisor.core.ledger import Report, Usage
from supervisor.kinds.kind import Kind

T = TypeVar("T")
TABLE = Path(__file__).parents[1] / "prices" / "table.json"
#: What a name may go on with and still be the same model's.
_DATED = re.compile(r"(.+?)[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|latest)")
_MILLION = 1_000_000


@frozen
class Rates:
    """Nano-USD for a million tokens."""

    input: int
    cache_read: int
    cache_write: int
    output: int

    def cost(self, of: Usage) -> int:
        """Nano-USD. Reasoning is paid as output, of which it is part."""
        sums = (
            of.input * self.input
            + of.cache_read * self.cache_read
            + of.cache_write * self.cache_write
            + of.output * self.output
        )
        return (sums + _MILLION // 2) // _MILLION


@cache
def _table() -> tuple[str, dict[str, Rates], dict[str, int]]:
    """What the table is called, and its rates and its windows by name."""
    raw = json.loads(TABLE.read_text("utf-8"))
    rates = _named({at: {name: Rates(*each) for name, each in of.items()} for at, of in raw["models"].items()})
    return f"{raw['source']} of {raw['date']}", rates, _named(raw["windows"])


def _named(by_provider: dict[str, dict[str, T]]) -> dict[str, T]:
    """By `provider/name`, and by the name alone where all agree on it."""
    found: dict[str, T] = {}
    alone: dict[str, set[T]] = defaultdict(set)
    for provider, models in by_provider.items():
        for name, value in models.items():
            found[f"{provider}/{name}"] = value
            alone[name].add(value)
    return found | {name: next(iter(values)) for name, values in alone.items() if len(values) == 1}


def source() -> str:
    """The table and its date."""
    return _table()[0]


def rates(model: str) -> Rates | None:
    """The rates of a model as programs name it: `gpt-5-codex`, `anthropic/claude-sonnet-4-5-20250929`."""
    return _of(_table()[1], model)


def window(model: str) -> int | None:
    """How many tokens a model has room for."""
    return _of(_table()[2], model)


def _of(known: dict[str, T], model: str) -> T | None:
    if (exact := known.get(model) or known.get(f"{model}*")) is not None:
        return exact
    dated = _DATED.fullmatch(model)
    return known.get(f"{dated[1]}*") if dated is not None else None


@define
class Estimator:
    """Fills in what one run's program does not say. `model` tells what the agent runs on when a report does not;
    `tells` and `sizes` say that the program speaks of costs and of windows itself, as one does that has spoken of
    one."""

    model: Callable[[], str]
    tells: bool = False
    sizes: bool = False

    def __call__(self, report: Report) -> Report:
        """The report, with a cost and a window if there are any to be known."""
        return self._priced(self._sized(report))

    def _sized(self, report: Report) -> Report:
        self.sizes = self.sizes or report.window is not None
        if self.sizes or report.held is None or report.held < 0:
            return report
        size = window(report.model or self.model())
        return report if size is None else evolve(report, window=size, sized=source())

    def _priced(self, report: Report) -> Report:
        self.tells = self.tells or report.usage.cost > 0
        if self.tells or not report.usage.tokens:
            return report
        found = rates(report.model or self.model())
        if found is None:
            return report
        cost = found.cost(report.usage)
        return evolve(report, usage=evolve(report.usage, cost=cost, estimated=cost), prices=source())


def estimator(kind: Kind, model: Callable[[], str]) -> Estimator:
    """For one run of a program of this kind."""
    return Estimator(model, "cost" in kind.tells, "window" in kind.tells)
