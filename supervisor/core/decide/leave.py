"""Leaving and coming back: stop, disband, down, start, restart, and what follows when an agent leaves or has left."""

from __future__ import annotations

from supervisor.core.decide import fork
from supervisor.core.decide.moment import Moment
from supervisor.core.facts import Away, Cause, Downed, Fact, Forgotten, Leaving, Left, Rerun, Starting
from supervisor.core.refusals import refuse
from supervisor.core.spec import Declared
from supervisor.core.state import Node, Project, fold

#: How many gone children of one agent (or gone mains) stay in view.
GONE_KEPT = 50


def leave(node: Node, to: Away, cause: Cause, by: str) -> list[Fact]:
    """The agent leaves, unless it has left as far already. Stopped is less than gone."""
    if node.state == "gone" or (to == "stopped" and (node.away or node.state == "stopping")):
        return []
    if node.state == "stopping" and node.wanted == "gone":
        return []
    return [Leaving(node.id, to, cause, by)]


def down(project: Project, by: str) -> list[Fact]:
    """All mains leave for good, and the project with them."""
    facts: list[Fact] = [Downed()] if project.wanted else []
    for main in project.mains:
        facts += leave(project.agents[main], "gone", "down", by)
    return facts


def start(project: Project, node: Node, moment: Moment) -> list[Fact]:
    """Revive a stopped agent and its declared children, or a declared one that was disbanded; a live one is left alone."""
    if node.live:
        return []
    if node.state == "stopping":
        raise refuse("state", f"{node.name} is still stopping", field="state", asked="start", held="stopping")
    parent = project.agents[node.parent] if node.parent is not None else None
    if parent is not None and not parent.live:
        raise refuse(
            "state",
            f"its parent {parent.name} is {parent.state}; start that first",
            field="state",
            asked="start",
            held=parent.state,
        )
    if node.state == "stopped":
        return _revive(project, node)
    declared = declaration(project, node) if node.declared else None
    if declared is None:
        raise refuse("state", f"{node.name} is gone for good; fork another", field="state", asked="start", held="gone")
    fork.check_name(project, declared.name)
    return fork.declare(moment, declared, node.parent, "operator")


def _revive(project: Project, node: Node) -> list[Fact]:
    facts: list[Fact] = [Starting(node.id, node.run + 1, resume=bool(node.session))]
    for child in node.children:
        below = project.agents[child]
        if below.declared and below.state == "stopped":
            facts += _revive(project, below)
    return facts


def declaration(project: Project, node: Node) -> Declared | None:
    """What the accepted content says of a declared agent; None where it says nothing."""
    path = [fold(at.name) for at in project.up(node)][::-1]
    level = project.fleet.agents if project.fleet is not None else ()
    found: Declared | None = None
    for name in path:
        found = next((entry for entry in level if fold(entry.name) == name), None)
        if found is None:
            return None
        level = found.children
    return found


def restart(project: Project, node: Node, *, branch: bool) -> list[Fact]:
    """End the run and start another with its conversation; the children stay."""
    if not node.live:
        raise refuse(
            "state",
            f"{node.name} is {node.state}; start it instead",
            field="state",
            asked="restart",
            held=node.state,
        )
    facts: list[Fact] = []
    for at in project.down(node) if branch else (node,):
        if at.live and at.alive:
            facts.append(Rerun(at.id, at.run))
        elif at.live:
            facts.append(Starting(at.id, at.run + 1, resume=bool(at.session)))
    return facts


def after_leaving(project: Project, fact: Leaving, moment: Moment) -> list[Fact]:
    """Its children leave before it: forked ones for good, declared ones as it does."""
    node = project.agents[fact.agent]
    facts: list[Fact] = []
    for child in node.children:
        below = project.agents[child]
        facts += leave(below, fact.to if below.declared else "gone", "parent", fact.agent)
    return facts + empty(project, node, moment)


def empty(project: Project, node: Node, moment: Moment) -> list[Fact]:
    """An agent that leaves has left once no run of it and no child is alive; then a fresh one may take its place."""
    if node.state != "stopping" or node.alive:
        return []
    if any(not project.agents[child].away for child in node.children):
        return []
    if node.wanted != "gone":
        return [Left(node.id, "stopped")]
    replaced = fork.follower(node, moment) if node.leaving == "tasks" and node.spec.replace else []
    return [Left(node.id, "gone"), *replaced]


def after_left(project: Project, fact: Left, moment: Moment) -> list[Fact]:
    """The parent may now have left too; the oldest of many gone ones are forgotten."""
    node = project.agents[fact.agent]
    facts: list[Fact] = []
    siblings = project.mains
    if node.parent is not None:
        parent = project.agents[node.parent]
        siblings = parent.children
        facts += empty(project, parent, moment)
    if fact.to == "gone":
        gone = [child for child in siblings if project.agents[child].state == "gone"]
        facts += [Forgotten(child) for child in gone[: max(0, len(gone) - GONE_KEPT)]]
    return facts
