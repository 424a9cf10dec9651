"""The language of the scripted agent: one step a line. Pure; must import nothing, for a quick start."""

from __future__ import annotations

#: Steps that may hold a body: their line ends in a colon, and the body in a line `end`.
BODIES = ("repeat", "fork", "instruct")
_COUNTS = {"k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class ScriptError(Exception):
    """A script that cannot be played, or a step of it that failed; the turn ends with this error."""


class Step:
    """One line: its first word, what follows, and the lines of its body (None without one)."""

    __slots__ = ("body", "rest", "word")

    def __init__(self, word: str, rest: str, body: list[str] | None) -> None:
        self.word, self.rest, self.body = word, rest, body


def find(text: str) -> str | None:
    """The script inside a text: what follows a line `script:`, up to the text's end or a line `end script`.

    A script may so stand within other words, such as an introduction before it."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.strip() == "script:":
            rest = lines[number + 1 :]
            ends = [at for at, later in enumerate(rest) if later.strip() == "end script"]
            return "\n".join(rest[: ends[0]] if ends else rest)
    return None


def sections(text: str) -> tuple[str, str]:
    """An agent's instructions as (steps of its start, steps of a task that brings none)."""
    found: dict[str, list[str]] = {"start": [], "task": []}
    current = found["task"]
    for line in text.splitlines():
        name = line.strip().removesuffix(":")
        if line.strip().endswith(":") and name in found:
            current = found[name]
        else:
            current.append(line)
    return "\n".join(found["start"]), "\n".join(found["task"])


def parse(text: str) -> list[Step]:
    """All steps; a body is parsed when it is played."""
    steps: list[Step] = []
    lines = iter(text.splitlines())
    for line in lines:
        word, _, rest = line.strip().partition(" ")
        if not word or word.startswith("#"):
            continue
        rest, body = rest.strip(), None
        if word in BODIES and rest.endswith(":"):
            rest, body = rest[:-1].strip(), _body(lines)
        steps.append(Step(word, rest, body))
    return steps


def _body(lines: object) -> list[str]:
    body: list[str] = []
    open_bodies = 1
    for line in lines:  # type: ignore[attr-defined]  # an iterator; its name would cost an import
        word, _, rest = line.strip().partition(" ")
        open_bodies += word in BODIES and rest.endswith(":")
        open_bodies -= line.strip() == "end"
        if not open_bodies:
            return body
        body.append(line)
    raise ScriptError("a body has no `end`")


def count(text: str) -> int:
    """`300k` → 300000."""
    number, factor = (text[:-1], _COUNTS[text[-1]]) if text[-1:] in _COUNTS else (text, 1)
    try:
        return int(float(number) * factor)
    except ValueError:
        raise ScriptError(f"{text!r} is no count") from None


def seconds(text: str) -> float:
    """`500ms` → 0.5."""
    for unit, factor in _SECONDS.items():
        number = text.removesuffix(unit)
        if number != text and number.replace(".", "", 1).isdigit():
            return float(number) * factor
    raise ScriptError(f"{text!r} is no duration: write a number with its unit, such as 500ms, 2s or 1m")


def value(text: str) -> object:
    """What a number of `spend` is said as. It may be anything: a lie is a script's good right."""
    if text in {"true", "false", "null"}:
        return {"true": True, "false": False, "null": None}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip('"')
