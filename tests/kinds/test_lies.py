"""Numbers that cannot be true, in the lines of every kind: nothing is booked of them, nobody fails, and what comes out
can be stored."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from supervisor.core.facts import Fact, Limited, Spent
from supervisor.core.ledger import NUMBERS, ZERO
from supervisor.kinds.fields import EXACT
from supervisor.kinds.recorded import Recorded, seat
from supervisor.kinds.table import KINDS
from supervisor.runtime.journal import codec
from tests.captures.expected import data

#: What a program may write for a number.
LIES = ["-1", "NaN", "Infinity", "-Infinity", "1e308", "1e999", "1" + "0" * 400, str(2**53), '"5"', "true", "[]", "{}"]
LINES = b"""\
{"fleet":"ready","session":"s","model":"m","turns":true}
{"fleet":"turn","state":"started"}
{"fleet":"usage","scope":"call","id":"c1","input":1200,"output":80,"cost":0.0125,"context":41.5,"context_window":2000}
{"fleet":"usage","scope":"total","input":1500,"output":90,"reasoning":5,"context_tokens":900}
{"fleet":"limited","sort":"rate","until":1796130000,"text":"slow"}
{"fleet":"turn","state":"ended"}
"""
CAPTURES = {
    "lines": ["lines"],
    "scripted": ["lines"],
    "claude": ["claude/p_tool", "claude/stream_session"],
    "codex": ["codex/appserver_session", "codex/exec_tool"],
    "gemini": ["gemini/p_tool", "gemini/acp_session"],
    "opencode": ["opencode/run_tool", "opencode/acp_session"],
    "pi": ["pi/rpc_session", "pi/json_tool"],
    "qwen": ["qwen/p_tool", "qwen/stream_session"],
}
CASES = [(kind, name) for kind, names in CAPTURES.items() for name in names]


def printed(name: str) -> list[bytes]:
    return (LINES if name == "lines" else data(name)).splitlines()


def lied(value: Any, lie: str, which: Callable[[], bool]) -> Any:
    """The value with a mark in place of the numbers that are chosen."""
    if isinstance(value, dict):
        return {key: lied(each, lie, which) for key, each in value.items()}
    if isinstance(value, list):
        return [lied(each, lie, which) for each in value]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "\0lie" if number and which() else value


def written(value: Any, lie: str) -> bytes:
    return json.dumps(value, separators=(",", ":")).replace('"\\u0000lie"', lie).encode()


def reached(left: Iterator[int], chosen: int) -> bool:
    """Whether this is the one."""
    return next(left, None) == chosen


def one_each(line: bytes, lie: str) -> Iterator[bytes]:
    """The line with one number replaced, for each of the first that it has."""
    try:
        said = json.loads(line)
    except ValueError:
        return
    for chosen in range(24):
        left = iter(range(chosen + 1))
        told = lied(said, lie, partial(reached, left, chosen))
        if next(left, None) is not None:
            return
        yield written(told, lie)


def check(facts: list[Fact]) -> None:
    for fact in facts:
        json.dumps(codec.dump(fact), allow_nan=False)
        if isinstance(fact, Limited):
            assert fact.until is None or 0 <= fact.until <= EXACT
        for report in fact.reports if isinstance(fact, Spent) else ():
            assert all(type(number) is int and 0 <= number <= EXACT for number in NUMBERS(report.usage)), report
            assert report.window is None or 0 < report.window < EXACT
            assert report.held is None or -1 <= report.held <= 4 * EXACT
            assert report.context is None or (math.isfinite(report.context) and 0 <= report.context <= 100)


def test_every_kind_is_lied_to() -> None:
    assert CAPTURES.keys() == KINDS.keys()


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie[:12])
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_number_that_cannot_be_true_fails_nobody_and_comes_to_nothing_that_cannot_be(
    kind: str, name: str, lie: str
) -> None:
    reader = KINDS[kind].recorded(seat(kind))
    for line in printed(name):
        for told in one_each(line, lie):
            check(reader.read(told))
        check(reader.read(line))
    check(reader.ended())


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie[:12])
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_nothing_is_booked_of_lines_whose_numbers_all_lie(kind: str, name: str, lie: str) -> None:
    reader, books = KINDS[kind].recorded(seat(kind)), Recorded()
    for line in printed(name):
        try:
            told = written(lied(json.loads(line), lie, lambda: True), lie)
        except ValueError:
            continue
        facts = reader.read(told)
        check(facts)
        books.take(facts)
    books.take(reader.ended())
    assert (books.spent.tokens, books.spent.cost, books.spent.reasoning) == (0, 0, 0), books.spent
    assert books.spent == ZERO or books.spent.calls + books.spent.incomplete > 0
