"""How an agent comes to be there: a run of its program begins, or, where the program does one task and ends, the agent
stands by without one."""

from __future__ import annotations

from supervisor.core.facts import Fact, Starting, Stood
from supervisor.core.spec import Fleet
from supervisor.core.state import Node, Project


def first(fleet: Fleet, agent: str, kind: str) -> Fact:
    """The beginning of a new agent's life."""
    return Stood(agent) if fleet.once(kind) else Starting(agent, 1)


def again(project: Project, node: Node, *, resume: bool = True) -> Fact:
    """It goes on, with its conversation unless `resume` is false."""
    if project.once(node):
        return Stood(node.id)
    return Starting(node.id, node.run + 1, resume=resume and bool(node.session))
