"""MCP servers of the person's in a grant of tools: `mcp:SERVER` is all tools of one, `mcp:SERVER:TOOL` one of them. A
server that no entry names is not to be loaded, with a grant of tools or without one."""

from __future__ import annotations

import re

_ENTRY = re.compile(r"mcp:([A-Za-z0-9_.-]+)(?::([A-Za-z0-9_.-]+|\*))?")
#: What programs leave as it is in the names of servers and tools.
PLAIN = "A-Za-z0-9_-"
#: A server of this name is nobody's: with it alone named to a program that takes names, none is started.
NOBODYS = "no-server-of-the-grant"


def servers(tools: tuple[str, ...] | None) -> tuple[str, ...]:
    """The servers that a grant names."""
    found = (_ENTRY.fullmatch(name) for name in tools or ())
    return tuple(dict.fromkeys(each[1] for each in found if each is not None))


def written(tools: tuple[str, ...], form: str, plain: str = PLAIN) -> tuple[str, ...]:
    """The grant as a program writes it: `form` is a tool's name, with `{server}` and `{tool}`; of characters that are
    not `plain` the program makes an underscore."""
    rest = re.compile(f"[^{plain}]")

    def one(name: str) -> str:
        if (entry := _ENTRY.fullmatch(name)) is None:
            return name
        tool = entry[2] or "*"
        return form.format(server=rest.sub("_", entry[1]), tool=tool if tool == "*" else rest.sub("_", tool))

    return tuple(map(one, tools))
