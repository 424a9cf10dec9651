"""The books of a project as they stood at one moment: a picture that costs little to take, for a reader who takes its
time while agents go on spending. Nothing in it ever changes."""

from __future__ import annotations

from typing import NamedTuple

from supervisor.core.books import Key, Past, Rows
from supervisor.core.ledger import Usage
from supervisor.core.state import Node, Project


class Leaf(NamedTuple):
    """An agent in view."""

    id: str
    name: str
    parent: str | None
    role: str
    kind: str
    model: str
    state: str
    born: float
    own: Usage
    branch: Usage
    earlier: Usage
    days: Rows
    rows: tuple[tuple[Key, Usage], ...]
    context: float | None
    held: int | None
    window: int | None
    sized: str


class Still(NamedTuple):
    """`leaves` are all agents in view, `chosen` who is asked for; `past` and `summed` are as the books have them."""

    leaves: dict[str, Leaf]
    chosen: tuple[str, ...]
    past: dict[str, Past]
    summed: tuple[tuple[str, tuple[tuple[Key, Usage], ...]], ...]


def taken(project: Project, branch: Node | None) -> Still:
    """Of all agents, or of a branch."""
    books = project.books
    return Still(
        {node.id: _leaf(node) for node in project.agents.values()},
        tuple(project.agents if branch is None else (node.id for node in project.down(branch))),
        books.past.copy(),
        tuple((day, tuple(pairs.items())) for day, pairs in books.summed.items()),
    )


def _leaf(node: Node) -> Leaf:
    spec = node.spec
    return Leaf(
        node.id, node.name, node.parent, spec.role, spec.kind, node.model, node.state, node.born,
        node.own, node.branch, node.earlier, node.days, tuple(node.rows.items()),
        node.context, node.held, node.window, node.sized,
    )  # fmt: skip
