"""How births, names, grants and departures change the tree: the part of applying facts that keeps who is where, under
which name. Like all applying it cannot fail and asks nothing."""

from __future__ import annotations

from supervisor.core import budgets, facts
from supervisor.core.books import Past, written
from supervisor.core.ledger import ZERO
from supervisor.core.names import automatic
from supervisor.core.state import Node, Project, fold

#: How many old names a project remembers, to tell who has the new one.
FORMER = 256


def born(project: Project, fact: facts.Born, at: float) -> None:
    """An agent is, with what was carved for it; it stands without a run until it starts."""
    node = Node(
        fact.agent, fact.name, fact.parent, fact.spec, fact.grant, fact.declared, fact.by, at, at, fact.replaces
    )  # fmt: skip
    node.model = fact.spec.model
    project.agents[node.id] = node
    siblings(project, node).append(node.id)
    if (parent := project.above(node)) is not None:
        parent.here += 1
    project.highest = max(project.highest, int(node.id[1:]))
    _takes(project, node)
    if fact.declared:
        before = project.agents.get(fact.replaces)
        _stands_for(project, node, before.entry if before is not None else fold(node.name))
    budgets.take_seat(project, node)
    for field, held in budgets.named(node.grant).items():
        budgets.carve(project, node, field, held)


def siblings(project: Project, node: Node) -> list[str]:
    """The ids among which the agent stands: its parent's children, or the mains."""
    parent = project.above(node)
    return project.mains if parent is None else parent.children


def declares(project: Project, node: Node) -> dict[str, str]:
    """The entries among which the agent is declared: its parent's, or the project's."""
    parent = project.above(node)
    return project.declares if parent is None else parent.declares


def _takes(project: Project, node: Node) -> None:
    """The name is the agent's now; a name of our own making is never made again."""
    project.names[fold(node.name)] = node.id
    project.former.pop(fold(node.name), None)
    project.unnamed = max(project.unnamed, automatic(node.name))


def _stands_for(project: Project, node: Node, entry: str) -> None:
    """The agent is what the file means by this entry; a gone one that was is kept in view for that no longer."""
    among = declares(project, node)
    before = among.get(entry)
    if before is not None and project.agents[before].state == "gone":
        project.gone[before] = None
    node.entry = entry
    among[entry] = node.id


def renamed(project: Project, node: Node, fact: facts.Renamed) -> None:
    """Another name; the old one is remembered, unless only its case changed."""
    project.names.pop(fold(fact.was), None)
    node.name = fact.name
    _takes(project, node)
    if fold(fact.was) != fold(fact.name):
        project.former[fold(fact.was)] = node.id
    while len(project.former) > FORMER:
        del project.former[next(iter(project.former))]


def respecified(project: Project, node: Node, fact: facts.Respecified) -> None:
    """Kept in another way, and perhaps declared under another name."""
    node.spec = fact.spec
    if fact.entry:
        among = declares(project, node)
        if among.get(node.entry) == node.id:
            del among[node.entry]
        _stands_for(project, node, fold(fact.entry))


def granted(project: Project, node: Node, fact: facts.Granted) -> None:
    """The whole of what the agent holds: a budget that is not named any more is held no more."""
    for field in [field for field in node.accounts if getattr(fact.grant, field) is None]:
        budgets.release(project, node, field)
    for field, held in budgets.named(fact.grant).items():
        budgets.resize(project, node, field, held)
    node.warned = {entry for entry in node.warned if getattr(node.grant, entry[0]) == getattr(fact.grant, entry[0])}
    node.grant = fact.grant


def downed(project: Project) -> None:
    """Nothing is declared any more: the next `up` starts everything anew."""
    for main in project.declares.values():
        if project.agents[main].state == "gone":
            project.gone[main] = None
    project.declares.clear()


def left(project: Project, node: Node, fact: facts.Left) -> None:
    """Gone: name, seat, reservation and texts are released. The newest agent of an entry stays in view, because
    `start` may bring it back and a reload must not."""
    if fact.to != "gone":
        return
    if project.names.get(fold(node.name)) == node.id:
        del project.names[fold(node.name)]
    budgets.give_back(project, node)
    node.inbox.clear()
    node.task = None
    among = declares(project, node)
    if among.get(node.entry) != node.id:
        project.gone[node.id] = None
    elif node.leaving == "reload":
        del among[node.entry]
        project.gone[node.id] = None


def forgotten(project: Project, node: Node, _fact: facts.Forgotten) -> None:
    """Out of view, with all that is gone below it; what it spent stays in its parent's branch."""
    siblings(project, node).remove(node.id)
    if node.parent is None:
        project.folded = project.folded + node.branch
    among = declares(project, node)
    if among.get(node.entry) == node.id:
        del among[node.entry]
    for below in [*project.down(node)]:
        project.gone.pop(below.id, None)
        if below.branch != ZERO:
            past = Past(below.name, below.parent, below.spec.role, below.spec.kind, written(below))
            project.books.forget(below.id, past)
        del project.agents[below.id]
