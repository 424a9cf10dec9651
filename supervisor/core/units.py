"""Numbers with units, both ways: counts (`300k`, `2M`), durations (`10s`, `1h30m`), sums (`0.25`, USD). Stdlib only."""

from __future__ import annotations

import re

# Compiled where used, and Decimal imported there: the client pays for neither while it only shows numbers.
_COUNT = r"([0-9]+(?:\.[0-9]+)?)([kMGTP]?)"
_DURATION = r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m(?!s))?(?:([0-9]+(?:\.[0-9]+)?)s)?(?:([0-9]+)ms)?"
_MONEY = r"\$?([0-9]+(?:\.[0-9]{1,9})?)(?: ?USD)?"
_FACTOR = {"": 1, "k": 1_000, "M": 1_000_000, "G": 10**9, "T": 10**12, "P": 10**15}
_NANO = 1_000_000_000
#: No count, duration or sum in this project is larger; a larger one is a slip of the pen.
LARGEST = 10**15


def count(text: str) -> int:
    """`300k` → 300000. Raises ValueError with what is accepted."""
    found = re.fullmatch(_COUNT, text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no count: write a whole number, or one with k, M or G, such as 300k or 1.5M")
    from decimal import Decimal

    value = Decimal(found[1]) * _FACTOR[found[2]]
    if value != int(value):
        raise ValueError(f"{text!r} is no whole number")
    if value > LARGEST:
        raise ValueError(f"{text!r} is larger than {LARGEST}")
    return int(value)


def duration(text: str) -> float:
    """`1h30m` → 5400.0 seconds. Raises ValueError with what is accepted."""
    found = re.fullmatch(_DURATION, text.strip())
    if found is None or not any(part is not None for part in found.groups()):
        raise ValueError(f"{text!r} is no duration: write a number with its unit, such as 10s, 500ms, 5m or 1h30m")
    days, hours, minutes, seconds, milli = (float(part or 0) for part in found.groups())
    value = days * 86400 + hours * 3600 + minutes * 60 + seconds + milli / 1000
    if value > LARGEST:
        raise ValueError(f"{text!r} is longer than {LARGEST} seconds")
    return value


def money(text: str) -> int:
    """`0.25`, `$0.25` or `0.25 USD` → 250000000 nano-USD. Raises ValueError with what is accepted."""
    found = re.fullmatch(_MONEY, text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no sum: write US dollars, such as 2.50")
    from decimal import Decimal

    value = int(Decimal(found[1]) * _NANO)
    if value > LARGEST * _NANO:
        raise ValueError(f"{text!r} is larger than {LARGEST} USD")
    return value


def show_count(value: int) -> str:
    """1234567 → `1.2M`; at most five characters below 10^21."""
    if value < 1000:
        return str(value)
    scaled, unit = float(value), ""
    for unit in "kMGTPE":  # noqa: B007  the one at which it ends
        scaled /= 1000
        if scaled < 999.5:
            break
    if scaled >= 999.5:
        return f"{value:.1e}"
    return f"{scaled:.1f}".rstrip("0").rstrip(".") + unit if scaled < 100 else f"{scaled:.0f}{unit}"


def show_duration(seconds: float) -> str:
    """5400.0 → `1h30m`; the two largest units."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    left = int(seconds)
    parts: list[str] = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        if left >= size:
            parts.append(f"{left // size}{unit}")
            left %= size
    return "".join(parts[:2]) or "0s"


def show_money(nano: int) -> str:
    """250000000 → `$0.25`; small sums keep four digits, and one of millions is shown as a count is."""
    if nano >= 1_000_000 * _NANO:
        return f"${show_count(nano // _NANO)}"
    digits = 2 if nano >= _NANO or nano == 0 else 4
    unit = 10**digits
    whole, part = divmod((nano * unit + _NANO // 2) // _NANO, unit)
    return f"${whole}.{part:0{digits}d}"
