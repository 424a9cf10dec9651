"""The books of days: who spent what on which day with which model, gone agents included. They hold only what was booked
by the meter, and stay bounded whatever agents say their models and roles are."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import Factory, define, frozen

from supervisor.core.ledger import ZERO, Usage

#: A day and a model; or, once the agent is not known any more, a role and a model.
Key = tuple[str, str]

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
    """An agent that is out of view, with what it takes to name it; `rows` are day, model and what was spent."""

    name: str
    parent: str | None
    role: str
    kind: str
    rows: tuple[tuple[str, str, Usage], ...] = ()


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

    def book(self, rows: dict[Key, Usage], role: str, model: str, added: Usage) -> None:
        """To an agent's rows, and to what is counted for ever."""
        key = (self.day, model)
        if key not in rows and sum(day == self.day for day, _ in rows) >= MODELS:
            key = (self.day, OTHERS)
        rows[key] = rows.get(key, ZERO) + added
        _add(self.ever, (role, model), added, EVER)

    def named(self, rows: dict[Key, Usage], before: str, model: str) -> None:
        """The program names its model: turns that began while it was called otherwise, or nothing, and of which nothing
        was spent, are that model's."""
        row = rows.get((self.day, before))
        if row is not None and before != model and not (row.tokens or row.calls or row.cost or row.incomplete):
            del rows[self.day, before]
            rows[self.day, model] = rows.get((self.day, model), ZERO) + row

    def dawn(self, day: str) -> None:
        """Another day; the oldest of too many is from now on not kept agent by agent."""
        self.day = day
        self.days.pop(day, None)
        self.days[day] = None
        if len(self.days) > DAYS:
            del self.days[next(iter(self.days))]

    def fold(self, rows: dict[Key, Usage], role: str) -> Usage:
        """Take the days that are not kept agent by agent out of an agent's rows; returns what they come to."""
        folded = ZERO
        for day, model in [key for key in rows if key[0] not in self.days]:
            usage = rows.pop((day, model))
            self._sum(day, (role, model), usage)
            folded += usage
        return folded

    def fold_past(self) -> None:
        """The same for agents out of view; one that nothing is left of is not known any more."""
        for agent, past in [*self.past.items()]:
            if any(day not in self.days for day, _, _ in past.rows):
                rows = {(day, model): usage for day, model, usage in past.rows}
                self.fold(rows, past.role)
                self._keep(agent, past, rows)
                if not rows:
                    del self.past[agent]
                    self.rows -= 1

    def forget(self, agent: str, past: Past, rows: dict[Key, Usage]) -> None:
        """An agent leaves the view. Those who left longest ago make room."""
        self._keep(agent, past, rows)
        while self.rows > ROWS:
            oldest = self.past.pop(next(iter(self.past)))
            self.rows -= 1 + len(oldest.rows)
            for day, model, usage in oldest.rows:
                self._sum(day, (oldest.role, model), usage)

    def _keep(self, agent: str, past: Past, rows: dict[Key, Usage]) -> None:
        before = self.past.get(agent)
        self.rows += len(rows) - (len(before.rows) if before is not None else -1)
        kept = tuple((day, model, usage) for (day, model), usage in rows.items())
        self.past[agent] = Past(past.name, past.parent, past.role, past.kind, kept)

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


def total(usages: Iterable[Usage]) -> Usage:
    """All of them together."""
    return sum(usages, ZERO)
