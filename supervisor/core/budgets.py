"""Conserved budgets: carve, charge, return. Every change of an account happens here, so that the books balance at every
step.

What an agent is over is spent at the account that its own was carved from, at once and on upwards: so no chain of
children can spend more than its root holds without the root's own numbers saying so."""

from __future__ import annotations

from collections.abc import Iterator

from supervisor.core.grants import BUDGETS, Grant
from supervisor.core.ledger import Usage
from supervisor.core.state import Account, Node, Project


def named(grant: Grant) -> dict[str, int]:
    """The budgets that a grant names."""
    return {field: value for field in BUDGETS if (value := getattr(grant, field)) is not None}


def change(project: Project, account: Account, field: str, *, held: int = 0, spent: int = 0, reserved: int = 0) -> None:
    """Change an account, and what it is over wherever that is borne."""
    while True:
        before = account.over
        account.held += held
        account.spent += spent
        account.reserved += reserved
        held = reserved = 0
        spent = account.over - before
        if not spent or not account.holder:
            return
        account = project.agents[account.holder].accounts[field]


def charge(project: Project, node: Node, field: str, amount: int) -> None:
    """Book usage on the nearest account."""
    holder = project.holder(node, field)
    if holder is not None and amount:
        change(project, holder.accounts[field], field, spent=amount)


def carve(project: Project, node: Node, field: str, held: int) -> None:
    """Give the agent an account: reserved at the nearest one above, else its own limit. What lives below and was
    carved from there is from now on carved from here, so that no child holds more than its parent; what was spent
    before stays where it was spent."""
    above = project.holder(project.above(node), field)
    account = Account(held, above.id if above is not None else "")
    spent = reserved = 0
    for at in _beneath(project, node, field):
        if field == "descendants":
            at.seat = node.id
            spent += 1
        if (below := at.accounts.get(field)) is not None:
            below.holder = node.id
            spent += below.over
            reserved += below.held
    node.accounts[field] = account
    account.spent, account.reserved = spent, reserved
    if above is not None:
        change(project, above.accounts[field], field, spent=account.over - spent, reserved=held - reserved)


def _beneath(project: Project, node: Node, field: str) -> Iterator[Node]:
    """The living agents below that draw on what the agent draws on or holds, down to those that hold their own."""
    stack = list(node.children)
    while stack:
        at = project.agents[stack.pop()]
        if at.state != "gone":
            yield at
            if field not in at.accounts:
                stack.extend(at.children)


def beneath(project: Project, node: Node, field: str) -> int:
    """What an account would have to hold for what lives below the agent already."""
    below = [*_beneath(project, node, field)]
    carved = (at.accounts[field] for at in below if field in at.accounts)
    return sum(max(account.held, account.committed) for account in carved) + len(below) * (field == "descendants")


def resize(project: Project, node: Node, field: str, held: int) -> None:
    """Change what an account holds; the difference is reserved or given back above."""
    account = node.accounts.get(field)
    if account is None:
        carve(project, node, field, held)
        return
    difference = held - account.held
    if account.holder:
        change(project, project.agents[account.holder].accounts[field], field, reserved=difference)
    change(project, account, field, held=difference)


def release(project: Project, node: Node, field: str) -> None:
    """The agent holds none of its own any more and draws on the account above, with all that was carved from it."""
    account = node.accounts.pop(field)
    for at in _beneath(project, node, field):
        if field == "descendants":
            at.seat = account.holder
        if field in at.accounts:
            at.accounts[field].holder = account.holder
    _hand_over(project, account, field)


def give_back(project: Project, node: Node) -> None:
    """The agent is gone: what it did not spend returns, what it spent stays with the account it was carved from."""
    for field, account in node.accounts.items():
        _hand_over(project, account, field)
    node.accounts.clear()
    if node.seat:
        change(project, project.agents[node.seat].accounts["descendants"], "descendants", spent=-1)
        node.seat = ""


def _hand_over(project: Project, account: Account, field: str) -> None:
    """An account ends: what stood in it stands in the one that it was carved from, which bore what it was over."""
    if account.holder:
        above = project.agents[account.holder].accounts[field]
        spent, reserved = account.spent - account.over, account.reserved - account.held
        change(project, above, field, spent=spent, reserved=reserved)


def take_seat(project: Project, node: Node) -> None:
    """A new agent uses one of the nearest `descendants` above it, until it is gone."""
    holder = project.holder(project.above(node), "descendants")
    if holder is not None:
        node.seat = holder.id
        charge(project, holder, "descendants", 1)


def amounts(usage: Usage) -> dict[str, int]:
    """What a piece of usage takes from each budget."""
    return {"tokens": usage.tokens, "turns": usage.turns, "cost": usage.cost}


def exhausted(
    project: Project, node: Node, fields: tuple[str, ...] = ("turns", "tokens", "cost")
) -> tuple[str, Node] | None:
    """The first budget, with its holder, of which nothing is left."""
    for field in fields:
        holder = project.holder(node, field)
        if holder is not None and holder.accounts[field].free <= 0:
            return field, holder
    return None


def crossed(node: Node, field: str) -> int:
    """100 or 80 where the account stands at that many percent and was not warned of it yet; else 0."""
    account = node.accounts[field]
    used = account.committed * 100
    return next((at for at in (100, 80) if used >= account.held * at and (field, at) not in node.warned), 0)


def margin(project: Project, node: Node, added: Usage) -> bool:
    """Whether this much more usage reaches no threshold of any account that the agent spends from."""
    for field, amount in amounts(added).items():
        holder = project.holder(node, field)
        if holder is None or not amount:
            continue
        account = holder.accounts[field]
        marks = (account.held * 80, account.held * 100)
        if not account.free or any(
            account.committed * 100 < mark <= (account.committed + amount) * 100 for mark in marks
        ):
            return False
    return True
