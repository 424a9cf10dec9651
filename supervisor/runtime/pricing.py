"""What a call cost whose program does not say: an estimate from a dated table, marked as one. It never guesses: a model
that the table does not name has no price."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path

from attrs import define, evolve, frozen

from supervisor.core.ledger import Report, Usage

TABLE = Path(__file__).parents[1] / "prices" / "table.json"
#: Programs that say themselves what their calls cost: one without a cost was free, or has its cost told later.
TELL = frozenset({"claude", "opencode", "pi"})
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
def _table() -> tuple[str, dict[str, Rates]]:
    """What the table is called, and its rates by `provider/name`, and by the name alone where all agree on it."""
    raw = json.loads(TABLE.read_text("utf-8"))
    found: dict[str, Rates] = {}
    alone: dict[str, set[Rates]] = defaultdict(set)
    for provider, models in raw["models"].items():
        for name, numbers in models.items():
            rates = Rates(*numbers)
            found[f"{provider}/{name}"] = rates
            alone[name].add(rates)
    found |= {name: next(iter(rates)) for name, rates in alone.items() if len(rates) == 1}
    return f"{raw['source']} of {raw['date']}", found


def source() -> str:
    """The table and its date."""
    return _table()[0]


def rates(model: str) -> Rates | None:
    """The rates of a model as programs name it: `gpt-5-codex`, `anthropic/claude-sonnet-4-5-20250929`."""
    known = _table()[1]
    if (exact := known.get(model) or known.get(f"{model}*")) is not None:
        return exact
    dated = _DATED.fullmatch(model)
    return known.get(f"{dated[1]}*") if dated is not None else None


@define
class Estimator:
    """Fills in what one run's program does not say. `model` tells what the agent runs on when a report does not;
    `tells` says that the program speaks of costs itself, as one does that has spoken of one."""

    model: Callable[[], str]
    tells: bool = False

    def __call__(self, report: Report) -> Report:
        """The report, with a cost if there is one to be known."""
        self.tells = self.tells or report.usage.cost > 0
        if self.tells or not report.usage.tokens:
            return report
        found = rates(report.model or self.model())
        if found is None:
            return report
        cost = found.cost(report.usage)
        return evolve(report, usage=evolve(report.usage, cost=cost, estimated=cost), prices=source())


def estimator(protocol: str, model: Callable[[], str]) -> Estimator:
    """For one run of a program that speaks this protocol."""
    return Estimator(model, protocol in TELL)
