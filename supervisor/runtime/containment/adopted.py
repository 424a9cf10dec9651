"""Orphans: the daemon's own children that no host spawned, and whose they are. One look at them serves all cells that
ask within the same moment. Signals nothing."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Protocol

from supervisor.launchers.local import LEADERS
from supervisor.runtime.containment import marks
from supervisor.runtime.containment.reaper import collect

if TYPE_CHECKING:
    from collections.abc import Sequence

#: How long a look serves others, in seconds, and how many times as long as it took: of hundreds that ask at once, each
#: would look anew while the others wait. Who needs to see what happened since says so.
SHARED, WORTH = 0.002, 5


class Owner(Protocol):
    """Whose an orphan is."""

    agent: str

    def nudge(self) -> None:
        """One of yours ended."""


class Adopted:
    """Attribution is by the mark, then by session, then by what the environment says, then by where it was seen."""

    def __init__(self, instance: int) -> None:
        self.instance = instance
        self.numbers: dict[int, Owner] = {}  # by the number of the run, as in its mark
        self.sessions: dict[int, Owner] = {}  # by the session's id, which is the leader's pid
        self.agents: dict[str, Owner] = {}
        self.seen: dict[int, tuple[int, Owner]] = {}  # pid → (start, owner) of what was met below a leader
        self._owners: dict[int, Owner] = {}
        self._held: dict[Owner, list[int]] = {}
        self._unclaimed: list[int] = []
        self._at = float("-inf")
        self._took = 0.0

    def of(self, owner: Owner, since: float) -> Sequence[int]:
        """The orphans of this owner, as a look within the moment saw them that was not before `since` (monotonic)."""
        if self._at < max(since, time.monotonic() - max(SHARED, WORTH * self._took)):
            self.look()
        return self._held.get(owner, ())

    def unclaimed(self) -> tuple[int, ...]:
        """Orphans that carry no sign of whose they are."""
        self.look()
        return tuple(self._unclaimed)

    def orphans(self) -> list[int]:
        """All of them, as the last look saw them."""
        return [*self._unclaimed, *(pid for held in self._held.values() for pid in held)]

    def look(self) -> None:
        """Collect what has ended; the rest of our children are either leaders or orphans that live.

        Only this process takes a child off that list, and it is busy here: unlike other such lists it is whole."""
        collect(self.ending)
        at = time.monotonic()
        held: dict[Owner, list[int]] = {}
        unclaimed: list[int] = []
        for pid in marks.children(os.getpid()):
            if pid in LEADERS:
                continue
            # A number stays with its process until it is collected, so what was once found out holds.
            owner = self._owners.get(pid) or self._attribute(pid)
            if owner is not None:
                self._owners[pid] = owner
                held.setdefault(owner, []).append(pid)
            elif (found := marks.stat(pid)) is not None and found.session != os.getsid(0):
                unclaimed.append(pid)
        self._held, self._unclaimed, self._at = held, unclaimed, at
        self._took = time.monotonic() - at

    def _attribute(self, pid: int) -> Owner | None:
        mark = marks.marked(pid)
        if mark is not None and mark[0] == self.instance and mark[1] in self.numbers:
            return self.numbers[mark[1]]
        found = marks.stat(pid)
        if found is None:
            return None
        if found.session in self.sessions:
            return self.sessions[found.session]
        named = marks.named(pid)
        if named is not None and named[0] == self.instance and named[1] in self.agents:
            return self.agents[named[1]]
        start, owner = self.seen.get(pid, (0, None))
        return owner if start == found.start else None

    def ending(self, pid: int) -> None:
        """An orphan ended and is about to be collected."""
        self._at = float("-inf")  # it may have had children, which are orphans now
        owner = self._owners.pop(pid, None) or self._attribute(pid)
        if owner is not None:
            owner.nudge()
