"""What is known of agents whose provider takes no more for now, and of the logins that it says so of. Changed by facts
alone, through `apply`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, frozen

from supervisor.core.facts import Limit

if TYPE_CHECKING:
    from supervisor.core import facts
    from supervisor.core.state import Node, Project


@frozen
class Park:
    """Why an agent is parked."""

    sort: Limit
    text: str
    named: bool
    shared: bool


@frozen
class Trip:
    """A login that takes no more until then; `probe` is the agent that tries it first ("" where none does)."""

    until: float
    sort: Limit
    text: str
    probe: str = ""


def held(project: Project, node: Node) -> bool:
    """Whether the agent's login is stopped, and it is not the one to try it."""
    return node.credential in project.tripped and not node.trying


def place(credential: str) -> str:
    """Where a login is kept. Behind a point stands whose account it is, where that is known: somebody may log in as
    another there, and whoever starts then is that."""
    return credential.partition(".")[0]


def limited(_project: Project, node: Node, fact: facts.Limited) -> None:
    """Its task, if it has one, waits the limit out."""
    if node.task is not None:
        node.limited = fact.sort


def parked(_project: Project, node: Node, fact: facts.Parked) -> None:
    """For the first time since a model answered, or until another time."""
    node.parks += node.state != "parked"
    node.park = Park(fact.sort, fact.text, fact.named, fact.shared)
    node.until, node.trying = fact.until, False


def unparked(project: Project, node: Node, _fact: facts.Unparked) -> None:
    """It is tried."""
    tries(project, node)


def tries(project: Project, node: Node) -> None:
    """Whatever leads out of a park tries whether the provider takes more."""
    if node.state != "parked":
        return
    node.trying = True
    if (trip := project.tripped.get(node.credential)) is not None:
        project.tripped[node.credential] = evolve(trip, probe=node.id)


def tripped(project: Project, fact: facts.Tripped, _at: float) -> None:
    """Whoever was tried was tried in vain."""
    project.tripped[fact.credential] = Trip(fact.until, fact.sort, fact.text)
    _nobody_tries(project, fact.credential)


def mended(project: Project, fact: facts.Mended, _at: float) -> None:
    """Nobody need be tried any more."""
    project.tripped.pop(fact.credential, None)
    _nobody_tries(project, fact.credential)


def _nobody_tries(project: Project, credential: str) -> None:
    for node in project.agents.values():
        if node.credential == credential:
            node.trying = False


def turn_ended(node: Node, fact: facts.TurnEnded) -> None:
    """A turn that a limit cut is paid for; one that ended well says that the provider takes more."""
    if node.park is not None:
        broken_off(node)
    elif fact.outcome == "ok":
        node.parks = 0


def broken_off(node: Node) -> None:
    """A turn or a run of a parked agent is over: its task is not, and goes on without another turn being charged."""
    if node.park is None:
        return
    if node.turn:
        node.talk = evolve(node.talk, owed=True)
    if node.task is not None:
        node.limited = node.park.sort
