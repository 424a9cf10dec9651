"""Takes values out of qwen's lines: usage, limits; and maps the tools of a grant to qwen's own options."""

from __future__ import annotations

import re
from collections.abc import Mapping

from supervisor.core.facts import Limit
from supervisor.core.ledger import ZERO, Report, Usage
from supervisor.kinds import claude_lines, fields, mcp
from supervisor.kinds.fields import LineError
from supervisor.kinds.tools import Tools

#: Neutral names of tools and qwen's own.
TOOLS = Tools(
    {
        "read": ("read_file",),
        "edit": ("edit", "notebook_edit"),
        "write": ("write_file",),
        "bash": ("run_shell_command",),
        "grep": ("grep_search",),
        "glob": ("glob",),
        "ls": ("list_directory", "glob"),
        "web": ("web_fetch",),
    },
    own=re.compile(r"(?:qwen:)?(mcp__[A-Za-z0-9_.-]+(?:\*)?)|qwen:([a-z][a-z0-9_]*)"),
    served="mcp__{server}__{tool}",
)
#: Those that qwen has whatever its list of core tools says; the last two only lead to an MCP server's.
ALWAYS = (
    "agent", "ask_user_question", "enter_worktree", "exit_worktree", "get_goal", "list_agents", "report_findings",
    "send_message", "skill", "task_stop", "update_goal", "tool_call", "tool_search",
)  # fmt: skip
_TO_SERVERS = frozenset({"tool_call", "tool_search"})
#: How qwen says that a model call failed; such a text is no answer. Behind the bracket of a 429 it gives advice of its
#: own, which speaks of quotas whatever the provider said.
FAILED = re.compile(r"\[API Error:\s*(?:(\d{3})\b)?|Quota exhausted: |Qwen OAuth (?:quota exceeded|free tier)")
_ADVICE = re.compile(r"(?<=\])\n.*\Z", re.DOTALL)
_STATUSES: dict[int, Limit] = {401: "auth", 402: "quota", 403: "auth", 429: "rate", 529: "overload"}
_LOGIN = re.compile(
    r"no auth type|not authenticated|(?:invalid|incorrect) api key|api key.*(?:missing|not found)", re.IGNORECASE
)
_QUOTA = re.compile(r"quota|insufficient_quota|usage limit|daily limit|balance", re.IGNORECASE)


def told(usage: Mapping[str, object], calls: int = 0) -> Usage:
    """Usage whose input holds the cached reads; how much of its output was reasoning is not said."""
    whole, cached = fields.whole(usage, "input_tokens"), fields.whole(usage, "cache_read_input_tokens")
    if cached > whole:
        raise LineError("more input was cached than there was")
    return Usage(input=whole - cached, cache_read=cached, output=fields.whole(usage, "output_tokens"), calls=calls)


def refused(error: str) -> Limit | None:
    """What sort of limit a failed turn met, None where it met none."""
    if _LOGIN.search(error):
        return "auth"
    error = _ADVICE.sub("", error)
    found = FAILED.search(error)
    if found is not None and found[0].startswith("Q"):  # it has looked at the provider's answer itself
        return "quota"
    sort = _STATUSES.get(int(found[1])) if found is not None and found[1] else None
    return "quota" if sort == "rate" and _QUOTA.search(error) else sort


def cancelled(message: Mapping[str, object]) -> bool:
    """Whether a tool's answer says that the turn was cut: no call follows it."""
    return any(str(part.get("content")).startswith("[Operation Cancelled]") for part in claude_lines.blocks(message))


def context(told: Mapping[str, object]) -> Report | None:
    """How full the window is, by qwen's own count."""
    window, held = fields.whole(told, "contextWindowSize"), fields.whole(told, "totalTokens")
    if not window:
        return None
    return Report("call", ZERO, context=min(100.0, 100 * held / window), window=window, held=held)


def tools(granted: tuple[str, ...] | None) -> tuple[str, ...]:
    """The options that leave qwen these tools and no others. Whatever it has beyond asks first, and is refused."""
    if granted is None:
        return ("--allowed-mcp-server-names", mcp.NOBODYS)
    names = TOOLS.named(granted)
    servers = [*mcp.servers(granted), *(name.split("__")[1] for name in names if name.startswith("mcp__"))]
    kept = {*names, *(_TO_SERVERS if servers else ())}
    excluded = ",".join(name for name in ALWAYS if name not in kept)
    return (
        "--approval-mode", "default",
        "--core-tools", ",".join(names) or "none",
        *(("--exclude-tools", excluded) if excluded else ()),
        "--allowed-mcp-server-names", ",".join(dict.fromkeys(servers)) or mcp.NOBODYS,
    )  # fmt: skip


def granted(tool: str, rights: tuple[str, ...]) -> bool:
    """Whether a tool that qwen asks for is one of these."""
    return any(
        tool == name or tool.startswith(f"{name}__") or (name.endswith("*") and tool.startswith(name[:-1]))
        for name in TOOLS.named(rights)
    )
