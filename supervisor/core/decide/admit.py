"""Whether an agent may hold what is asked for it: rights by inclusion, budgets out of what is left, bounds within the parent's."""

from __future__ import annotations

from attrs import evolve, fields

from supervisor.core import budgets, rights
from supervisor.core.grants import Grant
from supervisor.core.refusals import RefusedError, refuse
from supervisor.core.state import Node, Project
from supervisor.core.words import amount, number


def room(project: Project, holder: Node, field: str, asked: int) -> None:
    """Refuse what is more than the holder has left: spent + reserved + asked ≤ held."""
    account = holder.accounts[field]
    if asked > account.held - account.spent - account.reserved:
        raise short(project, holder, field, asked)


def over(project: Project, node: Node) -> str:
    """Who could give the agent more: its parent, or a person."""
    return project.agents[node.parent].name if node.parent is not None else "operator"


def short(project: Project, holder: Node, field: str, asked: int) -> RefusedError:
    """The refusal that names every number of an account."""
    account = holder.accounts[field]
    return refuse(
        "budget",
        f"{holder.name} has {amount(field, account.free)} {field} left, {amount(field, asked)} were asked for",
        field=field,
        asked=number(field, asked),
        held=number(field, account.held),
        used=number(field, account.spent),
        reserved=number(field, account.reserved),
        ask=over(project, holder),
    )


def depth_left(project: Project, node: Node) -> int | None:
    """How many levels the nearest `depth` bounds still allow below the agent; None where none is named."""
    left = [at.grant.depth - far for far, at in enumerate(project.up(node)) if at.grant.depth is not None]
    return min(left) if left else None


def wall_held(project: Project, node: Node) -> float | None:
    """The shortest `wall` from the agent upwards, in seconds."""
    walls = [at.grant.wall for at in project.up(node) if at.grant.wall is not None]
    return min(walls) if walls else None


def bounds(project: Project, parent: Node, grant: Grant) -> None:
    """Refuse a child that is one too many, too deep, or that would outlast its parent."""
    ask = over(project, parent)
    held, present = (
        parent.grant.children,
        sum(project.agents[child].state != "gone" for child in parent.children),
    )
    if held is not None and present >= held:
        raise refuse(
            "bound", f"{parent.name} may have {held} children and has {present}",
            field="children", asked=1, held=held, used=present, ask=ask,
        )  # fmt: skip
    left = depth_left(project, parent)
    if left is not None and (left < 1 or (grant.depth or 0) > left - 1):
        asked = 1 if left < 1 else grant.depth or 0
        raise refuse(
            "bound", f"{parent.name} may have {left} levels below it",
            field="depth", asked=asked, held=left if left < 1 else left - 1, ask=ask,
        )  # fmt: skip
    wall = wall_held(project, parent)
    if wall is not None and grant.wall is not None and grant.wall > wall:
        raise refuse(
            "bound", f"{parent.name} itself ends after {amount('wall', wall)}",
            field="wall", asked=grant.wall, held=wall, ask=ask,
        )  # fmt: skip


def new(project: Project, parent: Node | None, kind: str, model: str, grant: Grant) -> None:
    """Refuse a new child under `parent` (None: a main, whose grant is the person's to give)."""
    if parent is None:
        return
    if rights.effective(project, parent, "fork") is False:
        raise refuse(
            "rights",
            f"{parent.name} may not fork",
            field="fork",
            asked="yes",
            held="no",
            ask=over(project, parent),
        )
    for field, value in (("kinds", kind), ("models", model)):
        if value and not rights.allows(project, parent, field, value):
            held = rights.effective(project, parent, field)
            raise refuse(
                "rights", f"{parent.name} does not hold {field} {value}", field=field, asked=value,
                held=", ".join(held) if isinstance(held, tuple) else "", ask=over(project, parent),
            )  # fmt: skip
    rights.check(project, parent, grant)
    if grant.models is not None and model and not any(rights.covers("models", have, model) for have in grant.models):
        raise refuse(
            "rights",
            f"the model {model} is not among those it is to hold",
            field="models",
            asked=model,
            held=", ".join(grant.models),
        )
    bounds(project, parent, grant)
    for field, asked in budgets.named(grant).items():
        holder = project.holder(parent, field)
        if holder is not None:
            room(project, holder, field, asked + (1 if field == "descendants" else 0))
    seat = project.holder(parent, "descendants")
    if seat is not None and grant.descendants is None:
        room(project, seat, "descendants", 1)


def more(project: Project, node: Node, grant: Grant) -> Grant:
    """The grant that the agent holds after being given what `grant` names; refuses what its parent does not hold,
    and less than is spent and reserved already."""
    parent = project.agents[node.parent] if node.parent is not None else None
    rights.check(project, parent, grant)
    for field, held in budgets.named(grant).items():
        account = node.accounts.get(field)
        used = account.spent + account.reserved if account is not None else 0
        if held < used:
            raise refuse(
                "value", f"{node.name} has used {amount(field, used)} {field} already and cannot hold less",
                field=field, asked=number(field, held), used=number(field, used),
            )  # fmt: skip
        if account is not None and account.holder:
            room(project, project.agents[account.holder], field, held - account.held)
        elif account is None and parent is not None and (holder := project.holder(parent, field)) is not None:
            room(project, holder, field, held)
    if parent is not None and grant.depth is not None:
        left = depth_left(project, parent)
        if left is not None and grant.depth > left - 1:
            raise refuse(
                "bound",
                f"{parent.name} may have {left} levels below it",
                field="depth",
                asked=grant.depth,
                held=left - 1,
                ask=parent.name,
            )
    if parent is not None and grant.wall is not None:
        wall = wall_held(project, parent)
        if wall is not None and grant.wall > wall:
            raise refuse(
                "bound",
                f"{parent.name} itself ends after {amount('wall', wall)}",
                field="wall",
                asked=grant.wall,
                held=wall,
                ask=parent.name,
            )
    return merged(node.grant, grant)


def merged(old: Grant, new_grant: Grant) -> Grant:
    """The old grant with what the new one names."""
    named = {field.name: value for field in fields(Grant) if (value := getattr(new_grant, field.name)) is not None}
    return evolve(old, **named)
