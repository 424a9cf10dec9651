"""What one codex says of its usage, as reports: a thread's total is booked by what is new in it.

A call that began and was never told is said to be missing. Threads of codex's own agents count too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import evolve

from supervisor.core.facts import Fact, Outcome, Spent
from supervisor.core.ledger import ZERO, Report, Usage
from supervisor.kinds import codex_lines, fields
from supervisor.kinds.kind import Seat

#: Of a thread of a subagent, which says nothing of how full ours is.
_NOTHING = Report("call", ZERO)


class Books:
    """The books of one run, or of a `recorded` one, whose thread may have had a life before that is none of it."""

    def __init__(self, seat: Seat, *, recorded: bool) -> None:
        self.thread = self.model = ""
        self._seat = seat
        self._recorded = recorded
        #: the last total of each thread, and the threads of which a turn was seen to begin
        self._known: dict[str, Usage] = {}
        self._alive: set[str] = set()
        #: how far the model call is that no usage was told of yet
        self._call: Literal["none", "asked", "answering"] = "none"
        self._turn = False
        #: the tools of that call that run, and whether one has ended
        self._tools: set[str] = set()
        self._told = False

    def started(self, thread: str) -> None:
        """A turn begins."""
        self._alive.add(thread)
        if thread == self.thread:
            self._begin(turn=True)

    def _begin(self, *, turn: bool) -> None:
        self._turn, self._call, self._told = turn, "none", False
        self._tools.clear()

    def item(self, kind: str, name: str, *, done: bool = False) -> None:
        """An item of our thread: what comes from a model is part of a call's answer."""
        if kind in codex_lines.OURS:
            if kind == "userMessage" and self._call == "none":
                self._call = "asked"
        elif not done:
            self._call = "answering"
            self._tools |= {name} if kind in codex_lines.TOOLS else set()
        elif name in self._tools:
            self._tools.discard(name)
            self._told = True

    def used(self, params: Mapping[str, object]) -> list[Fact]:
        """A total. One that says nothing new is repeated: at a resume, or because a call was cut."""
        thread = fields.words(params, "threadId", most=fields.LAST)
        used = fields.member(params, "tokenUsage")
        total, last = (codex_lines.live(fields.member(used, key)) for key in ("total", "last"))
        full = codex_lines.context(used) if thread == self.thread else None
        known, self._known[thread] = self._known.get(thread), total
        if total == (known or ZERO):
            return self._spent(full) if full is not None else []
        if thread == self.thread:
            # What tools have told goes into another call at once; one that still runs was cut.
            self._call, self._told = ("asked" if self._told and not self._tools else "none"), False
        name = f"{thread}:{total.tokens}"
        if thread == self.thread and not self._recorded:
            whole = Report("total", total, epoch=thread, model=self.model)
            call = evolve(full or _NOTHING, usage=Usage(calls=1), id=name, model=self.model)
            return self._spent(whole, call)
        if known is None and self._recorded and thread not in self._alive:
            return []  # what was before this recording
        added = last if known is None else total.beyond(known)
        call = evolve(full or _NOTHING, usage=evolve(added, calls=1), id=name, model=self.model)
        return self._spent(call)

    def over(self, outcome: Outcome) -> list[Fact]:
        """Our turn is over. A call that failed before it was answered costs nothing; one that was cut may have."""
        missing = self._call == "answering" or (self._call == "asked" and outcome == "aborted")
        self._begin(turn=False)
        return [Spent(self._seat.agent, self._seat.run, (), incomplete=1)] if missing else []

    def ended(self) -> list[Fact]:
        """codex is gone, in the midst of a turn perhaps."""
        return self.over("aborted") if self._turn else []

    def _spent(self, *reports: Report) -> list[Fact]:
        return [Spent(self._seat.agent, self._seat.run, reports)]
