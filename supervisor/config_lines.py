"""Where a key of a TOML text stands: the line of every key path. It reads text that `tomllib` has accepted, and
never says what is valid; a place it does not know is answered with the nearest one around it."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from typing import Final

from attrs import define, field

Path = tuple[str | int, ...]

_TRIVIA: Final = re.compile(r"(?:[ \t\n]+|#[^\n]*)*+")
_BLANKS: Final = re.compile(r"[ \t]*+")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]++")
_STRING: Final = re.compile(
    r'"""(?:[^"\\]++|\\[\s\S]|"(?!""))*+"{3,5}'
    r"|'''(?:[^']++|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]++|\\.)*+"'
    r"|'[^'\n]*+'"
)
#: A number, a date, `true`: what ends at the next comma, bracket, comment or line.
_SCALAR: Final = re.compile(r"[^,\]}#\n]*+")


@define
class _Open:
    """An array or inline table that is not closed yet; `index` is the element that comes next."""

    path: Path
    array: bool
    index: int = 0


def _no_lines() -> dict[Path, int]:
    return {}


@define
class Lines:
    """The line (from 1) of each key path of one text. An element of an array is named by its index."""

    known: dict[Path, int] = field(factory=_no_lines)

    def of(self, path: Path) -> int:
        """The line of `path`, else of what it stands in; 1 where nothing is known."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.known:
                return self.known[path[:length]]
        return 1


def lines(text: str) -> Lines:
    """The lines of a text that `tomllib.loads` accepts."""
    scan = _Scan(text.replace("\r\n", "\n"))
    scan.document()
    return Lines(scan.known)


class _Scan:
    """One pass over the text, without recursion: depth is a list, not the stack."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.known: dict[Path, int] = {}
        self.newlines = [found.start() for found in re.finditer("\n", text)]
        #: how many elements each array of tables has so far
        self.counts: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        while True:
            self.skip(_TRIVIA)
            if self.at >= len(self.text):
                return
            if self.text[self.at] == "[":
                table = self.header()
            else:
                path = self.key(table)
                self.skip(_BLANKS)
                self.at += 1  # "="
                self.value(path)

    def header(self) -> Path:
        """`[a.b]` or `[[a.b]]`: the table that the following keys are in."""
        array = self.text.startswith("[[", self.at)
        self.at += 2 if array else 1
        line = self.line()
        path: Path = ()
        parts = self.parts()
        for place, part in enumerate(parts):
            path = (*path, part)
            self.known.setdefault(path, line)
            if array and place == len(parts) - 1:
                self.counts[path] = self.counts.get(path, 0) + 1
            if path in self.counts:
                path = (*path, self.counts[path] - 1)
                self.known.setdefault(path, line)
        self.skip(_BLANKS)
        self.at += 2 if array else 1
        return path

    def key(self, table: Path) -> Path:
        """A dotted key; each of its prefixes that was not seen before is on its line too."""
        line = self.line()
        for part in self.parts():
            table = (*table, part)
            self.known.setdefault(table, line)
        return table

    def parts(self) -> list[str]:
        found: list[str] = []
        while True:
            self.skip(_BLANKS)
            bare = _BARE.match(self.text, self.at)
            if bare is not None:
                self.at = bare.end()
                found.append(bare[0])
            else:
                found.append(self.quoted())
            self.skip(_BLANKS)
            if not self.text.startswith(".", self.at):
                return found
            self.at += 1

    def quoted(self) -> str:
        start = self.at
        self.skip(_STRING)
        raw = self.text[start : self.at]
        if raw.startswith('"') and "\\" in raw:
            return str(tomllib.loads(f"key = {raw}")["key"])
        return raw[1:-1]

    def value(self, path: Path) -> None:
        """The value at `path` with all that is in it. An open array or table waits in `pending`."""
        pending: list[_Open] = []
        while True:
            self.skip(_BLANKS)
            opened = self.text[self.at : self.at + 1]
            if opened in {"[", "{"} and opened:
                self.at += 1
                pending.append(_Open(path, opened == "["))
            else:
                self.skip(_STRING if opened in {'"', "'"} else _SCALAR)
            entry = self.entry(pending)
            if entry is None:
                return
            path = entry

    def entry(self, pending: list[_Open]) -> Path | None:
        """Closes what ends here and answers where the next value belongs, None when nothing is open any more."""
        while pending:
            self.skip(_TRIVIA)
            if self.text.startswith(",", self.at):
                self.at += 1
                self.skip(_TRIVIA)
            if self.at >= len(self.text) or self.text[self.at] in "]}":
                self.at += 1
                pending.pop()
                continue
            inner = pending[-1]
            if inner.array:
                path = (*inner.path, inner.index)
                inner.index += 1
                self.known.setdefault(path, self.line())
                return path
            path = self.key(inner.path)
            self.skip(_TRIVIA)
            self.at += 1  # "="
            return path
        return None

    def skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()

    def line(self) -> int:
        return bisect_right(self.newlines, self.at - 1) + 1 if self.at else 1
