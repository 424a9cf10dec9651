"""What a run's program said, on its way to the desk: usage and last lines are gathered for a moment, all else
goes at once. It keeps the order in which things were said, and nothing is left behind when the run ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import trio
from attrs import define, evolve

from supervisor.core import budgets
from supervisor.core.facts import Fact, Garbled, Spent, Spoke
from supervisor.core.ledger import ZERO, Usage
from supervisor.core.state import Project
from supervisor.runtime.desk import Desk

#: Usage waits at most this long (seconds) for more, unless it may reach a threshold (DESIGN 2).
USAGE_WAIT = 0.1
#: A last line is for people: it may wait this long.
LINE_WAIT = 1.0


@define
class Heard:
    """One run's gathering. `later(delay, call)` calls back after so many seconds, while the run lasts."""

    desk: Desk
    agent: str
    later: Callable[[float, Callable[[], None]], None]
    _spent: Spent | None = None
    _spoke: Spoke | None = None
    _garbled: Garbled | None = None
    _sum: Usage = ZERO
    _due: float = float("inf")

    def take(self, facts: Iterable[Fact]) -> None:
        """Gather or pass on, in order."""
        for fact in facts:
            match fact:
                case Spoke():
                    self._spoke = fact
                    self._wait(LINE_WAIT)
                case Garbled():
                    known = self._garbled
                    self._garbled = (
                        fact
                        if known is None
                        else evolve(fact, lines=known.lines + fact.lines, bytes=known.bytes + fact.bytes)
                    )
                    self._wait(LINE_WAIT)
                case Spent():
                    self._spend(fact)
                case _:
                    self.flush(fact)

    def flush(self, *more: Fact) -> None:
        """Pass on all that was gathered, then `more`, as one batch."""
        gathered: list[Fact] = [fact for fact in (self._garbled, self._spent, self._spoke) if fact is not None]
        self._spent = self._spoke = self._garbled = None
        self._sum, self._due = ZERO, float("inf")
        self.desk.gathered.pop(self.agent, None)
        if gathered or more:
            self.desk.observe(*gathered, *more)

    def _spend(self, fact: Spent) -> None:
        self._spent = fact if self._spent is None else evolve(fact, reports=self._spent.reports + fact.reports)
        # The sum of what was reported is at least what will be booked: too early at worst.
        for report in fact.reports:
            self._sum += report.usage
        project: Project = self.desk.project
        node = project.agents.get(self.agent)
        if node is None or not budgets.margin(project, node, self._sum) or len(self._spent.reports) >= 256:
            self.flush()
        else:
            self.desk.gathered[self.agent] = self.flush
            self._wait(USAGE_WAIT)

    def _wait(self, delay: float) -> None:
        due = trio.current_time() + delay
        if due < self._due:
            self._due = due
            self.later(delay, self._ring)

    def _ring(self) -> None:
        if trio.current_time() >= self._due:
            self.flush()
