"""What was spent: usage as numbers, and the meter that books reports without counting twice or going down."""

from __future__ import annotations

from operator import attrgetter
from typing import Literal

from attrs import Factory, define, evolve, fields, frozen

#: USD are kept as whole nano-dollars, so that a sum of many small calls is exact and replay is equal.
NANO = 1_000_000_000

#: How many ids of booked calls one meter remembers; a CLI repeats a call's lines close together.
REMEMBERED = 512


@frozen
class Usage:
    """Numbers of one agent. Tokens are counts; `input` is fresh input only, cached reads and writes stand
    apart; `output` includes `reasoning`; `cost` is in nano-USD (1e-9). `incomplete` counts calls whose whole usage
    never came; `estimated` is the part of `cost` that no program said and a price table gave."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    calls: int = 0
    turns: int = 0
    cost: int = 0
    incomplete: int = 0
    estimated: int = 0

    @property
    def tokens(self) -> int:
        """Every token the provider bills for, cached ones included: what a `tokens` budget counts."""
        return self.input + self.cache_read + self.cache_write + self.output

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
            self.reasoning + other.reasoning,
            self.calls + other.calls,
            self.turns + other.turns,
            self.cost + other.cost,
            self.incomplete + other.incomplete,
            self.estimated + other.estimated,
        )

    def beyond(self, mark: Usage) -> Usage:
        """What this cumulative figure adds to `mark`, field by field, never below zero."""
        return Usage(
            max(0, self.input - mark.input),
            max(0, self.cache_read - mark.cache_read),
            max(0, self.cache_write - mark.cache_write),
            max(0, self.output - mark.output),
            max(0, self.reasoning - mark.reasoning),
            max(0, self.calls - mark.calls),
            max(0, self.turns - mark.turns),
            max(0, self.cost - mark.cost),
            max(0, self.incomplete - mark.incomplete),
            max(0, self.estimated - mark.estimated),
        )

    def highest(self, other: Usage) -> Usage:
        """The higher of both, field by field."""
        return self + other.beyond(self)


ZERO = Usage()
NAMES = tuple(each.name for each in fields(Usage))
#: A usage's numbers, in the order of their names.
NUMBERS = attrgetter(*NAMES)

#: What a report's numbers are about. `call` and `turn`: this one alone; `total`: everything since its epoch began.
Scope = Literal["call", "turn", "total"]


@frozen
class Report:
    """One usage line of an agent, normalised by its kind.

    `id` names the call or turn, so that a repeated line is known ("" where the CLI gives none);
    `epoch` names what a `total` counts from (a session or a process; "" is the run); a new epoch starts from zero.
    `held` is how many tokens the conversation's last call held, subagents' apart, -1 where that is not known any more;
    `window` is how many there is room for, and `context` the part that is taken, in percent, as the program says it;
    None where the line says nothing of it. `prices` names the table that gave the cost and `sized` the one that gave
    the window, "" where the program said it or nobody knows it."""

    scope: Scope
    usage: Usage
    id: str = ""
    epoch: str = ""
    model: str = ""
    context: float | None = None
    window: int | None = None
    prices: str = ""
    held: int | None = None
    sized: str = ""


def joined(first: Report, second: Report) -> Report | None:
    """One report that books as both would, one after the other; None where there is none. A program that reports
    every token is one line in the journal."""
    alike = (first.scope, first.id, first.epoch, first.model) == (second.scope, second.id, second.epoch, second.model)
    if not alike or first.scope == "turn":
        return None
    # A call without a name is one more; whatever has a name, and a total, only grows.
    grows = first.scope == "total" or first.id
    usage = first.usage.highest(second.usage) if grows else first.usage + second.usage
    context = first.context if second.context is None else second.context
    said = second if second.window is not None else first
    held = first.held if second.held is None else second.held
    prices = second.prices or first.prices
    return evolve(second, usage=usage, context=context, window=said.window, sized=said.sized, held=held, prices=prices)


#: What a line says whose program knows no more how much its conversation holds.
UNKNOWN = Report("call", ZERO, held=-1)


@define
class Meter:
    """What was booked of one agent's reports, so that nothing counts twice.

    `calls` holds what was booked for each named call or turn, newest last; `epochs` what was booked since each
    epoch began, and `turns` since the last turn's report of each run, by whatever scope.

    A program speaks in one stream: each call stands before its turn's end, and before any total that holds it. What
    was said already may be said again at any time, if it has an id or is a total."""

    calls: dict[str, Usage] = Factory(dict)
    epochs: dict[str, Usage] = Factory(dict)
    turns: dict[int, Usage] = Factory(dict)

    def book(self, report: Report, run: int = 0) -> Usage:
        """Take one report of a run; returns what it adds, never below zero in any field. A total that does not say
        what it counts from counts from the start of its run."""
        since = report.epoch or f"run {run}"
        epoch, turn = self.epochs.pop(since, ZERO), self.turns.pop(run, ZERO)
        added, over = self._adds(report, epoch, turn)
        self.epochs[since] = epoch + added
        self.turns[run] = ZERO if over else turn + added
        for kept in (self.calls, self.epochs, self.turns):
            if len(kept) > REMEMBERED:
                del kept[next(iter(kept))]  # type: ignore[arg-type]  # its own first key
        return added

    def _adds(self, report: Report, epoch: Usage, turn: Usage) -> tuple[Usage, bool]:
        """What one report adds, and whether it ends the turn in which things were booked."""
        if report.scope == "total":
            return report.usage.beyond(epoch), False
        key = f"{report.scope}:{report.id}" if report.id else ""
        again = key in self.calls
        known = self.calls.pop(key, ZERO)
        if key:
            self.calls[key] = known.highest(report.usage)
        if report.scope == "call":
            return report.usage.beyond(known), False
        # An old turn's report says nothing new; what was booked of the running turn is not in it.
        return report.usage.beyond(known + turn), not again or report.usage.beyond(known) != ZERO
