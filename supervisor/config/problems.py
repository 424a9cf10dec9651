"""What is wrong with an agents.toml, in words: problems with their place, gathered so that all are told at once.
It never decides what is wrong."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

from attrs import define, field, frozen

from supervisor.config.lines import Lines, Path

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
#: How many problems are told of one content: enough for any file that a person wrote.
TOLD: Final = 200
#: A quoted value in a message is cut after this many characters.
_SHOWN: Final = 60


@frozen
class Problem:
    """One thing that is wrong. `line` 0 is the whole file, `key` "" no key in particular."""

    file: str
    line: int
    key: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        words = f"{self.message}. {self.remedy}" if self.remedy else self.message
        return f"{place}: {self.key}: {words}" if self.key else f"{place}: {words}"


class ConfigError(Exception):
    """All that is wrong with the content, in the order of its lines."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class WrongValueError(ValueError):
    """A value that may not stand where it stands; its place is added by who walks the tables."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


def _none() -> list[Problem]:
    return []


@define
class Report:
    """The problems found so far, over all files."""

    problems: list[Problem] = field(factory=_none)

    def add(self, file: str, lines: Lines, path: Path, message: str, remedy: str = "") -> None:
        self.problems.append(Problem(file, lines.of(path), show_path(path), message, remedy))

    def error(self, files: tuple[str, ...]) -> ConfigError:
        """All of them, ordered by file as given and by line, each once; of thousands the first."""
        order = {file: place for place, file in enumerate(files)}
        unique = dict.fromkeys(self.problems)
        found = sorted(unique, key=lambda one: (order.get(one.file, len(order)), one.line))
        more = [Problem(files[-1], 0, "", f"and {len(found) - TOLD} more problems")] if len(found) > TOLD else []
        return ConfigError(found[:TOLD] + more)


def quoted(text: str, most: int = _SHOWN) -> str:
    """Text for a message: in quotes, cut, and without a character that a terminal would act on."""
    shown = text if len(text) <= most else text[: most - 1] + "…"
    safe = "".join(
        f"\\{char}" if char in '"\\' else char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in shown
    )
    return f'"{safe}"'


def show_path(path: Path) -> str:
    """`agents.lead.grant.tools[0]`; a part that is no bare key is quoted."""
    shown = ""
    for part in path:
        if isinstance(part, int):
            shown += f"[{part}]"
        else:
            shown += ("." if shown else "") + (part if _BARE.fullmatch(part) else quoted(part))
    return shown


def nearest(word: str, known: Iterable[str]) -> str:
    """`Did you mean "tools"?`, or "" when nothing is near."""
    if len(word) > _SHOWN:
        return ""
    names = {name.casefold(): name for name in known}
    # Of a word of two or three letters, half is all that can be near.
    found = difflib.get_close_matches(word.strip().casefold(), names, n=1, cutoff=0.6 if len(word) > 3 else 0.5)
    return f"Did you mean {quoted(names[found[0]])}?" if found else ""


def listed(words: Iterable[str]) -> str:
    """`"mains", "instance", "project"`."""
    return ", ".join(quoted(word) for word in words)
