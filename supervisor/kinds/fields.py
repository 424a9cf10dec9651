"""Takes typed fields out of one decoded line: numbers that can be true, text that can be stored.

It must never guess: a field that is not what it should be raises `LineError`, and nothing is booked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NoReturn, cast

from supervisor.core.ledger import NANO
from supervisor.core.weight import heavy

#: Numbers from this on are no longer exact in every program's JSON.
EXACT = 2**53
#: More values than this stand in no line that an agent CLI prints.
VALUES = 10_000
#: How long an agent's last line for people is.
LAST = 200
#: What the facts keep of a text; an agent's own session has the whole of it.
TEXT = 64 * 1024
#: Escape sequences of a terminal, and the control characters that are no white space.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0e-\x1f\x7f]")


class LineError(ValueError):
    """A line that is one of ours and cannot be taken; its text says why."""


def decode(line: bytes) -> dict[str, object]:
    """One JSON object, strictly: no NaN, no key twice, no other value, and not so much that it holds others up."""
    if heavy(line, VALUES):
        raise LineError(f"more than {VALUES} values")
    try:
        value = json.loads(line, parse_constant=_constant, object_pairs_hook=_unique)
    except LineError:
        raise
    except (ValueError, RecursionError) as error:
        raise LineError(f"no JSON: {type(error).__name__}") from error
    if not isinstance(value, dict):
        raise LineError("no JSON object")
    return value


def _constant(name: str) -> NoReturn:
    raise LineError(f"{name} is no JSON number")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise LineError("a key stands there twice")
    return found


def member(fields: Mapping[str, object], key: str) -> dict[str, object]:
    """An object inside another one."""
    value = fields.get(key)
    if not isinstance(value, dict):
        raise LineError(f"`{key}` is no object")
    return cast("dict[str, object]", value)


def whole(fields: Mapping[str, object], key: str, default: int = 0) -> int:
    """A count: a whole number from 0 to 2^53 - 1. `true` is none, nor is `7.0` or `"7"`."""
    value = fields.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise LineError(f"`{key}` is no whole number")
    if not 0 <= value < EXACT:
        raise LineError(f"`{key}` is out of range")
    return value


def number(fields: Mapping[str, object], key: str, most: float) -> float | None:
    """A number from 0 to `most`, or None where it is not given."""
    value = fields.get(key)
    if value is None and key not in fields:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise LineError(f"`{key}` is no number")
    if not 0 <= value <= most:  # an infinity (1e999) fails here too
        raise LineError(f"`{key}` is out of range")
    return float(value)


def dollars(fields: Mapping[str, object], key: str) -> int:
    """A sum in US dollars as whole nano-dollars; 0 where it is not given."""
    return round((number(fields, key, (EXACT - 1) / NANO) or 0.0) * NANO)


def words(fields: Mapping[str, object], key: str, default: str = "", most: int = TEXT) -> str:
    """A text, cut at `most` characters."""
    value = fields.get(key, default)
    if not isinstance(value, str):
        raise LineError(f"`{key}` is no text")
    return clip(value, most)


def listed(several: object) -> list[dict[str, object]]:
    """The objects of a list; none where it is no list."""
    return [each for each in several if isinstance(each, dict)] if isinstance(several, list) else []


def clip(text: str, most: int = TEXT) -> str:
    """At most so many characters, and none that UTF-8 cannot carry."""
    if len(text) > most:
        text = text[: most - 1] + "…"
    return text.encode("utf-8", "replace").decode("utf-8")


def last_line(output: bytes | str) -> str:
    """What people are shown of some output: its last line with something on it, without colours.

    Of a progress bar that is what stands after its last carriage return."""
    raw = output.encode("utf-8", "replace") if isinstance(output, str) else output
    raw = raw.rstrip()
    start = max(raw.rfind(b"\n"), raw.rfind(b"\r")) + 1
    text = raw[start : start + 4 * LAST + 1024].decode("utf-8", "replace")
    if not text.isprintable():
        text = _ESCAPES.sub("", text)
    text = " ".join(text.split())
    return text if len(text) <= LAST else text[: LAST - 1] + "…"
