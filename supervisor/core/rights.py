"""Rights compare by inclusion: what an agent effectively holds, and whether an asked set lies within it."""

from __future__ import annotations

from supervisor.core.grants import Grant
from supervisor.core.refusals import refuse
from supervisor.core.state import Node, Project

SETS = ("tools", "models", "kinds", "paths", "env")
SWITCHES = ("fork", "talk")


def effective(project: Project, node: Node | None, field: str) -> tuple[str, ...] | bool | None:
    """The right in force: what every agent from here upwards that names it holds, so that taking from a parent takes
    from all below; None is "everything"."""
    held: tuple[str, ...] | bool | None = None
    for at in project.up(node) if node is not None else ():
        value: tuple[str, ...] | bool | None = getattr(at.grant, field)
        if value is False:
            return False
        if isinstance(value, tuple):
            held = _common(field, held, value) if isinstance(held, tuple) else value
        elif value is not None:
            held = value
    return held


def _common(field: str, one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """What lies within both."""
    within = [entry for entry in one if any(covers(field, held, entry) for held in other)]
    within += [entry for entry in other if any(covers(field, held, entry) for held in one)]
    return tuple(dict.fromkeys(within))


def covers(field: str, held: str, asked: str) -> bool:
    """Whether one held entry covers one asked entry."""
    if held == asked:
        return True
    if field == "models":
        return held.endswith("*") and asked.startswith(held[:-1])
    if field == "tools":  # a server's tools lie within the server
        return held.startswith("mcp:") and asked.startswith(f"{held}:")
    if field == "paths":
        return asked.startswith(held.rstrip("/") + "/") and ".." not in asked.split("/")
    return False


def allows(project: Project, node: Node | None, field: str, asked: str) -> bool:
    """Whether the agent may use this one tool, model, kind, path or variable."""
    held = effective(project, node, field)
    return held is None or (not isinstance(held, bool) and any(covers(field, have, asked) for have in held))


def check(project: Project, parent: Node | None, asked: Grant) -> None:
    """Raise a refusal for the first right that the parent does not hold."""
    if parent is None:
        return
    for field in SETS:
        wanted: tuple[str, ...] | None = getattr(asked, field)
        missing = [entry for entry in wanted or () if not allows(project, parent, field, entry)]
        if missing:
            held = effective(project, parent, field)
            raise refuse(
                "rights",
                f"{parent.name} does not hold {field} {', '.join(missing)}",
                field=field,
                asked=", ".join(missing),
                held=", ".join(held) if isinstance(held, tuple) else "",
                ask=project.giver(parent),
                holder=parent.name,
            )
    for field in SWITCHES:
        if getattr(asked, field) is True and effective(project, parent, field) is False:
            raise refuse(
                "rights",
                f"{parent.name} may not {field}",
                field=field,
                asked="yes",
                held="no",
                ask=project.giver(parent),
                holder=parent.name,
            )
