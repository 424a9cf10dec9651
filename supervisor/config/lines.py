"""Where a key of a TOML text stands: the line of every key path. It reads text that `tomllib` has accepted, and
never says what is valid; a place it does not know is answered with the nearest one around it."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from attrs import define, field

Path = tuple[str | int, ...]

# No possessive quantifiers: `re` of the first Python 3.11 releases takes them and matches wrongly.
_TRIVIA: Final = re.compile(r"(?:[ \t\n]+|#[^\n]*)*")
_BLANKS: Final = re.compile(r"[ \t]*")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
#: What matters within a string, by what opened it: an escape, or its end. Two more quotes may stand before the end.
_INSIDE: Final = {
    '"""': re.compile(r'\\[\s\S]|"{3,5}'),
    "'''": re.compile(r"'{3,5}"),
    '"': re.compile(r'\\.|"'),
    "'": re.compile(r"'"),
}
#: A number, a date, `true`: what ends at the next comma, bracket, comment or line.
_SCALAR: Final = re.compile(r"[^,\]}#\n]*")


def _nothing() -> dict[str | int, _Place]:
    return {}


@define(eq=False)
class _Place:
    """One key, or one element of an array: its line, and what stands in it. `tables` counts the elements of an array
    of tables."""

    line: int = field(default=1, repr=False)
    inner: dict[str | int, _Place] = field(factory=_nothing, repr=False)
    tables: int = 0

    def at(self, part: str | int, line: int) -> _Place:
        """What stands in it under `part`; on `line` when it was not seen before."""
        found = self.inner.get(part)
        if found is None:
            found = self.inner[part] = _Place(line)
        return found


@define(eq=False)
class _Open:
    """An array or inline table that is not closed yet; `index` is the element that comes next."""

    place: _Place
    array: bool
    index: int = 0


@define(eq=False)
class Lines:
    """The line (from 1) of each key path of one text. An element of an array is named by its index."""

    root: _Place = field(factory=_Place, repr=False)

    def of(self, path: Path) -> int:
        """The line of `path`, else of what it stands in; 1 where nothing is known."""
        place = self.root
        for part in path:
            found = place.inner.get(part)
            if found is None:
                break
            place = found
        return place.line

    def __iter__(self) -> Iterator[tuple[Path, int]]:
        """Every path that is known, with its line."""
        waiting: list[tuple[Path, _Place]] = [((), self.root)]
        while waiting:
            path, place = waiting.pop()
            for part, inner in place.inner.items():
                yield (*path, part), inner.line
                waiting.append(((*path, part), inner))


def lines(text: str) -> Lines:
    """The lines of a text that `tomllib.loads` accepts."""
    scan = _Scan(text.replace("\r\n", "\n"))
    scan.document()
    return Lines(scan.root)


class _Scan:
    """One pass over the text, without recursion: depth is a list, not the stack."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.root = _Place()
        self.newlines = [found.start() for found in re.finditer("\n", text)]

    def document(self) -> None:
        table = self.root
        while True:
            self.skip(_TRIVIA)
            if self.at >= len(self.text):
                return
            if self.text[self.at] == "[":
                table = self.header()
            else:
                place = self.key(table)
                self.skip(_BLANKS)
                self.at += 1  # "="
                self.value(place)

    def header(self) -> _Place:
        """`[a.b]` or `[[a.b]]`: the table that the following keys are in."""
        array = self.text.startswith("[[", self.at)
        self.at += 2 if array else 1
        line = self.line()
        place = self.root
        parts = self.parts()
        for number, part in enumerate(parts, 1):
            place = place.at(part, line)
            place.tables += array and number == len(parts)
            if place.tables:
                place = place.at(place.tables - 1, line)
        self.skip(_BLANKS)
        self.at += 2 if array else 1
        return place

    def key(self, table: _Place) -> _Place:
        """A dotted key; each of its prefixes that was not seen before is on its line too."""
        line = self.line()
        for part in self.parts():
            table = table.at(part, line)
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
        self.string()
        raw = self.text[start : self.at]
        if raw.startswith('"') and "\\" in raw:
            return str(tomllib.loads(f"key = {raw}")["key"])
        return raw[1:-1]

    def value(self, place: _Place) -> None:
        """The value at `place` with all that is in it. An open array or table waits in `pending`."""
        pending: list[_Open] = []
        while True:
            before = self.at
            self.skip(_BLANKS)
            first = self.text[self.at]
            if first in "[{":
                self.at += 1
                pending.append(_Open(place, first == "["))
            elif first in "\"'":
                self.string()
            else:
                self.skip(_SCALAR)
            entry = self.entry(pending)
            if entry is None or self.at == before:  # whatever this is: better no line than no end
                return
            place = entry

    def entry(self, pending: list[_Open]) -> _Place | None:
        """Closes what ends here and answers where the next value belongs, None when nothing is open any more."""
        while pending:
            self.skip(_TRIVIA)
            if self.text[self.at] == ",":
                self.at += 1
                self.skip(_TRIVIA)
            if self.text[self.at] in "]}":
                self.at += 1
                pending.pop()
                continue
            inner = pending[-1]
            if inner.array:
                inner.index += 1
                return inner.place.at(inner.index - 1, self.line())
            place = self.key(inner.place)
            self.skip(_TRIVIA)
            self.at += 1  # "="
            return place
        return None

    def string(self) -> None:
        """Past the string that begins here."""
        first = self.text[self.at]
        opened = first * 3 if self.text.startswith(first * 3, self.at) else first
        self.at += len(opened)
        while (found := _INSIDE[opened].search(self.text, self.at)) is not None:
            self.at = found.end()
            if not found[0].startswith("\\"):
                return
        self.at = len(self.text)

    def skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()

    def line(self) -> int:
        return bisect_left(self.newlines, self.at) + 1
