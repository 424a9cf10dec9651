"""What a run's program said, on its way to the desk: usage and last lines are gathered for a moment, all else goes at
once. It keeps the order in which things were said, and nothing is left behind when the run ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import UTC, tzinfo

import trio
from attrs import define, evolve, field

from supervisor.core import budgets
from supervisor.core.facts import Fact, Garbled, Limited, Ready, Spent, Spoke
from supervisor.core.ledger import UNKNOWN, ZERO, Report, Usage, joined
from supervisor.core.state import Project
from supervisor.kinds.until import until
from supervisor.runtime.allowance import Allowance
from supervisor.runtime.desk import Desk

#: Usage waits at most this long (seconds) for more, unless it may reach a threshold (DESIGN 2).
USAGE_WAIT = 0.1
#: A last line is for people: it may wait this long.
LINE_WAIT = 1.0


#: What may go into the journal of one run: this much at once, and this much a second (bytes). A model's lines are some
#: hundred bytes a second; a program that lies in a loop must not fill the disk.
BURST, RATE = 2 * 1024 * 1024, 16 * 1024
#: Usage of so many different calls is passed on whatever it comes to.
REPORTS = 256


@define
class Heard:
    """One run's gathering. `later(delay, call)` calls back after so many seconds, while the run lasts; `complain` tells
    people what is wrong with the program; `price` fills in a cost that a report does not say, before it is a fact;
    `zone` is that of its times."""

    desk: Desk
    agent: str
    later: Callable[[float, Callable[[], None]], None]
    complain: Callable[[str], None]
    price: Callable[[Report], Report] = lambda report: report
    zone: tzinfo = UTC
    _allowance: Allowance = field(factory=lambda: Allowance(BURST, RATE))
    _spent: list[Report] = field(factory=list)
    _spent_of: Spent | None = None
    _spoke: Spoke | None = None
    _garbled: Garbled | None = None
    _sum: Usage = ZERO
    _due: float = float("inf")
    _rings: float = float("inf")

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
                case Limited(until=None):
                    # A fact says when; what the program wrote may mean another time where the journal is read.
                    self.flush(evolve(fact, until=until(fact.text, time.time(), self.zone)))
                case Ready(fresh=True) if self._holds():
                    self.flush(fact, Spent(fact.agent, fact.run, (UNKNOWN,)))
                case _:
                    self.flush(fact)

    def _holds(self) -> bool:
        """Whether something is known of a conversation that is over now."""
        node = self.desk.project.agents.get(self.agent)
        return node is not None and (node.context is not None or node.held is not None)

    def flush(self, *more: Fact) -> None:
        """Pass on all that was gathered, then `more`, as one batch."""
        spent = evolve(self._spent_of, reports=tuple(self._spent)) if self._spent_of is not None else None
        gathered: list[Fact] = [fact for fact in (self._garbled, spent, self._spoke) if fact is not None]
        self._spent_of = self._spoke = self._garbled = None
        self._spent = []
        self._sum, self._due = ZERO, float("inf")
        self.desk.gathered.pop(self.agent, None)
        if gathered or more:
            self._allowance.take(self.desk.observe(*gathered, *more).size)

    def owed(self) -> float:
        """Seconds until what the program said is no more than any program may."""
        return self._allowance.wait

    def _spend(self, fact: Spent) -> None:
        known = self._spent_of
        self._spent_of = fact if known is None else evolve(fact, incomplete=known.incomplete + fact.incomplete)
        for report in map(self.price, fact.reports):
            same = joined(self._spent[-1], report) if self._spent else None
            if same is not None:
                self._sum += same.usage.beyond(self._spent[-1].usage)
                self._spent[-1] = same
            else:
                self._sum += report.usage
                self._spent.append(report)
        # The sum of what was reported is at least what will be booked: too early at worst.
        project: Project = self.desk.project
        node = project.agents.get(self.agent)
        if node is None or not budgets.margin(project, node, self._sum) or len(self._spent) >= REPORTS:
            self.flush()
        else:
            self.desk.gathered[self.agent] = self.flush
            self._wait(USAGE_WAIT)

    def _wait(self, delay: float) -> None:
        now = trio.current_time()
        self._due = min(self._due, now + delay)
        # One bell at most that rings as early: a flood may not wind up one for each line.
        if self._due < self._rings:
            self._rings = self._due
            self.later(self._due - now, self._ring)

    def _ring(self) -> None:
        self._rings = float("inf")
        now = trio.current_time()
        if now >= self._due:
            self.flush()
        elif self._due < float("inf"):
            self._rings = self._due
            self.later(self._due - now, self._ring)
