"""Whether an agent may hold what is asked for it: rights by inclusion, budgets out of what is left, bounds within the
parent's."""

from __future__ import annotations

from attrs import evolve, fields

from supervisor.core import budgets, rights
from supervisor.core.grants import BUDGETS, Grant
from supervisor.core.ledger import NANO
from supervisor.core.refusals import RefusedError, refuse
from supervisor.core.spec import Spec
from supervisor.core.state import Node, Project
from supervisor.core.units import LARGEST
from supervisor.core.words import amount, number

#: DESIGN 4: an agent is released after at most this many tasks.
MAX_TASKS = 32


def room(project: Project, holder: Node, field: str, asked: int) -> None:
    """Refuse what is more than the holder has left: spent + reserved + asked ≤ held."""
    account = holder.accounts[field]
    if account.committed + asked > account.held:
        raise short(project, holder, field, asked)


def short(project: Project, holder: Node, field: str, asked: int, ahead: int = 0) -> RefusedError:
    """The refusal that names every number of an account; what those ask for who wait before is as good as reserved."""
    account = holder.accounts[field]
    others = f", and {amount(field, ahead)} wait to be taken by forks before this one" if ahead else ""
    return refuse(
        "budget",
        f"{holder.name} has {amount(field, account.free)} {field} left, {amount(field, asked)} were asked for{others}",
        field=field,
        asked=number(field, asked),
        held=number(field, account.held),
        used=number(field, account.spent),
        reserved=number(field, account.reserved + ahead),
        ask=project.giver(holder),
        holder=holder.name,
    )


def sane(grant: Grant) -> None:
    """Refuse numbers that can be no budget and no bound: a negative one would add to what the parent holds."""
    for field in (*BUDGETS, "children", "depth"):
        value, most = getattr(grant, field), LARGEST * (NANO if field == "cost" else 1)
        if value is not None and not 0 <= value <= most:
            raise refuse(
                "value", f"{field} is a number from 0 to {number(field, most)}",
                field=field, asked=number(field, value),
            )  # fmt: skip
    if grant.wall is not None and not 0 < grant.wall <= LARGEST:
        raise refuse("value", f"wall is more than 0 and at most {LARGEST} seconds", field="wall", asked=str(grant.wall))


def tasks(limit: int | None) -> None:
    """Refuse a number of tasks that none may have."""
    if limit is not None and not 1 <= limit <= MAX_TASKS:
        raise refuse("value", f"max_tasks is 1 to {MAX_TASKS}", field="max_tasks", asked=limit)


def depth_left(project: Project, node: Node) -> int | None:
    """How many levels the nearest `depth` bounds still allow below the agent; None where none is named."""
    left = [at.grant.depth - far for far, at in enumerate(project.up(node)) if at.grant.depth is not None]
    return max(0, min(left)) if left else None


def wall_held(project: Project, node: Node) -> float | None:
    """The shortest `wall` from the agent upwards, in seconds."""
    walls = [at.grant.wall for at in project.up(node) if at.grant.wall is not None]
    return min(walls) if walls else None


def _one_below(project: Project, parent: Node) -> None:
    if depth_left(project, parent) == 0:
        raise refuse(
            "bound", f"{parent.name} may have no levels below it",
            field="depth", asked=1, held=0, ask=project.giver(parent), holder=parent.name,
        )  # fmt: skip


def _bounds(project: Project, parent: Node, grant: Grant) -> None:
    """Refuse bounds beyond the parent's: a child's depth is at most one less, and it ends no later."""
    left, wall = depth_left(project, parent), wall_held(project, parent)
    if left is not None and grant.depth is not None and grant.depth > max(0, left - 1):
        raise refuse(
            "bound", f"{parent.name} may have {left} levels below it",
            field="depth", asked=grant.depth, held=max(0, left - 1), ask=project.giver(parent), holder=parent.name,
        )  # fmt: skip
    if wall is not None and grant.wall is not None and grant.wall > wall:
        raise refuse(
            "bound", f"{parent.name} itself ends after {amount('wall', wall)}",
            field="wall", asked=grant.wall, held=wall, ask=project.giver(parent), holder=parent.name,
        )  # fmt: skip


def new(project: Project, parent: Node | None, spec: Spec, grant: Grant) -> None:
    """Refuse a new child under `parent` (None: a main, whose grant is the person's to give), whatever room there is
    for it (`room`)."""
    sane(grant)
    tasks(spec.max_tasks)
    if parent is None:
        _own_model(spec, grant, "operator")
        return
    giver = project.giver(parent)
    if rights.effective(project, parent, "fork") is False:
        raise refuse(
            "rights", f"{parent.name} may not fork", field="fork", asked="yes", held="no", ask=giver, holder=parent.name
        )
    elsewhere = spec.directory if spec.directory != parent.spec.directory else ""
    for field, value in (("kinds", spec.kind), ("models", spec.model), ("paths", elsewhere)):
        if value and not rights.allows(project, parent, field, value):
            held = rights.effective(project, parent, field)
            raise refuse(
                "rights", f"{parent.name} does not hold {field} {value}", field=field, asked=value,
                held=", ".join(held) if isinstance(held, tuple) else "", ask=giver, holder=parent.name,
            )  # fmt: skip
    rights.check(project, parent, grant)
    _own_model(spec, grant, giver)
    _some_model(project, parent, spec, grant)
    _one_below(project, parent)
    _bounds(project, parent, grant)
    for field, asked in budgets.named(grant).items():
        holder = project.holder(parent, field)
        if holder is not None and field != "descendants":
            room(project, holder, field, asked)


def _own_model(spec: Spec, grant: Grant, ask: str) -> None:
    """Refuse an agent whose own grant does not hold its model."""
    model = spec.model
    if grant.models is not None and model and not any(rights.covers("models", have, model) for have in grant.models):
        raise refuse(
            "rights", f"the model {model} is not among those it is to hold",
            field="models", asked=model, held=", ".join(grant.models), ask=ask,
        )  # fmt: skip


def _some_model(project: Project, parent: Node, spec: Spec, grant: Grant) -> None:
    """Refuse to leave it to the child's program which of several models it uses: its own choice may be none of them."""
    named = grant.models if grant.models is not None else rights.effective(project, parent, "models")
    if spec.model or not isinstance(named, tuple) or len(named) < 2 or any(name.endswith("*") for name in named):
        return
    raise refuse(
        "rights", f"it may use one of {', '.join(named)}: name which, as its model",
        field="models", asked="", held=", ".join(named), holder=parent.name,
    )  # fmt: skip


def more(project: Project, node: Node, grant: Grant) -> Grant:
    """The grant that the agent holds after being given what `grant` names; refuses what its parent does not hold,
    and less than is spent and reserved already. A budget that it drew from above until now counts from now on, except
    for what below it was carved from there: that moves, and has to fit."""
    sane(grant)
    parent = project.above(node)
    rights.check(project, parent, grant)
    for field, held in budgets.named(grant).items():
        account = node.accounts.get(field)
        used = account.committed if account is not None else budgets.beneath(project, node, field)
        if held < used:
            raise refuse(
                "value", f"{node.name} has used {amount(field, used)} {field} already and cannot hold less",
                field=field, asked=number(field, held), used=number(field, used),
            )  # fmt: skip
        counted = max(account.held, used) if account is not None else used
        holder = project.holder(parent, field)
        if holder is not None and held > counted:
            room(project, holder, field, held - counted)
    if parent is not None:
        _bounds(project, parent, grant)
    return merged(node.grant, grant)


def merged(old: Grant, new_grant: Grant) -> Grant:
    """The old grant with what the new one names."""
    named = {field.name: value for field in fields(Grant) if (value := getattr(new_grant, field.name)) is not None}
    return evolve(old, **named)
