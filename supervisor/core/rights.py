"""Rights compare by inclusion: what an agent effectively holds, and whether an asked set lies within it."""

from __future__ import annotations

from supervisor.core.grants import Grant
from supervisor.core.refusals import refuse
from supervisor.core.state import Node, Project

SETS = ("tools", "models", "kinds", "paths", "env")
SWITCHES = ("fork", "talk")


def effective(project: Project, node: Node | None, field: str) -> tuple[str, ...] | bool | None:
    """The right in force: the nearest one named from the agent upwards; None is "everything"."""
    if node is None:
        return None
    for at in project.up(node):
        value: tuple[str, ...] | bool | None = getattr(at.grant, field)
        if value is not None:
            return value
    return None


def covers(field: str, held: str, asked: str) -> bool:
    """Whether one held entry covers one asked entry."""
    if held == asked:
        return True
    if field == "models":
        return held.endswith("*") and asked.startswith(held[:-1])
    if field == "paths":
        return asked.startswith(held.rstrip("/") + "/")
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
                ask=parent.name,
            )
    for field in SWITCHES:
        if getattr(asked, field) is True and effective(project, parent, field) is False:
            raise refuse(
                "rights",
                f"{parent.name} may not {field}",
                field=field,
                asked="yes",
                held="no",
                ask=parent.name,
            )
