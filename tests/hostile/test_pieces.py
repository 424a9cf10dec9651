"""The small parts that stand between a flood and the rest, by themselves: each is exact, whatever it is fed."""

from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from supervisor.core.ledger import Meter, Report, Usage, joined
from supervisor.core.likeness import shape
from supervisor.core.weight import ESCAPES, LIGHT, heavy
from supervisor.runtime.sieve import Sieve

MARK, LIMIT = b"M", 40
LINES = st.lists(
    st.sampled_from([b"", b"plain", b"Mark", b"x M y", b"  ", b"M" * 10, b"p" * 60, b"M" * 60]), max_size=12
)
USAGE = st.builds(Usage, input=st.integers(0, 9), output=st.integers(0, 9), calls=st.integers(0, 2))
REPORTS = st.builds(
    Report, st.sampled_from(["call", "turn", "total"]), USAGE, st.sampled_from(["", "a", "b"]),
    st.sampled_from(["", "e"]), st.sampled_from(["", "m"]), st.sampled_from([None, 1.0, 2.0]),
)  # fmt: skip


def sifted(data: bytes, cuts: list[int], mark: bytes) -> list[bytes]:
    """What passes of the data, cut there; a line that is too long as b"!"."""
    sieve, found = Sieve(mark, LIMIT), []
    edges = sorted({len(data), *range(0, len(data), LIMIT), *(cut % (len(data) + 1) for cut in cuts)})
    for begin, end in pairwise(edges):
        found += [*sieve.feed(data[begin:end])]
    found += [*sieve.rest()]
    return [one if isinstance(one, bytes) else b"!" for one in found if isinstance(one, bytes) or one.head]


@given(LINES, st.lists(st.integers(0, 500)))
def test_every_marked_line_passes_once_in_order_however_the_bytes_were_cut(lines: list[bytes], cuts: list[int]) -> None:
    data = b"\n".join(lines)
    marked = [line if len(line) <= LIMIT else b"!" for line in lines if MARK in line]
    passed = [line for line in sifted(data, cuts, MARK) if MARK in line or line == b"!"]
    # A plain line that is too long is told of too.
    long_plain = sum(len(line) > LIMIT and MARK not in line for line in lines)
    assert [line for line in passed if line != b"!"] == [line for line in marked if line != b"!"]
    assert passed.count(b"!") == marked.count(b"!") + long_plain


@given(LINES, st.lists(st.integers(0, 500)))
def test_without_a_mark_every_line_passes(lines: list[bytes], cuts: list[int]) -> None:
    data = b"\n".join(line for line in lines if len(line) <= LIMIT)
    assert sifted(data, cuts, b"") == [line for line in data.split(b"\n") if line]


def test_of_plain_output_the_last_line_is_seen_in_its_place() -> None:
    assert sifted(b"one\ntwo\n\nM first\nthree\nM second\n\n", [], MARK) == [b"M first", b"three", b"M second"]
    assert sifted(b"one\nM\ntwo\n  \n", [], MARK) == [b"M", b"two"]


@given(REPORTS, REPORTS, st.lists(REPORTS, max_size=4))
def test_two_reports_that_are_joined_book_as_both_would(one: Report, two: Report, before: list[Report]) -> None:
    both = joined(one, two)
    if both is None:
        return
    apart, together = Meter(), Meter()
    for report in before:
        apart.book(report)
        together.book(report)
    assert apart.book(one) + apart.book(two) == together.book(both)
    assert apart == together
    assert both.context == (one.context if two.context is None else two.context)


def test_a_line_is_heavy_by_what_it_holds_and_not_by_what_stands_in_its_texts() -> None:
    text = json.dumps({"text": '[{,"\\ ' * 20_000}).encode()
    assert len(text) > LIGHT
    assert not heavy(text, 100)
    assert not heavy(json.dumps({"a": ["x" * 30_000] * 99}).encode(), 1000)
    singles: list[object] = [1, [], {}, "", "a\\", None, 0.5]
    for one in singles:
        assert heavy(json.dumps([one] * 20_000).encode(), 10_000)
    assert heavy(json.dumps({str(number): number for number in range(20_000)}).encode(), 10_000)
    assert heavy(b'{"fleet":"' + b"\\n" * (ESCAPES + 1) + b'"' + b"," * 200, 100)
    assert not heavy(b"[" + b"1," * 5000 + b"1]", 100), "a short line is quick whatever it holds"


@given(st.text(max_size=20))
def test_a_likeness_is_like_itself(name: str) -> None:
    assert shape(shape(name)) == shape(name)
