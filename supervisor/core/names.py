"""What may be a name, and how an agent is found by one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from supervisor.core import likeness
from supervisor.core.authority import Agent, Principal
from supervisor.core.nearest import meant
from supervisor.core.refusals import refuse
from supervisor.core.state import Node, Project, fold

LONGEST = 64
_ID = re.compile(r"a\d+", re.IGNORECASE)
_AUTOMATIC = re.compile(r"subagent-([0-9]+)")
#: Words that mean someone else wherever a name can stand.
RESERVED = frozenset({"fleet", "operator", "person", "nobody", "all"})


def fault(name: str) -> str:
    """Why this can be no name; "" where it can."""
    if not name.strip():
        return "a name must not be empty"
    if name != name.strip():
        return "a name has no white space at its ends"
    if name.startswith("-"):
        return "a name does not begin with a hyphen: as a word of a command it would be an option"
    if len(name) > LONGEST:
        return f"a name has at most {LONGEST} characters"
    if any(unicodedata.category(char)[0] == "C" or char in "/:*" for char in name):
        return "a name has no control characters and none of / : *"
    if likeness.hidden(name):
        return "a name has nothing in it that is not seen"
    if _ID.fullmatch(likeness.shape(name)):
        return f"{name} looks like an id: a name needs more than the letter a and a number"
    if fold(name) in RESERVED:
        return f"{name} is a word of the fleet's own"
    return ""


def automatic(name: str) -> int:
    """The number of a name such as those that agents get who are given none; 0 where it is not of that form."""
    found = _AUTOMATIC.fullmatch(fold(name))
    return int(found[1]) if found is not None else 0


def sees(project: Project, by: Principal, node: Node) -> bool:
    """Whether the caller may know of the agent: an agent sees its own instance, or all under the widest wall."""
    if not isinstance(by, Agent) or _open(project):
        return True
    me = project.agents.get(by.agent)
    return me is not None and _main(project, me) is _main(project, node)


def _open(project: Project) -> bool:
    return project.fleet is not None and project.fleet.agent_talk == "project"


def _main(project: Project, node: Node) -> Node:
    return [*project.up(node)][-1]


def find(project: Project, by: Principal, text: str, *, part: bool) -> Node:
    """The one agent meant by an id, an exact name, `role:R`, or, with `part`, a unique part of a name.
    Raises a refusal (`unknown`, `ambiguous`, `renamed`)."""
    wanted = fold(text)
    by_id = project.agents.get(wanted)
    if by_id is not None and sees(project, by, by_id):
        return by_id
    named = project.names.get(wanted)
    if named is not None and sees(project, by, project.agents[named]):
        return project.agents[named]
    renamed = project.agents.get(project.former.get(wanted, ""))
    if renamed is not None and sees(project, by, renamed):
        raise refuse("renamed", f"{text.strip()} is now called {renamed.name} ({renamed.id})", asked=text)
    found = _search(project, by, wanted, part)
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(f"{node.name} ({node.id})" for node in found[:8])
        raise refuse("ambiguous", f"{text.strip()} could be any of {listed}; name one by its id", asked=text)
    seen = [node.name for node in _visible(project, by) if node.state != "gone"][::-1]  # newest first
    raise refuse("unknown", f"there is no agent {text.strip()!r} in this project{meant(text, seen)}", asked=text)


def _search(project: Project, by: Principal, wanted: str, part: bool) -> list[Node]:
    seen = [*_visible(project, by)]
    present = [node for node in seen if node.state != "gone"]
    role = wanted.removeprefix("role:").strip()
    if role != wanted:
        return [node for node in present if role and fold(node.spec.role) == role]
    if part and wanted:
        parts = [node for node in present if wanted in fold(node.name)]
        if parts:
            return parts
    # A name that nobody has now may still mean the last one who had it.
    last = [node for node in seen if node.state == "gone" and fold(node.name) == wanted]
    return sorted(last, key=lambda node: int(node.id[1:]))[-1:]


def _visible(project: Project, by: Principal) -> Iterable[Node]:
    """All that the caller sees; the wall is asked for once, not for each."""
    if not isinstance(by, Agent) or _open(project):
        return project.agents.values()
    me = project.agents.get(by.agent)
    return project.down(_main(project, me)) if me is not None else ()
