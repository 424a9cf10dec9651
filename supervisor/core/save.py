"""The live tree as declarations: what `save` writes, so that `up` of that file brings the same agents."""

from __future__ import annotations

from attrs import evolve

from supervisor.core.spec import Declared, Fleet
from supervisor.core.state import Node, Project


def as_fleet(project: Project, fleet: Fleet) -> Fleet:
    """The accepted content with the agents that live now, forked ones too, under the names they have now."""
    mains = (project.agents[main] for main in project.mains)
    return evolve(fleet, agents=tuple(_declared(project, main) for main in mains if main.state != "gone"))


def _declared(project: Project, node: Node) -> Declared:
    children = (project.agents[child] for child in node.children)
    return Declared(
        node.name,
        node.spec,
        node.grant,
        tuple(_declared(project, child) for child in children if child.state != "gone"),
    )
