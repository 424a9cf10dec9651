"""The exact types of an agents.toml: what each single value may be, as cattrs hooks that convert nothing silently.
A wrong value is a `WrongValueError` in words; where it stands is not known here."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final, NewType, TypeVar

import cattrs

from supervisor.config.problems import WrongValueError, listed, nearest, quoted
from supervisor.core import names, units
from supervisor.core.ledger import NANO

Count = NewType("Count", int)
Duration = NewType("Duration", float)
#: A duration, or `"never"`, which is 0.
Patience = NewType("Patience", float)
Money = NewType("Money", int)
#: Tasks before release; 0 is `"unlimited"`.
Tasks = NewType("Tasks", int)
Model = NewType("Model", str)
Variable = NewType("Variable", str)
#: Text that says something.
Filled = NewType("Filled", str)

Number = TypeVar("Number", int, float)

UNLIMITED: Final = "unlimited"
NEVER: Final = "never"
TASKS: Final = 32
DEEPEST: Final = 64
_A_COUNT: Final = 'Write a whole number, or one with k, M or G in quotes, such as "300k"'
_A_SUM: Final = 'Write US dollars as a number, such as 2.50, or as "2.50 USD"'
#: No number with its unit is longer.
LONGEST: Final = 40
#: The daemon names an agent to itself by this variable.
OWN_VARIABLE: Final = "FLEET_AGENT"
#: Memory is counted as the kernel and systemd do, by 1024.
_MEMORY: Final = {"T": 1 << 40, "G": 1 << 30, "M": 1 << 20, "K": 1 << 10}
_LEAST: Final = 1 << 20


def called(value: object) -> str:
    """A TOML value as a message shows it, with its type."""
    if isinstance(value, bool):
        return f"{str(value).lower()} is a boolean"
    if isinstance(value, str):
        return f"{quoted(value)} is text"
    if isinstance(value, int | float):
        huge = math.isfinite(value) and abs(value) > units.LARGEST
        return "this is a huge number" if huge else f"{value} is a number"
    if isinstance(value, list):
        return "this is a list"
    if isinstance(value, dict):
        return "this is a table"
    if isinstance(value, date | datetime | time):
        return f"{value} is a date"
    return "this is something else"


def text(value: object, _: object = str) -> str:
    if not isinstance(value, str):
        plain = isinstance(value, bool | int | float) and abs(value) < units.LARGEST
        remedy = f'Write "{str(value).lower()}" if text is meant' if plain else ""
        raise WrongValueError(f"{called(value)}, not text", remedy)
    if "\0" in value:
        raise WrongValueError(f"{quoted(value)} holds a NUL character")
    return value


def flag(value: object, _: object = bool) -> bool:
    if not isinstance(value, bool):
        raise WrongValueError(f"{called(value)}, not true or false", "Write true or false, without quotes")
    return value


def whole(value: object, _: object = int) -> int:
    """A count without a unit."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise WrongValueError(f"{called(value)}, not a whole number", _unquoted(value))
    return _counted(value)


def count(value: object, _: object = Count) -> int:
    """A whole number, or text whose unit says that a number is meant."""
    if isinstance(value, str) and value.strip()[-1:] in {"k", "M", "G"}:
        return _from_text(units.count, value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise WrongValueError(f"{called(value)}, not a count", _unquoted(value) or _A_COUNT)
    return _counted(value)


def duration(value: object, _: object = Duration) -> float:
    """Text with a unit; a bare number could be of any."""
    if isinstance(value, str):
        return _from_text(units.duration, value)
    bare = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < units.LARGEST
    remedy = f'Write its unit, such as "{value}s"' if bare else 'Write text with its unit, such as "10s" or "1h30m"'
    raise WrongValueError(f"{called(value)}, not a duration", remedy)


def patience(value: object, _: object = Patience) -> float:
    """How long to bear with something."""
    if value == NEVER:
        return 0.0
    seconds = duration(value)
    if seconds == 0:
        raise WrongValueError(f"{quoted(str(value))} is no time to wait", f'Not at all is written "{NEVER}"')
    return seconds


def money(value: object, _: object = Money) -> int:
    """USD as TOML's number, or as text that names its currency."""
    if isinstance(value, str) and (value.strip().startswith("$") or value.strip().endswith("USD")):
        return _from_text(units.money, value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise WrongValueError(f"{called(value)}, not a sum", _A_SUM)
    if not 0 <= value <= units.LARGEST:
        raise WrongValueError("the sum is below zero" if value < 0 else f"the sum is above {units.LARGEST} USD")
    return _from_text(units.money, format(abs(Decimal(repr(value))), "f"))


def tasks(value: object, _: object = Tasks) -> int:
    if value == UNLIMITED:
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise WrongValueError(
            f"{called(value)}, not a number of tasks", _unquoted(value) or f'Write 1 to {TASKS}, or "{UNLIMITED}"'
        )
    if not 1 <= value <= TASKS:
        raise WrongValueError(
            f"{_counted_text(value)} is not within 1 to {TASKS}", f'No limit is written "{UNLIMITED}"'
        )
    return value


def memory(value: object, _: object = int) -> int:
    """Bytes, as text with its unit; 0 is `"unlimited"`."""
    if value == UNLIMITED:
        return 0
    found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)([KMGT])", value.strip()) if isinstance(value, str) else None
    if found is None:
        raise WrongValueError(
            f"{called(value)}, not an amount of memory", 'Write it with its unit, such as "512M" or "2G"'
        )
    size = int(Decimal(found[1]) * _MEMORY[found[2]]) // 1024 * 1024
    if not _LEAST <= size <= units.LARGEST:
        raise WrongValueError(f"{quoted(found[0])} is not within 1M to {units.LARGEST} bytes")
    return size


def cpu(value: object, _: object = int) -> int:
    """Percent of one processor; 0 is `"unlimited"`."""
    if value == UNLIMITED:
        return 0
    found = re.fullmatch(r"([0-9]{1,7})%", value.strip()) if isinstance(value, str) else None
    if found is None:
        raise WrongValueError(
            f"{called(value)}, not a share of processors", 'Write percent of one, such as "50%" or "150%"'
        )
    if int(found[1]) == 0:
        raise WrongValueError("0% would let it stand still")
    return int(found[1])


def processes(value: object, _: object = int) -> int:
    """How many; 0 is `"unlimited"`."""
    if value == UNLIMITED:
        return 0
    if count(value) == 0:
        raise WrongValueError("0 processes leave no room for the agent itself", f'No limit is written "{UNLIMITED}"')
    return count(value)


def model(value: object, _: object = Model) -> str:
    name = filled(value)
    if "*" in name[:-1]:
        raise WrongValueError(f"{quoted(name)} has a * before its end", "One * at the end is the only pattern")
    return name


def filled(value: object, _: object = str) -> str:
    """Text that says something."""
    name = text(value)
    if not name.strip():
        raise WrongValueError("this is empty")
    return name


def variable(value: object, _: object = Variable) -> str:
    """The name of an environment variable."""
    name = text(value)
    if not name or "=" in name:
        raise WrongValueError(f"{quoted(name)} can be no environment variable", "Its name is not empty and has no =")
    if name == OWN_VARIABLE:
        raise WrongValueError(f"{OWN_VARIABLE} is set by the supervisor")
    return name


def choice(value: object, words: tuple[str, ...]) -> str:
    """One of a few words, spelt exactly."""
    if isinstance(value, str) and value in words:
        return value
    if not isinstance(value, str):
        raise WrongValueError(f"{called(value)}, not a word", f"It is one of {listed(words)}")
    raise WrongValueError(
        f"{quoted(value)} is not known here", f"{nearest(value, words)} It is one of {listed(words)}".strip()
    )


def texts(value: object, of: Any, converter: cattrs.Converter) -> tuple[Any, ...]:
    """A list of `of`; a single text is no list."""
    if not isinstance(value, list):
        raise WrongValueError(
            f"{called(value)}, not a list", f"Put it into brackets: [{quoted(value)}]" if isinstance(value, str) else ""
        )
    return tuple(converter.structure(value, list[of]))


def label_fault(label: str) -> str:
    """Why this can be no role or kind."""
    if not label.strip() or label != label.strip():
        return "it is empty, or has white space at its ends"
    if len(label) > names.LONGEST:
        return f"it has more than {names.LONGEST} characters"
    if any(unicodedata.category(char)[0] == "C" for char in label):
        return "it has control characters"
    return ""


def show_count(value: int) -> str:
    """A count as short as it is exact: `2M`, `1234567`."""
    short = units.show_count(value)
    return short if units.count(short) == value else str(value)


def show_duration(seconds: float) -> str:
    """A duration as short as it is exact: `1h30m`, `0.25s`."""
    short = units.show_duration(seconds)
    return short if units.duration(short) == seconds else f"{Decimal(repr(seconds)):f}s"


def show_patience(seconds: float) -> str:
    """The same, or `never`."""
    return show_duration(seconds) if seconds else NEVER


def show_money(nano: int) -> str:
    """A sum, exact: `2.50 USD`."""
    whole_part, rest = divmod(nano, NANO)
    digits = f"{rest:09d}".rstrip("0").ljust(2, "0")
    return f"{whole_part}.{digits} USD"


def show_resource(name: str, value: int | None) -> str | int:
    """A limit as it is written: `2G`, `150%`, `500`."""
    if value is None:
        return UNLIMITED
    if name == "memory":
        unit = next(unit for unit, size in _MEMORY.items() if value % size == 0)
        return f"{value // _MEMORY[unit]}{unit}"
    return f"{value}%" if name == "cpu" else value


def _counted(value: int) -> int:
    if value < 0:
        raise WrongValueError(f"{_counted_text(value)} is below zero")
    if value > units.LARGEST:
        raise WrongValueError(f"the number is larger than {units.LARGEST}")
    return value


def _counted_text(value: int) -> str:
    return str(value) if abs(value) <= units.LARGEST else "the number"


def _unquoted(value: object) -> str:
    """The remedy for a number in quotes."""
    number = value.strip() if isinstance(value, str) else ""
    return f"Write {number} without quotes" if number.isascii() and number.isdigit() else ""


def _from_text(read: Callable[[str], Number], value: str) -> Number:
    """A number with its unit, as `core.units` reads it."""
    if len(value) > LONGEST:
        raise WrongValueError(f"{quoted(value)} is too long for a number")
    try:
        return read(value)
    except ValueError as error:
        raise WrongValueError(str(error)) from None
