"""Takes values out of opencode's lines: usage, errors, tool calls; and maps the tools of a grant to opencode's own."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import frozen

from supervisor.core.ledger import Report, Usage
from supervisor.kinds import fields
from supervisor.kinds.tools import Tools

#: Neutral names of tools and opencode's own.
TOOLS = Tools(
    {
        "read": ("read",),
        "ls": ("list",),
        "grep": ("grep",),
        "glob": ("glob",),
        "edit": ("edit", "apply_patch"),
        "write": ("write",),
        "bash": ("bash",),
        "web": ("webfetch", "websearch", "codesearch"),
    },
    # `opencode:NAME` in a grant; a `*` at the end is any rest.
    own=re.compile(r"opencode:([A-Za-z0-9][A-Za-z0-9_.-]*\*?)"),
    served="opencode:{server}_{tool}",
)
#: opencode's permissions for tools of its own, in version 1.18. It has but one for all that change files.
PERMISSIONS = (
    *("read", "list", "grep", "glob", "edit", "bash", "webfetch", "websearch", "codesearch"),
    *("task", "skill", "todowrite", "todoread", "question", "lsp"),
)
#: Tools that come under the permission `edit`.
EDITING = ("edit", "write", "apply_patch")


@frozen
class Failure:
    """An error: `status` is the HTTP status, 0 where there is none."""

    name: str
    text: str
    status: int = 0


def step(part: Mapping[str, object], model: str) -> Report | None:
    """One model call; None where no number came of it."""
    tokens = fields.member(part, "tokens")
    cache, reasoning = fields.member(tokens, "cache"), fields.whole(tokens, "reasoning")
    usage = Usage(
        input=fields.whole(tokens, "input"),
        cache_read=fields.whole(cache, "read"),
        cache_write=fields.whole(cache, "write"),
        # opencode's output is without reasoning.
        output=fields.whole(tokens, "output") + reasoning,
        reasoning=reasoning,
        calls=1,
        cost=fields.dollars(part, "cost"),
    )
    return Report("call", usage, id=fields.words(part, "id", most=fields.LAST), model=model) if usage.tokens else None


def failure(error: Mapping[str, object]) -> Failure:
    """An error, in words. What a provider says of the wait stands in a header."""
    told = error.get("data")
    data = told if isinstance(told, dict) else {}
    name, status = fields.words(error, "name"), data.get("statusCode")
    known = status if isinstance(status, int) and not isinstance(status, bool) else 0
    words = fields.words(data, "message") or name
    headers = data.get("responseHeaders")
    wait = headers.get("retry-after") if isinstance(headers, dict) else None
    if isinstance(wait, str) and wait.strip().isdigit():
        words += f"; try again in {int(wait)}s"
    elif isinstance(wait, str) and wait.strip():
        words += f"; try again at {wait.strip()}"
    if name == "ProviderAuthError":
        known = known or 401
    return Failure(name, fields.clip(f"{known}: {words}" if known else words), known)


def shown(part: Mapping[str, object]) -> str:
    """What people are shown of a tool call."""
    state = part.get("state")
    given = state.get("input") if isinstance(state, dict) else None
    values = given.values() if isinstance(given, dict) else ()
    first = next((value for value in values if isinstance(value, str)), "")
    return f"{fields.words(part, 'tool')}: {first.strip().partition(chr(10))[0][: 2 * fields.LAST]}"


def child(part: Mapping[str, object]) -> str:
    """The session of the subagent that a tool call was; "" where it was none."""
    state = part.get("state")
    told = state.get("metadata") if isinstance(state, dict) and part.get("tool") == "task" else None
    return fields.words(told, "sessionId") if isinstance(told, dict) else ""


def hidden(tools: tuple[str, ...]) -> tuple[str, ...]:
    """The permissions that can be taken away as a whole under such a grant."""
    editing = any(tool in EDITING for tool in tools)
    return tuple(name for name in PERMISSIONS if not (name == "edit" and editing))
