"""Takes values out of pi's lines: usage, texts, models; and maps the tools of a grant to pi's own options."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import evolve

from supervisor.core.ledger import UNKNOWN, ZERO, Report, Usage
from supervisor.kinds import fields
from supervisor.kinds.readable import readable
from supervisor.kinds.tools import Tools

#: So many calls are looked at again when a conversation is resumed; each is booked once, and far more are known.
REMEMBERED = 32
#: Neutral names of tools and pi's own. pi has no tool for the web; such a right gives it nothing.
TOOLS = Tools(
    {name: (name,) for name in ("read", "edit", "write", "bash", "grep", "ls")} | {"glob": ("find",)},
    # `pi:NAME` in a grant. pi takes `+name` and `-name` for changes to the person's defaults: no grant is one.
    own=re.compile(r"pi:([A-Za-z][A-Za-z0-9_.*-]*)"),
    served="pi:mcp__{server}__{tool}",
)
#: pi's events have `type` first; the many that say nothing new are told by it, before anything is decoded.
_TYPE = re.compile(rb'\{"type":"([a-z_]+)"')


def kind(line: bytes) -> str:
    """The type of an event; "" where the line is none, or an answer to a command."""
    found = _TYPE.match(line)
    return found[1].decode() if found else ""


def text(message: Mapping[str, object]) -> str:
    """The words of a message, without thoughts and tool calls."""
    content = message.get("content")
    if not isinstance(content, list):
        return fields.clip(content) if isinstance(content, str) else ""
    parts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text")
    return fields.clip("".join(part for part in parts if isinstance(part, str)).strip())


def model(state: object) -> str:
    """`provider/id` of a model object."""
    if not isinstance(state, dict):
        return ""
    return "/".join(fields.words(state, key) for key in ("provider", "id") if key in state)


def call(holder: Mapping[str, object], named: str) -> Report | None:
    """One model call; None where it failed or was cut before its provider told a number."""
    usage = fields.member(holder, "usage")
    cost = usage.get("cost")
    booked = Usage(
        input=fields.whole(usage, "input"),
        cache_read=fields.whole(usage, "cacheRead"),
        cache_write=fields.whole(usage, "cacheWrite"),
        output=fields.whole(usage, "output"),
        reasoning=fields.whole(usage, "reasoning"),
        calls=1,
        cost=fields.dollars(cost, "total") if isinstance(cost, dict) else 0,
    )
    if not booked.tokens:
        return None
    model = "/".join(fields.words(holder, key) for key in ("provider", "model") if key in holder)
    return Report("call", booked, id=fields.clip(named, fields.LAST), model=model)


def answer(message: Mapping[str, object]) -> Report | None:
    """The model call that gave an assistant's message, wherever that stands."""
    return call(message, name(message))


def name(message: Mapping[str, object]) -> str:
    """What tells an assistant's message from all others."""
    return f"{message.get('timestamp')}:{message.get('responseId', '')}"


def remembered(conversation: Mapping[str, object]) -> tuple[Report, ...]:
    """The last calls of a conversation that is gone on with: of the newest one pi may have told nobody who lives."""
    messages = conversation.get("messages")
    said = fields.listed(messages)
    calls = (answer(each) for each in said if each.get("role") == "assistant" and isinstance(each.get("usage"), dict))
    return tuple(report for report in calls if report is not None)[-REMEMBERED:]


def context(told: object) -> Report | None:
    """How full the window is. pi knows none of it right after a compaction."""
    if not isinstance(told, dict):
        return None
    window = fields.whole(told, "contextWindow") or None
    if told.get("percent") is None:
        return evolve(UNKNOWN, window=window)
    percent = min(100.0, fields.number(told, "percent", fields.EXACT) or 0.0)
    held = fields.whole(told, "tokens") if told.get("tokens") is not None else None
    return Report("call", ZERO, context=percent, window=window, held=held)


def window(model: object) -> int | None:
    """How large a model's window is, where pi says it."""
    size = model.get("contextWindow") if isinstance(model, dict) else None
    return None if size is None or not isinstance(model, dict) else fields.whole(model, "contextWindow") or None


def told(said: Mapping[str, object]) -> str:
    """What an event that is only for people says to them."""
    match fields.words(said, "type"):
        case "tool_execution_start":
            return f"{fields.words(said, 'toolName')}: {shown(said.get('args'))}"
        case "auto_retry_start":
            delay = fields.whole(said, "delayMs") / 1000
            tried, most = fields.whole(said, "attempt"), fields.whole(said, "maxAttempts")
            return f"retry {tried} of {most} in {delay:g}s: {readable(fields.words(said, 'errorMessage'))}"
        case _:
            return f"extension failed: {fields.words(said, 'error')}"


def shown(given: object) -> str:
    """What people are shown of a tool's arguments: the first line of the first text among them."""
    values = given.values() if isinstance(given, dict) else ()
    first = next((value for value in values if isinstance(value, str)), "")
    return first.strip().partition("\n")[0][: 2 * fields.LAST]


def tools(granted: tuple[str, ...] | None) -> tuple[str, ...]:
    """The options that leave pi these tools and no others; a right not named is pi's own default. The person's MCP
    servers are loaded only where one of their tools is named."""
    if granted is None:
        return ("--no-mcp",)
    named = TOOLS.named(granted)
    if not named:
        return ("--no-tools", "--no-mcp")
    # A list without a name of theirs leaves the tools of the person's MCP servers in.
    none = () if any(name.startswith("mcp__") for name in named) else ("--no-mcp",)
    return ("--tools", ",".join(named), *none)
