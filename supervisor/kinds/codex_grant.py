"""What a grant becomes in codex: its sandbox, its approvals and its settings, and what it cannot be held to.

codex has one shell for reading, searching and running, and no list of allowed tools: what a sandbox cannot hold is
said in `unenforced`, never implied."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from supervisor.kinds import mcp

#: What codex's shell is needed for.
SHELL = frozenset({"read", "grep", "glob", "ls", "edit", "write", "bash"})
WRITES = frozenset({"edit", "write"})
#: `codex:mcp__SERVER__TOOL` and `codex:mcp__SERVER` in a grant; a `*` at the end is every tool.
_SERVER = re.compile(r"codex:mcp__(.+?)(?:__(.+))?")
#: Settings that take tools of codex's own away.
_NO_SHELL = {"features.shell_tool": False, "features.unified_exec": False}
_NO_OTHERS = {"features.multi_agent": False, "features.multi_agent_v2": False, "features.goals": False}


def sandbox(tools: tuple[str, ...] | None) -> dict[str, object]:
    """The sandbox and who is asked. Nobody is asked for more than a grant names; a right that is not named is the
    person's own configuration."""
    if tools is None:
        return {}
    mode = "danger-full-access" if "bash" in tools else "workspace-write" if WRITES & {*tools} else "read-only"
    return {"sandbox": mode, "approvalPolicy": "never"}


def settings(tools: tuple[str, ...] | None, servers: Iterable[str]) -> dict[str, object]:
    """Settings of this conversation over the person's: which MCP servers are loaded, and which of its own tools
    codex offers."""
    named = _named(tools)
    # A login shell would put the system's PATH before the one that the agent was started with.
    found: dict[str, object] = {"allow_login_shell": False}
    changed: dict[str, dict[str, object]] = {}
    for server in servers:
        if server not in named:
            changed[server] = {"enabled": False}
        elif (allowed := named[server]) is not None:
            changed[server] = {"enabled_tools": sorted(allowed)}
    if changed:
        found["mcp_servers"] = changed
    if tools is not None:
        found |= {"features.apps": False} if "codex_apps" not in named else {}
        found |= {} if SHELL & {*tools} else _NO_SHELL
        found |= {} if "web" in tools else {"web_search": "disabled"}
        found |= {} if "codex:agents" in tools else _NO_OTHERS
    return found


def _named(tools: tuple[str, ...] | None) -> Mapping[str, set[str] | None]:
    """The MCP servers of a grant, and which of their tools (None: all)."""
    named: dict[str, set[str] | None] = {}
    for entry in mcp.written(tools or (), "codex:mcp__{server}__{tool}", plain="A-Za-z0-9_.-"):
        if (found := _SERVER.fullmatch(entry)) is None:
            continue
        server, tool = found[1], found[2]
        known = named.get(server, set())
        named[server] = None if known is None or tool in {None, "*"} else {*known, tool}
    return named


def unenforced(tools: tuple[str, ...] | None) -> tuple[str, ...]:
    """What codex does not hold an agent to, a sentence each."""
    told = ["`paths` and `env`: its commands see what the person sees"]
    if tools is None:
        return tuple(told)
    held = {*tools}
    if "bash" in held:
        return (*told, "with `bash` its commands run outside any sandbox: whatever else is missing, they can do")
    if WRITES & held:
        told.append("it edits through its shell: commands run too, in a sandbox that lets it write below its directory")
    elif SHELL & held:
        told.append("it reads through its shell: commands run too, in a sandbox that lets it write nothing")
    if "read" not in held:
        told.append("it can look at images, and reads AGENTS.md")
    return tuple(told)
