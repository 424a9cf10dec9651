"""What was recorded of a program, booked as a live run's is: the same readers, the same meter. It never makes a number
up: what the lines do not say is not in the books, and is said to be missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from attrs import Factory, define, evolve

from supervisor.core.facts import Blocked, Fact, Garbled, Limited, Ready, Spent, TurnEnded, TurnStarted
from supervisor.core.ledger import NANO, ZERO, Meter, Report, Usage
from supervisor.core.spec import Spec
from supervisor.kinds.kind import Seat

Plain = dict[str, Any]
#: So much of an error's text is shown.
LONGEST = 2000
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LOGIN = re.compile(r"/login|log ?in\b|logged in|api key|auth method|unauthori[sz]ed", re.IGNORECASE)


def seat(kind: str) -> Seat:
    """Whoever the recorded agent was."""
    return Seat("a1", 1, "recorded", session="", resume=False, home="", spec=Spec(kind))


@define
class Recorded:
    """The books of one conversation, from one transcript after another. `price` fills in a cost that a report does not
    say; `torn` says that the last line of a transcript has no end."""

    price: Callable[[Report], Report] = lambda report: report
    spent: Usage = ZERO
    turns: int = 0
    session: str = ""
    model: str = ""
    prices: str = ""
    errors: list[Plain] = Factory(list)
    interrupted: bool = False
    unreadable: int = 0
    torn: bool = False
    #: a turn runs; a limit was told in it
    turn: bool = False
    limited: bool = False
    #: by what they count from, the first and the highest figure of reports that count from the beginning of a
    #: conversation
    first: dict[str, Usage] = Factory(dict)
    highest: dict[str, Usage] = Factory(dict)
    _meter: Meter = Factory(Meter)
    _run: int = 0

    def begin(self) -> None:
        """Another transcript: another process."""
        self._run += 1

    def take(self, facts: Iterable[Fact]) -> None:
        """What a reader made of some lines."""
        for fact in facts:
            self._take(fact)

    def before(self, facts: Iterable[Fact]) -> None:
        """What an earlier transcript says was spent before this one begins: it is not counted here."""
        for fact in facts:
            for report in fact.reports if isinstance(fact, Spent) else ():
                self._meter.book(self.price(report), self._run)

    def _take(self, fact: Fact) -> None:
        match fact:
            case Ready():
                self.session, self.model = fact.session or self.session, fact.model or self.model
            case TurnStarted():
                self.turns += 1
                self.turn, self.limited = True, False
            case TurnEnded():
                self._ended(fact)
            case Limited():
                self.limited = True
                self._error(fact.sort, fact.text)
            case Spent():
                self._spend(fact)
            case Garbled():
                self.unreadable += fact.lines
            case Blocked():
                self.limited = False

    def refused(self, stderr: str) -> None:
        """What a program said on stderr that did nothing: why it refused to start. One that did something has said on
        stdout what became of it."""
        if self.turns or self.errors or self.spent != ZERO:
            return
        said = (_ANSI.sub("", line).rstrip() for line in stderr.splitlines())
        words = "\n".join(line for line in said if line and not line.lower().startswith("warning"))
        if words:
            self._error("auth" if _LOGIN.search(words) else "error", words)

    def _ended(self, fact: TurnEnded) -> None:
        self.turn = False
        self.interrupted = self.interrupted or fact.outcome == "aborted"
        # A limit is why such a turn ended: it is one error, not two.
        if fact.outcome == "error" and not self.limited:
            self._error("error", fact.error)
        self.limited = False

    def _error(self, sort: str, text: str) -> None:
        self.errors.append({"sort": sort, "text": text[:LONGEST]})

    def _spend(self, fact: Spent) -> None:
        for said in fact.reports:
            self.model = said.model or self.model
            report = self.price(said)
            if report.scope == "total" and report.epoch and report.usage.tokens:
                self.first.setdefault(report.epoch, report.usage)
                self.highest[report.epoch] = self.highest.get(report.epoch, ZERO).highest(report.usage)
            added = self._meter.book(report, self._run)
            self.prices = report.prices if added.estimated else self.prices
            self.spent += evolve(added, turns=0)
        self.spent += Usage(incomplete=max(0, fact.incomplete))

    @property
    def incomplete(self) -> bool:
        """Whether something of what was spent is not in these books: a call's usage never came, or the recording ends
        in the middle of a line or of a turn."""
        return bool(self.torn or self.turn or self.spent.incomplete)

    def plain(self) -> Plain:
        """The answer."""
        spent = self.spent
        known = spent.cost > 0 or not spent.tokens
        return {
            "input": spent.input,
            "cache_read": spent.cache_read,
            "cache_write": spent.cache_write,
            "output": spent.output,
            "reasoning": spent.reasoning,
            "calls": spent.calls,
            "turns": self.turns,
            "cost": spent.cost / NANO if known else None,
            "estimated": self.prices,
            "session": self.session,
            "model": self.model,
            "errors": self.errors,
            "interrupted": self.interrupted,
            "incomplete": self.incomplete,
            "incomplete_calls": spent.incomplete,
            "unreadable": self.unreadable,
        }


def follows(one: Recorded, earlier: Recorded) -> bool:
    """Whether `one` goes on counting where an earlier transcript of the same conversation ended: its first figure is
    beyond the other's last one."""
    return any(
        (end := earlier.highest.get(epoch)) is not None and end.beyond(first) == ZERO and first.beyond(end).tokens > 0
        for epoch, first in one.first.items()
    )
