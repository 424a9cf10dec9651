"""Forks that wait in line because the tree is full where they belong: who asked first goes first. Changed by facts
alone, through `apply`; what each waits for is found by `decide/room`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from supervisor.core.facts import Cap

if TYPE_CHECKING:
    from supervisor.core import facts
    from supervisor.core.state import Project


@frozen
class Place:
    """One fork that waits. `by` asked for it, an agent in its run `run`; `parent` is whom it would stand under ("": it
    would be a main). `field` is what is full, `holder` whose that is ("": the project's). `seats` is how many
    `descendants` it would take."""

    by: str
    run: int
    parent: str
    field: Cap
    holder: str
    seats: int
    since: float

    @property
    def asked(self) -> int:
        """How much it would take of what it waits for."""
        return self.seats if self.field == "descendants" else 1


def before(project: Project, place: str | None, field: Cap, holder: str) -> int:
    """How much those ask for who wait for the same and asked before this one: all of them before one that has no place
    (""), none before one that waits for nobody (None)."""
    asked = 0
    for name, other in project.line.items() if place is not None else ():
        if name == place:
            break
        asked += other.asked if (other.field, other.holder) == (field, holder) else 0
    return asked


def lined_up(project: Project, fact: facts.LinedUp, at: float) -> None:
    """One more waits, behind all others; or one that waits already waits for something else, where it stood."""
    known = project.line.get(fact.place)
    since = known.since if known is not None else at
    project.line[fact.place] = Place(fact.by, fact.run, fact.parent, fact.field, fact.holder, fact.seats, since)
    project.lined = max(project.lined, int(fact.place[1:]))


def out_of_line(project: Project, fact: facts.OutOfLine, _at: float) -> None:
    """One waits no longer."""
    project.line.pop(fact.place, None)
