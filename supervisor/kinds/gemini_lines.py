"""Takes values out of gemini's lines: usage, errors, tool calls; and maps the tools of a grant to rules of its policy
engine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from attrs import evolve, frozen

from supervisor.core.ledger import Report, Usage
from supervisor.kinds import fields, mcp
from supervisor.kinds.readable import readable
from supervisor.kinds.tools import Tools

#: gemini's own tools, in version 0.61.
OWN = (
    *("read_file", "read_many_files", "list_directory", "grep_search", "glob", "replace", "write_file"),
    *("run_shell_command", "list_background_processes", "read_background_output", "google_web_search", "web_fetch"),
    *("read_mcp_resource", "list_mcp_resources", "invoke_agent", "activate_skill", "get_internal_docs", "ask_user"),
    *("write_todos", "update_topic", "complete_task", "enter_plan_mode", "exit_plan_mode", "save_memory"),
    *("tracker_create_task", "tracker_update_task", "tracker_get_task", "tracker_list_tasks"),
    *("tracker_add_dependency", "tracker_visualize"),
)
#: Neutral names of tools and gemini's own.
TOOLS = Tools(
    {
        "read": ("read_file", "read_many_files"),
        "ls": ("list_directory",),
        "grep": ("grep_search",),
        "glob": ("glob",),
        "edit": ("replace",),
        "write": ("write_file",),
        "bash": ("run_shell_command", "list_background_processes", "read_background_output"),
        "web": ("google_web_search", "web_fetch"),
    },
    # `gemini:NAME` in a grant; a `*` at the end is any rest, for the tools of an MCP server alone.
    own=re.compile(r"gemini:([A-Za-z][A-Za-z0-9_.-]*|mcp_[A-Za-z0-9_.-]*\*)"),
    served="gemini:mcp_{server}_{tool}",
    plain="A-Za-z0-9_.-",
)
_STATUS = re.compile(r"\b([45]\d\d)\b")


@frozen
class Failure:
    """What a model's provider answered: `status` is the HTTP status, 0 where it is not known."""

    text: str
    status: int = 0


def reports(stats: Mapping[str, object], name: str, calls: int) -> tuple[Report, ...]:
    """What one process used, a report a model. gemini does not tell how many calls these were: those that were seen are
    the first model's."""
    found = [
        _report(model, fields.member(fields.member(stats, "models"), model), name)
        for model in fields.member(stats, "models")
    ]
    used = [report for report in found if report.usage.tokens]
    if used:
        used[0] = evolve(used[0], usage=evolve(used[0].usage, calls=max(1, calls)))
        # What the last of several calls held stands in no line.
        used[-1] = evolve(used[-1], held=used[0].usage.tokens if calls == len(used) == 1 else -1)
    return tuple(used)


def _report(model: str, told: Mapping[str, object], name: str) -> Report:
    total, prompt, words = (fields.whole(told, key) for key in ("total_tokens", "input_tokens", "output_tokens"))
    cached = min(prompt, fields.whole(told, "cached"))
    # The thoughts are told by nothing but the difference.
    thoughts = max(0, total - prompt - words)
    usage = Usage(input=prompt - cached, cache_read=cached, output=words + thoughts, reasoning=thoughts)
    return Report("call", usage, id=fields.clip(f"{name}:{model}", fields.LAST), model=fields.clip(model, fields.LAST))


def failure(text: str) -> Failure:
    """Of an error, in words: gemini gives its provider's answer as JSON in the midst of them."""
    begin, end = text.find("{"), text.rfind("}")
    if 0 <= begin < end:
        try:
            inner = json.loads(text[begin : end + 1])
        except (ValueError, RecursionError):
            inner = None
        told = inner.get("error") if isinstance(inner, dict) else None
        if isinstance(told, dict) and isinstance(told.get("message"), str):
            status = told.get("code")
            before = _STATUS.search(text[:begin])
            known = (
                status if isinstance(status, int) and not isinstance(status, bool) else int(before[1]) if before else 0
            )
            name = told.get("status") or told.get("type")
            words = ": ".join(str(part) for part in (known or "", name or "", readable(told["message"])) if part)
            return Failure(fields.clip(words), known)
    found = _STATUS.search(text) if "API Error" in text else None
    return Failure(fields.clip(text.strip()), int(found[1]) if found else 0)


def shown(name: str, given: object) -> str:
    """What people are shown of a tool call: its name and the first line of the first text among its arguments."""
    values = given.values() if isinstance(given, dict) else ()
    first = next((value for value in values if isinstance(value, str)), "")
    return f"{name}: {first.strip().partition(chr(10))[0][: 2 * fields.LAST]}"


def servers(tools: tuple[str, ...] | None) -> tuple[str, ...]:
    """The person's MCP servers that are started. Where one's name ends in `mcp_SERVER_TOOL` cannot be known: all that
    it may be are named."""
    names = [*mcp.servers(tools)]
    for name in TOOLS.named(tools or ()):
        parts = name.split("_")
        if parts[0] == "mcp":
            names += ["_".join(parts[1:end]) for end in range(2, len(parts))]
    return tuple(dict.fromkeys(names)) or (mcp.NOBODYS,)


def policy(tools: tuple[str, ...]) -> str:
    """Rules that leave gemini these tools and no others of its own, nor any of an MCP server that is not named. What
    the person's own rules say of those that are left holds as before: nothing here allows one of gemini's own."""
    left = TOOLS.named(tools)
    rules = [_rule([name for name in OWN if name not in left], "deny", 900), _rule(["mcp_*"], "deny", 900)]
    mcp = [name for name in left if name.startswith("mcp_")]
    return "\n".join([*rules, *([_rule(mcp, "allow", 950)] if mcp else [])])


def _rule(names: list[str], decision: str, priority: int) -> str:
    # A list of texts is written the same way in JSON and in TOML.
    return f'[[rule]]\ntoolName = {json.dumps(names)}\ndecision = "{decision}"\npriority = {priority}\n'
