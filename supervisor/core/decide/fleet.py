"""Accepting a file: what starts, what changes, what ends. Tried on a copy first, so that a refused file leaves all
as it was.

The file is compared with the one that was accepted before: only what differs changes anything. What was granted or
renamed since then stays, unless the file changes that very entry; an agent is known by the name it was declared under,
whatever it is called now. A disbanded agent stays away until `start`, or until `down` and `up`."""

from __future__ import annotations

from attrs import Factory, define, evolve, fields

from supervisor.core.budgets import named
from supervisor.core.decide import fork, leave, trial
from supervisor.core.decide.moment import Moment
from supervisor.core.facts import Accepted, Fact, Granted, Rerun, Respecified, Starting
from supervisor.core.grants import Grant
from supervisor.core.refusals import refuse
from supervisor.core.requests import Up
from supervisor.core.spec import Declared, Fleet
from supervisor.core.state import Node, Project, fold

#: What of a declaration may change under a running program.
KEPT_RUNNING = (
    "task", "description", "role", "max_tasks", "replace", "restart", "resume", "stop_grace", "resources",
    "quiet_after", "quiet_kill",
)  # fmt: skip


def up(project: Project, request: Up, moment: Moment, by: str) -> list[Fact]:
    """The facts of running exactly this content. A first `up` starts everything; a further one only what changed."""
    fleet, old = request.fleet, project.fleet
    accepted = Accepted(request.file, request.sha256, request.path, fleet)
    if old is not None and project.wanted and accepted == Accepted(project.file, project.sha256, project.path, old):
        return []
    changed = {kind.name for kind in fleet.kinds if old is not None and kind not in old.kinds}
    changes = _Changes(project, fleet, moment, by, changed)
    changes.level(None, fleet.agents, old.agents if old is not None else ())
    # What is taken is taken first, children before parents; then what is given, parents before children.
    facts = [accepted, *changes.leaving, *reversed(changes.lowered), *changes.rest]
    return trial.admitted(project, facts, moment.stamp.at)


@define
class _Changes:
    """The facts that a file comes to, gathered level by level. `kinds` are the names of those that changed."""

    project: Project
    fleet: Fleet
    moment: Moment
    by: str
    kinds: set[str]
    leaving: list[Fact] = Factory(list)
    lowered: list[Fact] = Factory(list)
    rest: list[Fact] = Factory(list)

    def level(self, parent: Node | None, declared: tuple[Declared, ...], was: tuple[Declared, ...]) -> None:
        """The agents declared below one agent, or the mains."""
        present = self._present(parent, declared)
        kept = {node.id for node in present.values()}
        among = parent.declares if parent is not None else self.project.declares
        for agent in among.values():
            if agent not in kept:
                self.leaving += leave.leave(self.project.agents[agent], "gone", "reload", self.by)
        before = {fold(entry.name): entry for entry in was}
        for entry in declared:
            node = present.get(fold(entry.name))
            if node is not None:
                self._kept(node, entry, before.get(node.entry))
            elif parent is None or parent.live:
                above = parent.id if parent is not None else None
                self.rest += fork.declare(self.fleet, self.moment, entry, above, self.by)

    def _present(self, parent: Node | None, declared: tuple[Declared, ...]) -> dict[str, Node]:
        """Who each entry means: the agent declared under it before; else the one that is called so now, as after
        `save`."""
        among = parent.declares if parent is not None else self.project.declares
        nodes = {entry: self.project.agents[agent] for entry, agent in among.items()}
        wanted = [fold(entry.name) for entry in declared]
        present = {entry: nodes[entry] for entry in wanted if entry in nodes}
        others = {
            fold(node.name): node for entry, node in nodes.items() if entry not in present and node.state != "gone"
        }
        return {entry: others[entry] for entry in wanted if entry not in nodes and entry in others} | present

    def _kept(self, node: Node, entry: Declared, was: Declared | None) -> None:
        if node.state == "stopping" and node.leaving == "reload":
            raise refuse("state", f"{node.name} is still stopping", field="state", asked=entry.name, held=node.state)
        if node.state == "gone":
            return
        target = _target(node.grant, was.grant if was is not None else None, entry.grant)
        if (lower := _lower(node.grant, target)) != node.grant:
            self.lowered.append(Granted(node.id, lower))
        moved = entry.name if node.entry != fold(entry.name) else ""
        if node.spec != entry.spec or node.spec.model_from != entry.spec.model_from or moved:
            self.rest.append(Respecified(node.id, entry.spec, moved))
        if node.alive and node.live and (_other_program(node, entry) or entry.spec.kind in self.kinds):
            self.rest.append(Rerun(node.id, node.run))
        elif node.stands and not self.fleet.once(entry.spec.kind):
            self.rest.append(Starting(node.id, node.run + 1, resume=bool(node.session)))
        if target != lower:
            self.rest.append(Granted(node.id, target))
        self.level(node, entry.children, was.children if was is not None else ())


def _target(now: Grant, was: Grant | None, declared: Grant) -> Grant:
    """What the file changes of a grant, on top of what was granted since."""
    if was is None:
        return declared
    names = [field.name for field in fields(Grant) if getattr(declared, field.name) != getattr(was, field.name)]
    return evolve(now, **{name: getattr(declared, name) for name in names})


def _lower(now: Grant, target: Grant) -> Grant:
    """As much of the change as takes away from a budget."""
    held, wanted = named(now), named(target)
    less = {field: wanted[field] for field in held if field in wanted and wanted[field] < held[field]}
    return evolve(now, **less)  # type: ignore[arg-type]  # the keys are budgets, all int


def _other_program(node: Node, declared: Declared) -> bool:
    same = {name: getattr(declared.spec, name) for name in KEPT_RUNNING}
    return evolve(node.spec, **same) != declared.spec
