"""Accepting a file: what starts, what changes, what ends. Tried on a copy first, so that a refused file leaves all as it was."""

from __future__ import annotations

from copy import deepcopy

from attrs import evolve

from supervisor.core.apply import apply
from supervisor.core.decide import admit, fork, leave
from supervisor.core.decide.moment import Moment
from supervisor.core.facts import Accepted, Born, Fact, Granted, Leaving, Rerun, Respecified
from supervisor.core.refusals import refuse
from supervisor.core.requests import Up
from supervisor.core.spec import Declared, Fleet
from supervisor.core.state import Node, Project, fold

#: What of a declaration may change under a running program.
KEPT_RUNNING = ("task", "description", "role", "max_tasks", "replace", "restart", "resume", "stop_grace", "resources")


def up(project: Project, request: Up, moment: Moment, by: str) -> list[Fact]:
    """The facts of running exactly this content. A first `up` starts everything; a further one only what changed."""
    fleet, old = request.fleet, project.fleet
    accepted = Accepted(request.file, request.sha256, request.path, fleet)
    if old is not None and project.wanted and accepted == Accepted(project.file, project.sha256, project.path, old):
        return []
    kinds = {kind.name for kind in fleet.kinds if old is not None and kind not in old.kinds}
    facts: list[Fact] = [accepted]
    present = _present(project, project.mains)
    facts += _gone(project, present, fleet.agents, by)
    for declared in fleet.agents:
        facts += _one(project, declared, None, present, kinds, moment, by)
    _check_size(project, facts, fleet)
    _try(project, facts, moment.stamp.at)
    return facts


def _present(project: Project, ids: list[str]) -> dict[str, Node]:
    """Declared agents among these, by folded name; those that are gone for good count only where they stay away."""
    nodes = [project.agents[agent] for agent in ids]
    return {fold(node.name): node for node in nodes if node.declared and node.leaving != "down"}


def _gone(project: Project, present: dict[str, Node], level: tuple[Declared, ...], by: str) -> list[Fact]:
    wanted = {fold(declared.name) for declared in level}
    facts: list[Fact] = []
    for name, node in present.items():
        if name not in wanted:
            facts += leave.leave(node, "gone", "reload", by)
    return facts


def _one(
    project: Project,
    declared: Declared,
    parent: Node | None,
    present: dict[str, Node],
    kinds: set[str],
    moment: Moment,
    by: str,
) -> list[Fact]:
    node = present.get(fold(declared.name))
    if node is None:
        if fold(declared.name) in project.names:
            raise refuse(
                "name",
                f"{declared.name} is the name of {project.names[fold(declared.name)]}",
                field="name",
                asked=declared.name,
            )
        return fork.declare(moment, declared, parent.id if parent else None, by)
    if node.state == "gone":
        return []  # disbanded: it stays away until `start`
    facts: list[Fact] = []
    if node.spec != declared.spec:
        facts.append(Respecified(node.id, declared.spec))
    if node.grant != declared.grant:
        facts.append(Granted(node.id, declared.grant))
    if node.alive and node.live and (_other_program(node, declared) or declared.spec.kind in kinds):
        facts.append(Rerun(node.id, node.run))
    below = _present(project, node.children)
    facts += _gone(project, below, declared.children, by)
    for child in declared.children if node.live else ():
        facts += _one(project, child, node, below, kinds, moment, by)
    return facts


def _other_program(node: Node, declared: Declared) -> bool:
    same = {name: getattr(declared.spec, name) for name in KEPT_RUNNING}
    return evolve(node.spec, **same) != declared.spec


def _check_size(project: Project, facts: list[Fact], fleet: Fleet) -> None:
    born = sum(isinstance(fact, Born) for fact in facts)
    leaving = sum(isinstance(fact, Leaving) for fact in facts)
    if project.living + born - leaving > fleet.agents_max:
        raise refuse(
            "agents",
            f"the project may have {fleet.agents_max} agents",
            field="agents",
            asked=born,
            held=fleet.agents_max,
            used=project.living,
        )


def _try(project: Project, facts: list[Fact], at: float) -> None:
    """Refuse a file in which a child holds more than its parent, by trying it on a copy."""
    trial = deepcopy(project)
    for fact in facts:
        if isinstance(fact, Born):
            parent = trial.agents[fact.parent] if fact.parent is not None else None
            if parent is not None and trial.level(parent) + 1 >= (trial.fleet.depth if trial.fleet else 32):
                raise refuse("depth", f"{fact.name} stands too deep in the tree", field="depth")
            admit.new(trial, parent, fact.spec.kind, fact.spec.model, fact.grant)
        elif isinstance(fact, Granted):
            admit.more(trial, trial.agents[fact.agent], fact.grant)
        apply(trial, fact, at)
