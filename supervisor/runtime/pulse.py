"""The signs of life of one run, each with its age on the monotonic clock: its process, its turn, its progress, its last
output. They are kept here and are no facts: a line a second would be all that a journal holds. It judges nothing."""

from __future__ import annotations

from typing import Any

import trio

from supervisor.core.state import Node
from supervisor.runtime.containment import marks
from supervisor.runtime.containment.cell import Cell

#: Of one processor, what counts as work between two looks; less is a program that only waits. At least so many seconds.
SHARE, LEAST = 0.01, 0.02

Identity = tuple[int, int]


class Pulse:
    """All times are of trio's clock, which stands still while the machine sleeps."""

    def __init__(self) -> None:
        now = trio.current_time()
        self.begun = self.progress = self.told = now
        self.turn = now
        self.line: float | None = None
        self._worked = now
        self._seen: tuple[frozenset[Identity], float, float] | None = None

    def said(self) -> None:
        """It printed something."""
        self.line = trio.current_time()

    def moved(self, *, turn: bool = False) -> None:
        """It did something that it was there for; with `turn` it began one by itself."""
        self.progress = trio.current_time()
        if turn:
            self.turn = self.progress

    def spoken_to(self, *, turn: bool = False) -> None:
        """It was given something to do; with `turn` a turn begins with it."""
        self.told = self.progress = trio.current_time()
        if turn:
            self.turn = self.told

    def look(self, cell: Cell) -> None:
        """Whether any of its processes, whichever it started, has worked, come or gone since the last look."""
        now = trio.current_time()
        members = cell.members()
        who = frozenset((member.pid, member.start) for member in members)
        used = sum(marks.cpu(member.pid) for member in members)
        if self._seen is not None:
            before, then, at = self._seen
            if who != before or used - then >= max(LEAST, SHARE * (now - at)):
                self._worked = self.progress = now
        self._seen = who, used, now

    def overslept(self) -> None:
        """Nobody could hear it for a while: what it said and did then is yet to be seen."""
        self.told = trio.current_time()

    @property
    def silent(self) -> float:
        """For how long it has printed nothing, since it was last given something to do (seconds)."""
        return trio.current_time() - max(self.told, self.line or 0.0)

    @property
    def still(self) -> float:
        """For how long it has neither printed anything nor worked, as far as was looked (seconds)."""
        return min(self.silent, trio.current_time() - self._worked)

    def shown(self, node: Node) -> dict[str, Any]:
        """Every age in seconds, None where there is no such thing; and its silence, while it works."""
        now = trio.current_time()
        times = {
            "process": self.begun,
            "turn": self.turn if node.turn else None,
            "progress": self.progress,
            "line": self.line,
        }
        ages = {name: None if time is None else round(now - time, 3) for name, time in times.items()}
        return {"ages": ages, "silent": round(self.silent, 3) if node.state == "working" else None}
