"""Conserved budgets: carve, charge, return. Every change of an account happens here, so that the books balance at every step."""

from __future__ import annotations

from supervisor.core.grants import BUDGETS, Grant
from supervisor.core.ledger import Usage
from supervisor.core.state import Account, Node, Project


def named(grant: Grant) -> dict[str, int]:
    """The budgets that a grant names."""
    return {field: value for field in BUDGETS if (value := getattr(grant, field)) is not None}


def carve(project: Project, node: Node, field: str, held: int) -> None:
    """Give the agent an account: reserved at the nearest ancestor that holds one, else the agent's own limit."""
    parent = project.agents[node.parent] if node.parent is not None else None
    above = project.holder(parent, field) if parent is not None else None
    if above is not None:
        above.accounts[field].reserved += held
    node.accounts[field] = Account(held, above.id if above is not None else "")


def resize(project: Project, node: Node, field: str, held: int) -> None:
    """Change what an account holds; the difference is reserved or given back above."""
    account = node.accounts.get(field)
    if account is None:
        carve(project, node, field, held)
        return
    over_before = _above_held(account)
    above = project.agents[account.holder].accounts[field] if account.holder else None
    account.held, difference = held, held - account.held
    if above is not None:
        above.reserved += difference
        # What had flowed past the old limit is covered by the new one, or the other way round.
        _flow(project, account, field, _above_held(account) - over_before)


def charge(project: Project, node: Node, field: str, amount: int) -> list[Node]:
    """Book `amount` (negative: back) on the nearest account; what goes past its limit flows on upwards.
    Returns the agents whose accounts changed."""
    holder = project.holder(node, field)
    if holder is None or amount == 0:
        return []
    touched = [holder]
    account = holder.accounts[field]
    before = _above_held(account)
    account.spent += amount
    touched += _flow(project, account, field, _above_held(account) - before)
    return touched


def _above_held(account: Account) -> int:
    """What an account's agent and those below it used beyond what was carved: it is its holder's to bear."""
    return max(0, account.spent - account.held)


def _flow(project: Project, account: Account, field: str, amount: int) -> list[Node]:
    """Move a change of what lies past the limit to the account it was carved from, and on."""
    touched: list[Node] = []
    while amount and account.holder:
        holder = project.agents[account.holder]
        touched.append(holder)
        account = holder.accounts[field]
        before = _above_held(account)
        account.spent += amount
        amount = _above_held(account) - before
    return touched


def give_back(project: Project, node: Node) -> None:
    """The agent is gone: what it did not spend returns, what it spent stays with the account it was carved from."""
    for field, account in node.accounts.items():
        if not account.holder:
            continue
        above = project.agents[account.holder].accounts[field]
        before = _above_held(above)
        above.reserved -= account.held
        above.spent += min(account.spent, account.held)
        _flow(project, above, field, _above_held(above) - before)
    node.accounts.clear()
    if node.seat:
        seat = project.agents[node.seat]
        charge(project, seat, "descendants", -1)
        node.seat = ""


def take_seat(project: Project, node: Node) -> None:
    """A new agent uses one of the nearest `descendants` above it, until it is gone."""
    parent = project.agents[node.parent] if node.parent is not None else None
    holder = project.holder(parent, "descendants") if parent is not None else None
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
    used = (account.spent + account.reserved) * 100
    return next((at for at in (100, 80) if used >= account.held * at and (field, at) not in node.warned), 0)


def margin(project: Project, node: Node, added: Usage) -> bool:
    """Whether this much more usage reaches no threshold of any account that the agent spends from."""
    for field, amount in amounts(added).items():
        holder = project.holder(node, field)
        if holder is None or not amount:
            continue
        account = holder.accounts[field]
        used = account.spent + account.reserved
        marks = (account.held * 80, account.held * 100)
        if account.over or any(used * 100 < mark <= (used + amount) * 100 for mark in marks):
            return False
    return True
