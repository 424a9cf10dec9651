"""Takes values out of claude's lines: usage, texts, limits, questions; and maps the tools of a grant to claude's own
options."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import cast

from supervisor.core.facts import Limit
from supervisor.core.ledger import Usage
from supervisor.kinds import fields, mcp
from supervisor.kinds.fields import LineError
from supervisor.kinds.tools import Tools

#: Neutral names of tools and claude's own.
TOOLS = Tools(
    {
        "read": ("Read",),
        "edit": ("Edit", "NotebookEdit"),
        "write": ("Write",),
        "bash": ("Bash",),
        "grep": ("Grep",),
        "glob": ("Glob",),
        "ls": ("Glob",),
        "web": ("WebFetch", "WebSearch"),
    },
    # `claude:NAME` in a grant, and the tools of an MCP server by claude's name for them.
    own=re.compile(r"(?:claude:)?(mcp__[A-Za-z0-9_.-]+(?:\*)?)|claude:([A-Za-z][A-Za-z0-9_]*)"),
    served="mcp__{server}__{tool}",
)
#: The model that claude's own messages claim to be of, such as the one that says why a call failed.
SYNTHETIC = "<synthetic>"
#: What claude says of a call that its provider refused, by what kind of refusal that is.
_ERRORS: dict[str, Limit] = {
    "authentication_failed": "auth",
    "oauth_org_not_allowed": "auth",
    "billing_error": "quota",
    "rate_limit": "rate",
    "overloaded": "overload",
    "overloaded_error": "overload",
}
_STATUSES: dict[int, Limit] = {401: "auth", 402: "quota", 403: "auth", 429: "rate", 529: "overload"}
_LOGIN = re.compile(r"/login\b|not logged in|invalid api key|invalid bearer token|oauth token", re.IGNORECASE)
_QUOTA = re.compile(
    r"usage limit|(?:session|weekly|opus|sonnet|spending|spend|monthly) limit|out of (?:extra )?usage|limit reached"
    r"|credit balance|hit your [\w-]* ?limit",
    re.IGNORECASE,
)
#: `…limit reached|1735689600`, in Unix seconds.
_EPOCH = re.compile(r"\|(\d{9,11})\b")


def member(holder: Mapping[str, object], key: str) -> dict[str, object]:
    """An object inside another one; an empty one where there is none."""
    value = holder.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise LineError(f"`{key}` is no object")
    return cast("dict[str, object]", value)


def blocks(message: Mapping[str, object]) -> list[dict[str, object]]:
    """The parts of a message's content that are objects."""
    content = message.get("content")
    return fields.listed(content)


def text(message: Mapping[str, object]) -> str:
    """The words of a message, without thoughts and tool calls."""
    parts = (part.get("text") for part in blocks(message) if part.get("type") == "text")
    return fields.clip("".join(part for part in parts if isinstance(part, str)).strip())


def uses(message: Mapping[str, object]) -> str:
    """What people are shown of a message's last tool call."""
    called = [part for part in blocks(message) if part.get("type") == "tool_use"]
    return f"{called[-1].get('name')}: {shown(called[-1].get('input'))}" if called else ""


def shown(given: object) -> str:
    """What people are shown of a tool's arguments: the first line of the first text among them."""
    values = given.values() if isinstance(given, dict) else ()
    first = next((value for value in values if isinstance(value, str)), "")
    return first.strip().partition("\n")[0][: 2 * fields.LAST]


def told(usage: Mapping[str, object]) -> Usage:
    """A call as its message begins with it: of its output it holds a placeholder, which is none."""
    return Usage(
        input=_count(usage, "input_tokens"),
        cache_read=_count(usage, "cache_read_input_tokens"),
        cache_write=_count(usage, "cache_creation_input_tokens"),
        calls=1,
    )


def turn(usage: Mapping[str, object]) -> Usage:
    """A turn's whole usage, of a claude that does not say it by model."""
    thought = member(usage, "output_tokens_details")
    return Usage(
        input=_count(usage, "input_tokens"),
        cache_read=_count(usage, "cache_read_input_tokens"),
        cache_write=_count(usage, "cache_creation_input_tokens"),
        output=_count(usage, "output_tokens"),
        reasoning=_count(thought, "thinking_tokens"),
    )


def spent(usage: Mapping[str, object]) -> Usage:
    """What one model used since the last result."""
    return Usage(
        input=_count(usage, "inputTokens"),
        cache_read=_count(usage, "cacheReadInputTokens"),
        cache_write=_count(usage, "cacheCreationInputTokens"),
        output=_count(usage, "outputTokens"),
        reasoning=_count(usage, "thinkingTokens"),
        cost=fields.dollars(usage, "costUSD"),
    )


def _count(usage: Mapping[str, object], key: str) -> int:
    """A count; claude writes null for none."""
    return 0 if usage.get(key) is None else fields.whole(usage, key)


def refused(status: object, error: str, said: str) -> Limit | None:
    """What sort of limit a failed turn met, None where it met none: by its provider's status, claude's word for it, and
    the words that people are shown, for a subscription's limit has no number of its own."""
    if _LOGIN.search(said):
        return "auth"
    sort = _ERRORS.get(error) or (_STATUSES.get(status) if isinstance(status, int) else None)
    if sort in (None, "rate") and _QUOTA.search(said):
        return "quota"
    return sort


def until(said: str) -> float | None:
    """When a limit ends, where the words hold it as a number."""
    found = _EPOCH.search(said)
    return float(found[1]) if found else None


def retry(said: Mapping[str, object]) -> str:
    """A call that claude tries again by itself, for people."""
    delay = (fields.number(said, "retry_delay_ms", fields.EXACT) or 0.0) / 1000
    why = " ".join(str(said[key]) for key in ("error", "error_status") if said.get(key) is not None)
    return f"retry {said.get('attempt')} of {said.get('max_retries')} in {delay:.3g}s: {why}"


def tools(granted: tuple[str, ...] | None) -> tuple[str, ...]:
    """The options that leave claude these tools and no others, to be used unasked; a right not named is claude's own
    default, with its own questions."""
    if granted is None:
        return ("--strict-mcp-config",)
    names = TOOLS.named(granted)
    own = [name for name in names if not name.startswith("mcp__")]
    loaded = [*mcp.servers(granted), *(name.split("__")[1] for name in names if name not in own)]
    allowed = ("--allowedTools", ",".join(names)) if names else ()
    return ("--tools", ",".join(own), *allowed, *_servers(loaded))


def _servers(names: list[str]) -> tuple[str, ...]:
    """Of the person's MCP servers claude loads these, and none where there are none of these."""
    listed = [{"serverName": name} for name in dict.fromkeys(names)]
    return ("--settings", json.dumps({"allowedMcpServers": listed})) if listed else ("--strict-mcp-config",)


def part(granted: tuple[str, ...]) -> bool:
    """Whether it holds a tool of a server and not all of that."""
    return any(
        name.startswith("mcp__") and name.count("__") > 1 and not name.endswith("__*") for name in TOOLS.named(granted)
    )


def granted(tool: str, rights: tuple[str, ...]) -> bool:
    """Whether a tool that claude asks for is one of these."""
    return any(
        tool == name or tool.startswith(f"{name}__") or (name.endswith("*") and tool.startswith(name[:-1]))
        for name in TOOLS.named(rights)
    )


def uuid(*parts: object) -> str:
    """The same parts give the same id, and others another."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
