"""Which model an agent's next run uses and whose word that is, and whether what a program says it uses lies within the
right. It chooses nothing that a person or a parent has not named."""

from __future__ import annotations

import re

from supervisor.core import rights
from supervisor.core.state import Node, Project

#: Whose word a model is, beside `role NAME` and `NAME (ID)` of a parent.
FORK, DEFAULTS, FILE, GRANT, PROGRAM = "fork", "[defaults]", "agents.toml", "grant", "program"
#: What a program may add to a model's name without it being another one: a release's date, or the window's size.
_RELEASE = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
_WINDOW = re.compile(r"\[\w+\]$")


def chosen(project: Project, node: Node) -> tuple[str, str]:
    """The model of the next run and whose word it is; "" is the program's own choice."""
    if node.spec.model:
        return node.spec.model, node.spec.model_from or FILE
    model = only(rights.effective(project, node, "models"))
    return model, GRANT if model else PROGRAM


def only(held: tuple[str, ...] | bool | None) -> str:
    """The one model that a right leaves, if it leaves just one."""
    return held[0] if isinstance(held, tuple) and len(held) == 1 and not held[0].endswith("*") else ""


def inherited(project: Project, parent: Node | None, kind: str) -> str:
    """What a child of this kind has from its parent: what that one was told to use, else what it says it uses. A model
    of one program is none of another's."""
    if parent is None or parent.spec.kind != kind:
        return ""
    return chosen(project, parent)[0] or parent.model


def strange(project: Project, node: Node, used: str) -> bool:
    """Whether this model is none of those that the agent holds."""
    held = rights.effective(project, node, "models") if used else None
    return isinstance(held, tuple) and not any(_same(have, used) for have in held)


def _same(have: str, used: str) -> bool:
    """Programs write names in full (`provider/name`, with a date) and know short ones (`sonnet`): that is no other
    model."""
    if rights.covers("models", have, used):
        return True
    if "/" not in have or "/" not in used:
        have, used = have.rpartition("/")[2], used.rpartition("/")[2]
    used = _WINDOW.sub("", used)
    if rights.covers("models", have, used) or rights.covers("models", have, _RELEASE.sub("", used)):
        return True
    return have.isalpha() and have in re.split(r"[-./]", used)


def tools(project: Project, node: Node) -> tuple[tuple[str, ...] | None, str]:
    """The tools of the next run and whose grants leave it these; None is whatever its program allows."""
    held = rights.effective(project, node, "tools")
    if not isinstance(held, tuple):
        return None, PROGRAM
    named = [f"{at.name} ({at.id})" for at in project.up(node) if at.grant.tools is not None]
    return held, f"grant of {', '.join(named)}"
