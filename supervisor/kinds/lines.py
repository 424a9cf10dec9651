"""The kind for any program: one that speaks status lines, or knows nothing of the fleet and just prints."""

from __future__ import annotations

from supervisor.core.spec import KindSpec
from supervisor.kinds.kind import Account, Launch, Reader, Reopening, Seat
from supervisor.kinds.lines_talk import LinesConversation


class Lines:
    """Any program; its command stands in `[kinds.NAME]`."""

    name = "lines"
    interruptible = True
    mark = b'"fleet"'
    once = False
    tells: frozenset[str] = frozenset()
    env: tuple[str, ...] = ("*",)
    credential: tuple[str, ...] = ("FLEET_LOGIN",)
    account: Account | None = None
    by_provider = False

    def launch(self, kind: KindSpec, seat: Seat) -> Launch:
        return Launch(kind.command, environment(seat))

    def converse(self, seat: Seat) -> LinesConversation:
        return LinesConversation(seat)

    def recorded(self, seat: Seat) -> Reader:
        return LinesConversation(seat)

    def unenforced(self, seat: Seat) -> tuple[str, ...]:
        return unheld(seat)

    def reopen(self, kind: KindSpec, seat: Seat) -> Reopening:
        return Reopening()


def unheld(seat: Seat) -> tuple[str, ...]:
    """The program is told its tools and its model; nothing else makes it keep to them."""
    told = {"tools": seat.tools is not None, "model": bool(seat.spec.model)}
    return tuple(f"`{right}` is told to the program, which has to keep to it itself" for right in told if told[right])


def environment(seat: Seat) -> tuple[tuple[str, str], ...]:
    """What a program may want before its first line of input comes; nothing of it is secret."""
    return (
        ("FLEET_NAME", seat.name),
        ("FLEET_HOME", seat.home),
        ("FLEET_SESSION", seat.session),
        ("FLEET_RESUME", "1" if seat.resume else ""),
        ("FLEET_MODEL", seat.spec.model),
    )


LINES = Lines()
