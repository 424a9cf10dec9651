"""What one pi says of its usage, as reports. It must book a model call once, from the line that ends it: pi repeats the
same usage in four other kinds of line."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from supervisor.core.facts import Fact, Spent
from supervisor.core.ledger import UNKNOWN, Report
from supervisor.kinds import fields, pi_lines
from supervisor.kinds.kind import Seat


class Books:
    """The books of one run."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        #: how large the model's window is
        self.window: int | None = None
        #: a model call is under way; the last one that was cut
        self._calling = False
        self._cut = ""

    def line(self, kind: str) -> None:
        """A turn of pi's is one model call."""
        self._calling = self._calling or kind == "turn_start"

    def answer(self, message: Mapping[str, object]) -> list[Fact]:
        """An assistant's message. What a call came to that was cut after it had begun is told by no line."""
        self._calling = False
        report = pi_lines.answer(message)
        if report is not None:
            report = evolve(report, held=report.usage.tokens, window=self.window)
        facts = self.book(report)
        stop, name = fields.words(message, "stopReason"), pi_lines.name(message)
        if (stop == "aborted" or (stop == "error" and pi_lines.text(message))) and name != self._cut:
            self._cut = name
            facts.append(self._missing())
        return facts

    def ended(self, *, running: bool) -> list[Fact]:
        """pi is gone, in the midst of a call perhaps."""
        missing, self._calling = running and self._calling, False
        return [self._missing()] if missing else []

    def entry(self, said: dict[str, object]) -> list[Fact]:
        """What pi asked of a model by itself, such as to keep a prompt cached, stands in no message."""
        entry = fields.member(said, "entry")
        return self.spent(entry, f"entry:{entry.get('id')}") if entry.get("type") == "usage" else []

    def compacted(self, said: dict[str, object]) -> list[Fact]:
        """A compaction is told as one call."""
        result = said.get("result")
        if not isinstance(result, dict) or not isinstance(result.get("usage"), dict):
            return self.book(UNKNOWN)
        told = self.book(UNKNOWN)
        return told + self.spent(result, f"compaction:{result.get('firstKeptEntryId')}:{result.get('tokensBefore')}")

    def context(self, stats: Mapping[str, object]) -> list[Fact]:
        """How full the window is."""
        full = pi_lines.context(stats.get("contextUsage"))
        self.window = full.window if full is not None and full.window else self.window
        return self.book(full)

    def spent(self, holder: Mapping[str, object], name: str) -> list[Fact]:
        """What stands under `usage`, as a call of this name."""
        return self.book(pi_lines.call(holder, name))

    def book(self, *reports: Report | None) -> list[Fact]:
        """Those that there are."""
        told = tuple(report for report in reports if report is not None)
        return [Spent(self._seat.agent, self._seat.run, told)] if told else []

    def _missing(self) -> Fact:
        return Spent(self._seat.agent, self._seat.run, (), incomplete=1)
