"""Takes values out of codex's lines: usage, texts, errors, prompts; and maps the tools of a grant to codex's own
settings. It must book nothing that codex repeats: a total counts only where it has changed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from supervisor.core.facts import Limit
from supervisor.core.ledger import ZERO, Report, Usage
from supervisor.kinds import fields, limits
from supervisor.kinds.fields import LineError
from supervisor.kinds.readable import readable

#: codex's lines have `method` first, and a request of its own then an `id`; most say nothing new, and are told by it
#: before anything is decoded.
_METHOD = re.compile(rb'\{"method":"([A-Za-z_/]+)"(?:,"id":([0-9]+))?')
#: The beginning of an item's line, and of a text of ours in it.
_ITEM = re.compile(rb'"item":\{"type":"([A-Za-z]+)"(?:[^{}\[\]]*?"id":"([^"\\]*)")?')
_CLIENT = re.compile(rb'"clientId":"([^"\\]*)"')
_THREAD = re.compile(rb'"result":\{"thread":\{"id":"([0-9a-f-]+)"')
#: What is written into a thread by us or by codex itself; every other item comes from a model.
OURS = frozenset({"userMessage", "hookPrompt", "contextCompaction", "enteredReviewMode", "exitedReviewMode"})
#: What a model asks for and is told the result of, in another call.
TOOLS = frozenset(
    {"commandExecution", "fileChange", "mcpToolCall", "dynamicToolCall", "collabAgentToolCall", "functionCallOutput"}
    | {"imageView", "sleep", "webSearch", "imageGeneration"}
)
_SORTS: dict[str, Limit] = {
    "usageLimitExceeded": "quota",
    "rateLimitExceeded": "rate",
    "serverOverloaded": "overload",
    "unauthorized": "auth",
}


def method(line: bytes) -> tuple[str, int | None]:
    """What a line is, and the id that it is to be answered by; "" where it begins otherwise."""
    found = _METHOD.match(line)
    if found is None:
        return "", None
    return found[1].decode(), int(found[2]) if found[2] is not None else None


def item_of(head: bytes) -> tuple[str, str, str]:
    """The type and the id of the item that a line is about, and the name that we gave the text in it."""
    found, client = _ITEM.search(head), _CLIENT.search(head)
    kind, name = (found[1].decode(), (found[2] or b"").decode()) if found else ("", "")
    return kind, name, client[1].decode() if client else ""


def thread_of(head: bytes) -> str:
    """The thread that an answer is about, of which only the beginning is there."""
    found = _THREAD.search(head)
    return found[1].decode() if found else ""


def text(holder: Mapping[str, object], key: str) -> str:
    """A text that may be null."""
    return fields.words(holder, key) if holder.get(key) is not None else ""


def turn_of(said: Mapping[str, object]) -> str:
    """The turn that a notification is about, or that an answer tells of; "" where it tells none."""
    told = said.get("result", said)
    if not isinstance(told, dict):
        return ""
    turn = told.get("turn")
    return fields.words(turn, "id") if isinstance(turn, dict) else fields.words(told, "turnId")


def servers(result: object) -> tuple[str, ...]:
    """The MCP servers of the person's configuration, by name."""
    config = result.get("config") if isinstance(result, dict) else None
    named = config.get("mcp_servers") if isinstance(config, dict) else None
    return tuple(named) if isinstance(named, dict) else ()


# --- usage


def live(told: Mapping[str, object]) -> Usage:
    """One count of the app-server. `input` is what was not cached."""
    return _usage(
        told, "inputTokens", "cachedInputTokens", "cacheWriteInputTokens", "outputTokens", "reasoningOutputTokens"
    )


def executed(told: Mapping[str, object]) -> Usage:
    """One count of `codex exec`."""
    return _usage(
        told, "input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens",
        "reasoning_output_tokens",
    )  # fmt: skip


def _usage(told: Mapping[str, object], *keys: str) -> Usage:
    entered, read, written, output, reasoning = (fields.whole(told, key) for key in keys)
    if read + written > entered or reasoning > output:
        raise LineError("a part of a count is more than the whole")
    return Usage(entered - read - written, read, written, output, reasoning)


def context(used: Mapping[str, object]) -> Report:
    """How full the window is: the last call, output included; without a window where codex knows none."""
    held = fields.whole(fields.member(used, "last"), "totalTokens")
    window = 0 if used.get("modelContextWindow") is None else fields.whole(used, "modelContextWindow")
    if not window:
        return Report("call", ZERO, held=held)
    return Report("call", ZERO, context=min(100.0, 100 * held / window), window=window, held=held)


# --- errors and limits


def error(told: Mapping[str, object]) -> str:
    """An error in words. A provider's own answer stands in it as JSON."""
    words, more, code = readable(text(told, "message")), readable(text(told, "additionalDetails")), _status(told)
    if code is not None and str(code) not in words + more:
        words = f"{code}: {words}"
    return f"{words} ({more})" if more else words


def limit(told: Mapping[str, object]) -> Limit | None:
    """The limit that an error is, by codex's own word for it."""
    info, words = told.get("codexErrorInfo"), text(told, "message")
    if isinstance(info, str) and info in _SORTS:
        return _SORTS[info]
    return limits.sort(words, _status(told))


def _status(told: Mapping[str, object]) -> int | None:
    """The HTTP status of an error, where codex says it."""
    info = told.get("codexErrorInfo")
    status = next(iter(info.values()), None) if isinstance(info, dict) else None
    code = status.get("httpStatusCode") if isinstance(status, dict) else None
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def reset(told: Mapping[str, object]) -> float | None:
    """When the used up ones of these windows are free again (Unix seconds)."""
    windows = [window for key in ("primary", "secondary") if isinstance(window := told.get(key), dict)]
    used_up = [window for window in windows if (fields.number(window, "usedPercent", fields.EXACT) or 0) >= 100]
    return max((float(fields.whole(window, "resetsAt")) for window in used_up if window.get("resetsAt")), default=None)


# --- what people are shown


def shown(item: Mapping[str, object]) -> str:
    """What an item says to people; "" where it says nothing."""
    match item.get("type"):
        case "commandExecution":
            return f"$ {text(item, 'command')}".partition("\n")[0]
        case "fileChange":
            changes = item.get("changes")
            first = changes[0] if isinstance(changes, list) and changes else None
            return f"edits {first.get('path')}" if isinstance(first, dict) else "edits files"
        case "mcpToolCall":
            return f"{text(item, 'server')}: {text(item, 'tool')}"
        case "webSearch":
            return f"searches the web: {text(item, 'query')}"
        case "contextCompaction":
            return "compacting its conversation"
        case _:
            return ""
