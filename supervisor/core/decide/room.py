"""Whether the tree has room for one more agent, and the line of forks that wait for some: who asked first goes first,
and nobody passes them."""

from __future__ import annotations

from attrs import frozen

from supervisor.core import line
from supervisor.core.decide import admit
from supervisor.core.facts import Cap, Downed, Exited, Fact, Leaving, LinedUp, Lost, OutOfLine, Unstarted
from supervisor.core.refusals import RefusedError, refuse
from supervisor.core.state import Node, Project

#: So many forks of one project wait at most.
LONGEST_LINE = 200


@frozen
class Full:
    """What has no room: `field` of `holder` ("": the project). `ever` says that there would be room if nobody else were
    there, so that it can be waited for."""

    field: Cap
    holder: str
    refusal: RefusedError
    ever: bool


def full(project: Project, parent: Node | None, seats: int, place: str | None) -> Full | None:
    """What there is no room in for one more agent under `parent` that takes so many `descendants`; None where there is
    room. What those ask for who wait for the same, and asked before, is not there any more: `place` as for
    `line.before`."""
    return _agents(project, place) or below(project, parent, seats, place)


def below(project: Project, parent: Node | None, seats: int, place: str | None) -> Full | None:
    """The same but for the number of agents in the project."""
    if parent is None:
        return None
    return _children(project, parent, place) or _descendants(project, parent, seats, place)


def _agents(project: Project, place: str | None) -> Full | None:
    held = project.fleet.agents_max if project.fleet is not None else 0
    ahead = line.before(project, place, "agents", "")
    if project.living + ahead < held:
        return None
    no = refuse(
        "agents", f"the project may have {held} agents and has {project.living}{_and(ahead)}",
        field="agents", asked=1, held=held, used=project.living, reserved=ahead or None, ask="operator",
    )  # fmt: skip
    return Full("agents", "", no, held >= 1)


def _children(project: Project, parent: Node, place: str | None) -> Full | None:
    held = parent.grant.children
    ahead = line.before(project, place, "children", parent.id)
    if held is None or parent.here + ahead < held:
        return None
    no = refuse(
        "bound", f"{parent.name} may have {held} children and has {parent.here}{_and(ahead)}",
        field="children", asked=1, held=held, used=parent.here, reserved=ahead or None,
        ask=project.giver(parent), holder=parent.name,
    )  # fmt: skip
    return Full("children", parent.id, no, held >= 1)


def _descendants(project: Project, parent: Node, seats: int, place: str | None) -> Full | None:
    holder = project.holder(parent, "descendants")
    if holder is None:
        return None
    account, ahead = holder.accounts["descendants"], line.before(project, place, "descendants", holder.id)
    if account.committed + ahead + seats <= account.held:
        return None
    no = admit.short(project, holder, "descendants", seats, ahead)
    return Full("descendants", holder.id, no, seats <= account.held)


def _and(ahead: int) -> str:
    return f", and {ahead} forks wait before this one" if ahead else ""


# --- the line


def wait(project: Project, by: tuple[str, int], parent: Node | None, seats: int, place: str, why: Full) -> list[Fact]:
    """A fork waits for room: in a place of its own, or goes on waiting in the one it has."""
    if not why.ever:
        raise why.refusal
    if not place and len(project.line) >= LONGEST_LINE:
        raise refuse(
            "bound", f"{LONGEST_LINE} forks wait already",
            field="line", asked=1, held=LONGEST_LINE, used=len(project.line), ask="operator",
        )  # fmt: skip
    above = parent.id if parent is not None else ""
    waits = LinedUp(place or f"q{project.lined + 1}", *by, above, why.field, why.holder, seats)
    known = project.line.get(place)
    if known is not None and (known.field, known.holder) == (waits.field, waits.holder):
        return []
    return [waits]


def due(project: Project, place: str) -> bool:
    """Whether a fork that waits is to ask again: it may have room, may never have any, waits for something else than
    before, or waits no longer."""
    waits = project.line.get(place)
    if waits is None or project.closing:
        return True
    parent = project.agents.get(waits.parent)
    found = full(project, parent, waits.seats, place)
    return found is None or not found.ever or (found.field, found.holder) != (waits.field, waits.holder)


def seats(descendants: int | None) -> int:
    """How many `descendants` an agent takes: itself, and what is carved out for it."""
    return 1 + (descendants or 0)


def after_leaving(project: Project, fact: Leaving) -> list[Fact]:
    """Nobody waits to stand under one that leaves."""
    return [OutOfLine(name, "parent") for name, place in project.line.items() if place.parent == fact.agent]


def after_run(project: Project, fact: Exited | Unstarted | Lost) -> list[Fact]:
    """Whoever asked in that run hears no answer any more."""
    asked = (fact.agent, fact.run)
    return [OutOfLine(name, "asker") for name, place in project.line.items() if (place.by, place.run) == asked]


def after_down(project: Project, _fact: Downed) -> list[Fact]:
    """Nothing is to be born any more."""
    return [OutOfLine(name, "down") for name in project.line]
