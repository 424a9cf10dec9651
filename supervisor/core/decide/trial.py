"""Whether a list of births and grants would be admitted as a whole, found by trying it on a copy: so a file is taken or
refused, never half of it. Only what the facts touch is copied."""

from __future__ import annotations

from copy import copy

from supervisor.core.apply import apply
from supervisor.core.decide import admit, fork, room
from supervisor.core.facts import Born, Fact, Granted
from supervisor.core.refusals import refuse
from supervisor.core.spec import Fleet
from supervisor.core.state import Node, Project


class _Copies(dict[str, Node]):
    """The agents of a project, each copied when it is first asked for."""

    def __init__(self, under: dict[str, Node]) -> None:
        super().__init__()
        self._under = under

    def __missing__(self, key: str) -> Node:
        node = copy(self._under[key])
        node.children, node.inbox, node.handed = [*node.children], [*node.inbox], [*node.handed]
        node.accounts = {field: copy(account) for field, account in node.accounts.items()}
        node.warned, node.declares, node.prompts = {*node.warned}, {**node.declares}, {**node.prompts}
        self[key] = node
        return node

    def get(self, key: str, default: Node | None = None) -> Node | None:  # type: ignore[override]  # as it is asked here
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self._under


def _copied(project: Project) -> Project:
    made = copy(project)
    made.agents, made.mains = _Copies(project.agents), [*project.mains]
    made.names, made.former, made.declares = {**project.names}, {**project.former}, {**project.declares}
    made.gone, made.waiting, made.tripped = {**project.gone}, {**project.waiting}, {**project.tripped}
    made.awaiting = {**project.awaiting}
    return made


def admitted(project: Project, facts: list[Fact], at: float) -> list[Fact]:
    """The facts, if each birth and each grant among them may be, in this order; else the first refusal is raised.
    What leaves still holds its name, its place and its reservation until it is gone, and counts."""
    made = _copied(project)
    for fact in facts:
        if isinstance(fact, Born):
            _birth(made, fact)
        elif isinstance(fact, Granted):
            admit.more(made, made.agents[fact.agent], fact.grant)
        apply(made, fact, at)
    fleet = made.fleet or Fleet("")
    starts = made.living - project.living
    if starts > 0 and made.living > fleet.agents_max:
        raise refuse(
            "agents",
            f"the project may have {fleet.agents_max} agents and has {project.living}",
            field="agents",
            asked=starts,
            held=fleet.agents_max,
            used=project.living,
            ask="operator",
        )
    return facts


def _birth(made: Project, fact: Born) -> None:
    parent = made.agents[fact.parent] if fact.parent is not None else None
    fork.check_name(made, fact.name)
    fork.check_level(made, parent)
    admit.new(made, parent, fact.spec, fact.grant)
    # What a person declares waits for nobody.
    if (no := room.below(made, parent, room.seats(fact.grant.descendants), None)) is not None:
        raise no.refusal
