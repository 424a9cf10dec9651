"""What one project learns of a login, the others are told: the only thing that crosses projects. It keeps nothing of
its own, each project has it in its facts; and it tells neither who met the limit nor where."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Protocol

from supervisor.core.decide.park import GRAIN, PROBE
from supervisor.core.facts import Mended, Tripped
from supervisor.core.state import Project
from supervisor.runtime.desk import Desk

#: A login of which nobody says anything for so long after its time (seconds) is taken to be well.
FORGOTTEN = 2 * PROBE


class Room(Protocol):
    """An open project."""

    desk: Desk

    @property
    def project(self) -> Project:
        """Its state."""


class Breakers:
    """`rooms` gives all open projects, in a fixed order."""

    def __init__(self, rooms: Iterable[Room]) -> None:
        self._rooms = rooms

    def tripped(self, fact: Tripped, by: Project) -> None:
        """Tell the others of what one of them met. Each tries it later than the one before: at first only one does."""
        if fact.elsewhere:
            return
        later = fact.until
        for room in self._rooms:
            if room.project is not by:
                later += PROBE
                known = room.project.tripped.get(fact.credential)
                if known is None or known.until <= time.time() or known.until + GRAIN < fact.until:
                    room.desk.observe(Tripped(fact.credential, later, fact.sort, fact.text, elsewhere=True))

    def mended(self, fact: Mended, by: Project) -> None:
        """Tell the others that it takes more again."""
        for room in self._rooms:
            if not fact.elsewhere and room.project is not by and fact.credential in room.project.tripped:
                room.desk.observe(Mended(fact.credential, elsewhere=True))

    def joined(self, new: Room) -> None:
        """A project was opened: it is told what the others know, and they what it knows."""
        for room in self._rooms:
            if room is not new:
                _tell(room, new)
                _tell(new, room)


def _tell(source: Room, other: Room) -> None:
    for credential, trip in [*source.project.tripped.items()]:
        if credential not in other.project.tripped and trip.until > time.time():
            other.desk.observe(Tripped(credential, trip.until + PROBE, trip.sort, trip.text, elsewhere=True))
