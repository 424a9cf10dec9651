"""Leaving and coming back: stop, disband, down, start, restart, and what follows when an agent leaves or has left."""

from __future__ import annotations

from itertools import islice

from supervisor.core.decide import fork, park, stand, trial
from supervisor.core.decide.moment import Moment
from supervisor.core.facts import Away, Cause, Downed, Fact, Forgotten, Leaving, Left, Rerun
from supervisor.core.refusals import refuse
from supervisor.core.spec import Declared, Fleet
from supervisor.core.state import Node, Project, fold
from supervisor.core.words import called

#: How many gone agents of a project stay in view. One that `start` may bring back is not counted.
GONE_KEPT = 200


def leave(node: Node, to: Away, cause: Cause, by: str) -> list[Fact]:
    """The agent leaves, unless it is leaving as far already or has left. Stopped is less than gone: a stop does not
    hold up a disband, a disband overtakes a stop. Whatever ends a branch also ends the hope of one that would follow
    an agent that is being released."""
    if node.state == "gone" or (to == "stopped" and not node.live):
        return []
    followed = node.leaving == "tasks" and node.spec.replace and cause != "tasks"
    if node.state == "stopping" and node.wanted == "gone" and not followed:
        return []
    return [Leaving(node.id, to, cause, by)]


def down(project: Project, by: str) -> list[Fact]:
    """All mains leave for good, and the project with them."""
    facts: list[Fact] = [Downed()] if project.wanted else []
    for main in project.mains:
        facts += leave(project.agents[main], "gone", "down", by)
    return facts


def start(project: Project, node: Node, moment: Moment, by: str) -> list[Fact]:
    """Revive a stopped agent and its declared children, or a declared one that was disbanded; a live one is left alone,
    but that a parked one is tried at once. Its budgets are asked for anew only where they were given back."""
    park.by_a_person(node, by, "start")
    if node.state == "parked":
        return park.wake(project, node)
    if node.live:
        return []
    if node.state == "stopping":
        raise _cannot(f"{node.name} is still stopping", "stopping")
    if not project.wanted:
        raise refuse("down", "the project is not up: `supervisorctl up` runs it")
    parent = project.above(node)
    if parent is not None and not parent.live:
        raise _cannot(f"its parent {parent.name} is {parent.state}; start that first", parent.state)
    declared = declaration(project, node) if node.declared else None
    if node.state == "stopped":
        if _has_done_all(node):
            raise _cannot(f"{node.name} has done its {node.tasks} tasks; disband it", "stopped")
        return trial.admitted(project, _revive(project, node, declared, moment, by), moment.stamp.at)
    if declared is None:
        raise _cannot(f"{node.name} is gone for good; fork another", "gone")
    return trial.admitted(project, fork.declare(_fleet(project), moment, declared, node.parent, by), moment.stamp.at)


def _fleet(project: Project) -> Fleet:
    """What was accepted; there is something where an agent is."""
    return project.fleet or Fleet("")


def _cannot(why: str, held: str) -> Exception:
    return refuse("state", why, field="state", asked="start", held=held)


def _has_done_all(node: Node) -> bool:
    return node.spec.max_tasks is not None and node.tasks >= node.spec.max_tasks


def _revive(project: Project, node: Node, declared: Declared | None, moment: Moment, by: str) -> list[Fact]:
    """The agent, its stopped declared children, and those that the file has declared meanwhile."""
    facts: list[Fact] = [stand.again(project, node)]
    entries = {fold(entry.name): entry for entry in declared.children} if declared is not None else {}
    for child in node.children:
        below = project.agents[child]
        if below.declared and below.state == "stopped" and not _has_done_all(below):
            facts += _revive(project, below, entries.get(below.entry), moment, by)
    for entry in entries.values():
        if fold(entry.name) not in node.declares:
            facts += fork.declare(_fleet(project), moment, entry, node.id, by)
    return facts


def declaration(project: Project, node: Node) -> Declared | None:
    """What the accepted content says of a declared agent, whatever it is called now; None where it says nothing."""
    level = project.fleet.agents if project.fleet is not None else ()
    found: Declared | None = None
    for at in reversed([*project.up(node)]):
        found = next((entry for entry in level if fold(entry.name) == at.entry), None)
        if found is None:
            return None
        level = found.children
    return found


def restart(project: Project, node: Node, by: str, *, branch: bool) -> list[Fact]:
    """End the run and start another with its conversation; the children stay. The wait of a backoff is cut short, and
    for a person that of a park."""
    park.by_a_person(node, by, "restart")
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
        if at.state == "parked" and by != "operator":
            continue
        if at.live and at.alive:
            facts.append(Rerun(at.id, at.run))
        elif at.live:
            facts.append(stand.again(project, at))
    return facts


def after_leaving(project: Project, fact: Leaving, moment: Moment) -> list[Fact]:
    """Its children leave before it: forked ones for good, declared ones as it does. The last of them takes it along."""
    node = project.agents[fact.agent]
    facts: list[Fact] = []
    for child in node.children:
        below = project.agents[child]
        facts += leave(below, fact.to if below.declared else "gone", "parent", fact.agent)
    return facts or empty(project, node, moment)


def settled(node: Node) -> bool:
    """Whether nothing holds up an agent that leaves: its own run, or a child that has not left as far."""
    return node.state == "stopping" and not node.alive and not (node.here if node.wanted == "gone" else node.around)


def empty(project: Project, node: Node, moment: Moment) -> list[Fact]:
    """An agent that leaves has left once no run of it and no child is alive; then a fresh one may take its place.
    While the daemon leaves nothing is settled: nothing may start any more."""
    if project.closing or not settled(node):
        return []
    if node.wanted != "gone":
        return [Left(node.id, "stopped")]
    if node.leaving != "tasks" or not node.spec.replace:
        return [Left(node.id, "gone")]
    parent = project.above(node)
    fresh, births = "", list[Fact]()
    if not (field := fork.used_up(node)):
        fresh, births = fork.follower(_fleet(project), node, moment)
    told = f"{fresh} takes its place" if fresh else f"no other follows: nothing of its {field} is left"
    digest = moment.tell(parent, f"{called(node)} was released; {told}.", wake=False) if parent is not None else []
    return [Left(node.id, "gone"), *births, *digest]


def after_left(project: Project, fact: Left, moment: Moment) -> list[Fact]:
    """The parent may now have left too; the oldest of many gone ones are forgotten. A child was gone before its
    parent, so it is forgotten before it."""
    parent = project.above(project.agents[fact.agent])
    facts = empty(project, parent, moment) if parent is not None else []
    return facts + [Forgotten(agent) for agent in islice(project.gone, max(0, len(project.gone) - GONE_KEPT))]
