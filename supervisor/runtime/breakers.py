"""One breaker a login for the whole daemon: what one project learns of a login, the others are told, and of all who
wait for it one is tried at a time. It is the only thing that crosses projects. It keeps nothing of its own, each
project has it in its facts; and it tells neither who met the limit nor where."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Protocol

from supervisor.core.decide.park import APART, GRAIN, PROBE, waiting
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
        """Tell the others of what one of them met."""
        for room in self._rooms:
            if not fact.elsewhere and room.project is not by:
                known = room.project.tripped.get(fact.credential)
                if known is None or known.until <= time.time() or known.until + GRAIN < fact.until:
                    room.desk.observe(Tripped(fact.credential, fact.until, fact.sort, fact.text, elsewhere=True))

    def put_off(self, credential: str, by: Room) -> bool:
        """Whether an agent of another project tries the login now. The time has come for `by`'s own, too: they wait for
        how that goes, until a time that is shown."""
        trip = by.project.tripped.get(credential)
        others = (room.project for room in self._rooms if room.project is not by.project)
        if trip is None or not any(_tries(project, credential) for project in others):
            return False
        by.desk.observe(Tripped(credential, round(time.time() + PROBE, 3), trip.sort, trip.text, elsewhere=True))
        return True

    def mended(self, fact: Mended, by: Project) -> None:
        """Tell the others that it takes more again: theirs come back behind those of who found it."""
        if not fact.elsewhere:
            self._mend(fact.credential, APART * waiting(by, fact.credential), by)

    def forget(self, credential: str) -> None:
        """Nobody has said anything of it for long."""
        self._mend(credential, 0.0)

    def _mend(self, credential: str, after: float, but: Project | None = None) -> None:
        """In all projects, one behind the other."""
        for room in self._rooms:
            if room.project is not but and credential in room.project.tripped:
                behind = APART * waiting(room.project, credential)
                room.desk.observe(Mended(credential, elsewhere=True, after=round(after, 3)))
                after += behind

    def joined(self, new: Room) -> None:
        """A project was opened: it is told what the others know, and they what it knows."""
        for room in self._rooms:
            if room is not new:
                _tell(room, new)
                _tell(new, room)


def _tries(project: Project, credential: str) -> bool:
    """Whether one of its agents is to find out now whether the login takes more."""
    trip = project.tripped.get(credential)
    first = project.agents.get(trip.probe) if trip is not None else None
    return first is not None and first.trying and first.live


def _tell(source: Room, other: Room) -> None:
    for credential, trip in [*source.project.tripped.items()]:
        if credential not in other.project.tripped and trip.until > time.time():
            other.desk.observe(Tripped(credential, trip.until, trip.sort, trip.text, elsewhere=True))
