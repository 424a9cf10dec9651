"""What we draw on: its size, whether it knows UTF-8 and colour. It writes nothing but what it is given."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

#: A pipe or a file has no width; this one shows every column.
PIPE_WIDTH = 160
_HEIGHT = 24
_NARROWEST = 20
_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}

#: How a state is coloured; what is not here is left as it is.
STATE_STYLE = {
    "starting": "cyan",
    "working": "green",
    "waiting": "yellow bold",
    "parked": "magenta",
    "backoff": "red",
    "stopping": "yellow",
    "stopped": "dim",
    "gone": "dim",
}


class Screen:
    """A terminal, or whatever stdout is instead. `tty` says that it is one."""

    __slots__ = ("colour", "height", "tty", "utf8", "width")

    def __init__(self, width: int, height: int, *, utf8: bool, colour: bool, tty: bool) -> None:
        self.width = max(_NARROWEST, width)
        self.height = height
        self.utf8 = utf8
        self.colour = colour
        self.tty = tty

    @classmethod
    def of(cls, out: TextIO, environ: Mapping[str, str]) -> Screen:
        tty = out.isatty()
        width, height = _size(environ, tty)
        encoding = (out.encoding or "ascii").lower().replace("-", "").replace("_", "")
        colour = tty and not environ.get("NO_COLOR") and environ.get("TERM", "dumb") != "dumb"
        return cls(width, height, utf8=encoding == "utf8", colour=colour, tty=tty)

    @property
    def mark(self) -> str:
        """What stands where something was cut."""
        return "…" if self.utf8 else "~"

    @property
    def dot(self) -> str:
        """What stands between the parts of one line."""
        return " · " if self.utf8 else ", "

    def style(self, text: str, names: str) -> str:
        """The text in the named styles (`red bold`); as it is where there is no colour."""
        if not self.colour or not names or not text:
            return text
        codes = ";".join(_CODES[name] for name in names.split())
        return f"\x1b[{codes}m{text}\x1b[0m"


def _size(environ: Mapping[str, str], tty: bool) -> tuple[int, int]:
    """COLUMNS, else the terminal's; a pager's terminal is known by stderr or stdin."""
    named = environ.get("COLUMNS", "")
    width = int(named) if named.isdigit() and int(named) else 0
    for stream in (sys.__stdout__, sys.__stderr__, sys.__stdin__):
        try:
            size = os.get_terminal_size(stream.fileno()) if stream is not None else None
        except (OSError, ValueError):
            continue
        if size is not None and size.columns:
            return width or size.columns, size.lines or _HEIGHT
    return width or (80 if tty else PIPE_WIDTH), _HEIGHT
