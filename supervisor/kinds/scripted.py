"""The kind `scripted`: our own agent, which plays a script and speaks status lines (`docs/scripted.md`)."""

from __future__ import annotations

import sys

from supervisor.core.spec import KindSpec
from supervisor.kinds.kind import Account, Launch, Reader, Reopening, Seat
from supervisor.kinds.lines import environment, unheld
from supervisor.kinds.lines_talk import LinesConversation

#: Started by its path and without the site directory (-I -S): it needs nothing but the standard library.
PROGRAM = __file__.removesuffix("kinds/scripted.py") + "scripted/__main__.py"


class Scripted:
    """The embedded agent."""

    name = "scripted"
    interruptible = True
    mark = b'"fleet"'
    once = False
    tells: frozenset[str] = frozenset()
    env: tuple[str, ...] = ("*",)
    credential: tuple[str, ...] = ("FLEET_LOGIN",)
    account: Account | None = None
    by_provider = False

    def launch(self, kind: KindSpec, seat: Seat) -> Launch:
        argv = kind.command or (sys.executable, "-I", "-S", PROGRAM)
        told = (("FLEET_INSTRUCTIONS", seat.spec.instructions), ("FLEET_ONCE", "1" if seat.once else ""))
        return Launch(argv, (*environment(seat), *told))

    def recorded(self, seat: Seat) -> Reader:
        return LinesConversation(seat)

    def unenforced(self, seat: Seat) -> tuple[str, ...]:
        return unheld(seat)

    def reopen(self, kind: KindSpec, seat: Seat) -> Reopening:
        return Reopening()

    def converse(self, seat: Seat) -> LinesConversation:
        return LinesConversation(seat, at_once=False)


SCRIPTED = Scripted()
