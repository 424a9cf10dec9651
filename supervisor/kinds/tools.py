"""The tools of a grant, as an agent program calls them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import frozen

from supervisor.kinds import mcp


@frozen
class Tools:
    """What a program calls its tools. `neutral` has its own names of each neutral one. `own` matches what a grant may
    call by the program's own name: the group that matched. `served` is a tool of an MCP server, with `{server}` and
    `{tool}`; of characters that are not `plain` the program makes an underscore."""

    neutral: Mapping[str, tuple[str, ...]]
    own: re.Pattern[str]
    served: str
    plain: str = mcp.PLAIN

    def named(self, granted: tuple[str, ...]) -> tuple[str, ...]:
        """The program's names of what is granted; what is none of the program's gives nothing."""
        names: list[str] = []
        for name in mcp.written(granted, self.served, self.plain):
            own = self.own.fullmatch(name)
            names += self.neutral.get(name, ()) if own is None else filter(None, own.groups())
        return tuple(dict.fromkeys(names))
