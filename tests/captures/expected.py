"""The captures, and what must be booked of each."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from supervisor.ctl import recorded
from supervisor.kinds.recorded import Recorded
from supervisor.kinds.table import KINDS

HERE = Path(__file__).parent
EXPECTED: dict[str, dict[str, Any]] = json.loads((HERE / "EXPECTED.json").read_text())
#: Every capture of a kind that there is.
CASES = [name for name in EXPECTED if name.partition("/")[0] in KINDS]
NUMBERS = ("input", "cache_read", "cache_write", "output", "reasoning")
#: Who tells how much of the output was reasoning.
REASONS = {"pi", "codex", "opencode", "gemini"}


def data(name: str) -> bytes:
    """The capture as it was printed."""
    return (HERE / f"{name}.jsonl").read_bytes()


def call(kind: str, number: int) -> dict[str, int]:
    """The bill of one call."""
    return {
        "input": 1000 + 100 * number,
        "cache_read": 200 + 10 * number,
        "cache_write": 30 + number if kind == "claude" else 0,
        "output": 40 + number,
        "reasoning": 7 if kind in REASONS else 0,
    }


def bill(name: str, count: int | None = None) -> dict[str, int]:
    """What a capture's first calls come to."""
    kind, told = name.partition("/")[0], EXPECTED[name]
    calls = [call(kind, number) for number in told["calls"][:count]]
    return {number: sum(each[number] for each in calls) for number in NUMBERS}


def books(name: str, printed: bytes) -> Recorded:
    """What is booked of these bytes, in the place of that capture."""
    kind = KINDS[name.partition("/")[0]]
    before = [data(f"{kind.name}/{earlier}") for earlier in EXPECTED[name].get("after", ())]
    return recorded.booked(
        kind, [recorded.read(kind, io.BytesIO(printed))], [recorded.read(kind, io.BytesIO(each)) for each in before]
    )


def shown(books: Recorded) -> dict[str, Any]:
    """What is booked, without words."""
    plain = books.plain()
    return {key: plain[key] for key in (*NUMBERS, "calls", "turns", "cost", "session", "interrupted", "incomplete")} | {
        "unsaid": plain["incomplete_calls"],
        "errors": [error["sort"] for error in plain["errors"]],
    }


def check(name: str, got: dict[str, Any]) -> list[str]:
    """All in which the books are not what they must be."""
    told = EXPECTED[name]
    want: dict[str, Any] = bill(name) | told.get("booked", {})
    if "output" in told:
        want["output"] = told["output"]
    if "output_at_most" in told:
        want["output"] = min(got["output"], told["output_at_most"])
    if told.get("calls_said", True):
        want["calls"] = len(told["calls"])
    want |= {flag: told.get(flag, False) for flag in ("interrupted", "incomplete") if told.get(flag, False) is not None}
    if "turns" in told:
        want["turns"] = told["turns"]
    want |= {key: told[key] for key in ("cost", "unsaid") if key in told}
    wrong = [f"{key}: {got[key]} is not {value}" for key, value in want.items() if got[key] != value]
    errors = told.get("errors", [])
    if errors is not None and not _same(got["errors"], errors):
        wrong.append(f"errors: {got['errors']} is not {errors}")
    return wrong


def _same(got: list[str], wanted: list[str]) -> bool:
    return len(got) == len(wanted) and all(sort in want.split("|") for sort, want in zip(got, wanted, strict=True))
