"""The books of days: who spent what on which day with which model, gone agents included. They hold only what was booked
by the meter, and stay bounded whatever agents say their models and roles are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from attrs import Factory, define, evolve, frozen

from supervisor.core.ledger import NUMBERS, ZERO, Usage

#: A day and a model; or, once the agent is not known any more, a role and a model.
Key = tuple[str, str]

#: Day, model and what was spent: they never change, so that a copy of the state shares them.
Rows = tuple[tuple[str, str, Usage], ...]

#: So many days, the newest on which something was spent, are kept agent by agent.
DAYS = 35
#: So many rows of agents that are out of view are kept with their names.
ROWS = 8192
#: An agent has so many models a day; whatever else it says it used is one more.
MODELS = 8
#: So many pairs of role and model are kept of a day that is not kept agent by agent any more.
PAIRS = 64
#: So many of such days.
SUMMED = 400
#: So many pairs of role and model are counted for ever, for programs that want counts which only go up.
EVER = 128
#: What stands for all that has no row of its own.
OTHERS = "(others)"


@frozen
class Past:
    """An agent that is out of view, with what it takes to name it."""

    name: str
    parent: str | None
    role: str
    kind: str
    rows: Rows = ()


class Page(Protocol):
    """An agent's own part of the books: `rows` of the last day on which it spent something, `days` the rows before
    them, and what of it is not kept by day any more."""

    rows: dict[Key, Usage]
    days: Rows
    earlier: Usage


@define
class Books:
    """Of one project. `day` is the local day of what is booked now ("" before the first); `days` those that are kept
    agent by agent, oldest first; `past` the agents out of view, longest gone first, and `rows` how many rows theirs
    are; `summed` by day, then role and model, what has no agent any more; `ever` everything by role and model;
    `prices` the table that estimated a cost last."""

    day: str = ""
    days: dict[str, None] = Factory(dict)
    past: dict[str, Past] = Factory(dict)
    rows: int = 0
    summed: dict[str, dict[Key, Usage]] = Factory(dict)
    ever: dict[Key, Usage] = Factory(dict)
    prices: str = ""

    def book(self, page: Page, role: str, model: str, added: Usage) -> None:
        """To an agent's rows, and to what is counted for ever."""
        if page.rows and next(iter(page.rows))[0] != self.day:
            page.days += _flat(page.rows)
            page.rows = {}
        key = (self.day, model)
        if key not in page.rows and len(page.rows) >= MODELS:
            key = (self.day, OTHERS)
        page.rows[key] = page.rows.get(key, ZERO) + added
        _add(self.ever, (role, model), added, EVER)

    def named(self, page: Page, before: str, model: str) -> None:
        """The program names its model: turns that began while it was called otherwise, or nothing, and of which nothing
        was spent, are that model's."""
        row = page.rows.get((self.day, before))
        if row is not None and before != model and not (row.tokens or row.calls or row.cost or row.incomplete):
            del page.rows[self.day, before]
            page.rows[self.day, model] = page.rows.get((self.day, model), ZERO) + row

    def dawn(self, day: str) -> bool:
        """Another day; whether one is from now on not kept agent by agent: the oldest of too many, or the time before
        days were told apart."""
        first, self.day = not self.days, day
        self.days.pop(day, None)
        self.days[day] = None
        if len(self.days) > DAYS:
            del self.days[next(iter(self.days))]
            return True
        return first

    def fold(self, page: Page, role: str) -> None:
        """Take the days that are not kept agent by agent out of an agent's rows."""
        kept, folded = self._folded(written(page), role)
        if folded != ZERO:
            page.earlier += folded
            page.days, page.rows = kept, {}

    def _folded(self, rows: Rows, role: str) -> tuple[Rows, Usage]:
        """What is left of some rows, and what the others come to. At a day's beginning all agents' are looked at."""
        days = self.days
        old = tuple([row for row in rows if row[0] not in days])
        if not old:
            return rows, ZERO
        for day, model, usage in old:
            self._sum(day, (role, model), usage)
        # Unless a clock was set back, the oldest stand first.
        first = rows[: len(old)] == old
        kept = rows[len(old) :] if first else tuple(row for row in rows if row[0] in days)
        return kept, total(row[2] for row in old)

    def fold_past(self) -> None:
        """The same for agents out of view; one that nothing is left of is not known any more."""
        for agent, past in [*self.past.items()]:
            kept, folded = self._folded(past.rows, past.role)
            if folded != ZERO:
                self._keep(agent, evolve(past, rows=kept))
            if not kept:
                del self.past[agent]
                self.rows -= 1

    def forget(self, agent: str, past: Past) -> None:
        """An agent leaves the view. Those who left longest ago make room."""
        self._keep(agent, past)
        while self.rows > ROWS:
            oldest = self.past.pop(next(iter(self.past)))
            self.rows -= 1 + len(oldest.rows)
            for day, model, usage in oldest.rows:
                self._sum(day, (oldest.role, model), usage)

    def _keep(self, agent: str, past: Past) -> None:
        before = self.past.get(agent)
        self.rows += len(past.rows) - (len(before.rows) if before is not None else -1)
        self.past[agent] = past

    def _sum(self, day: str, pair: Key, usage: Usage) -> None:
        _add(self.summed.setdefault(day, {}), pair, usage, PAIRS)
        while len(self.summed) > SUMMED:
            oldest = min(filter(None, self.summed))
            before = self.summed.setdefault("", {})
            for known, what in self.summed.pop(oldest).items():
                _add(before, known, what, PAIRS)


def _add(sums: dict[Key, Usage], pair: Key, usage: Usage, most: int) -> None:
    """Add to one sum; pairs past so many are one."""
    if pair not in sums and len(sums) >= most:
        pair = (OTHERS, OTHERS)
    sums[pair] = sums.get(pair, ZERO) + usage


def _flat(rows: dict[Key, Usage]) -> Rows:
    return tuple((day, model, usage) for (day, model), usage in rows.items())


def written(page: Page) -> Rows:
    """All rows of an agent."""
    return page.days + _flat(page.rows)


def total(usages: Iterable[Usage]) -> Usage:
    """All of them together. Days are folded of all agents at once: one sum is made, not one for each that is added."""
    columns = zip(*map(NUMBERS, usages), strict=True)
    return Usage(*map(sum, columns))
