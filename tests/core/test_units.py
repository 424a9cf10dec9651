"""Numbers as people write and read them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.core.ledger import NANO
from supervisor.core.units import LARGEST, count, duration, money, show_count, show_duration, show_money


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("7", 7), ("300k", 300_000), ("1.5M", 1_500_000), ("2G", 2 * 10**9), (" 12 ", 12), ("0.001k", 1),
     ("1000000G", LARGEST)],
)  # fmt: skip
def test_counts(text: str, value: int) -> None:
    assert count(text) == value


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10),
        ("500ms", 0.5),
        ("5m", 300),
        ("1h30m", 5400),
        ("2d", 172_800),
        ("1.5s", 1.5),
        ("1m500ms", 60.5),
        ("0s", 0),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "nano"),
    [("2.50", 2_500_000_000), ("$0.25", 250_000_000), ("0.25 USD", 250_000_000), ("3", 3 * NANO), ("0.000000001", 1)],
)
def test_sums(text: str, nano: int) -> None:
    assert money(text) == nano


@pytest.mark.parametrize(
    ("read", "text"),
    [
        *(
            (count, text)
            for text in ("", "-1", "1.5", "1K", "1e9", "0x1", "1_000", "k", "1 000", "\u0663", "1000001G", "9" * 400)
        ),
        *(
            (duration, text)
            for text in ("", "10", "5 s", "-5s", "1s2m", "1h1h", "s", "infs", "nan", "99999999999999999999d")
        ),
        *((money, text) for text in ("", "-1", "1,5", "1.", "\u20ac3", "1.0000000001", "1" * 20, "1 EUR")),
    ],
)
def test_what_is_none_is_said_with_what_would_be_one(read: Callable[[str], float], text: str) -> None:
    with pytest.raises(ValueError, match=r"write|larger|longer|whole"):
        read(text)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (999, "999"), (1000, "1k"), (1234, "1.2k"), (99_949, "99.9k"), (123_456, "123k"), (1_500_000, "1.5M"),
     (20_000_000, "20M"), (3 * 10**9, "3G"), (999_499, "999k"), (999_999, "1M"), (18_014_399 * 10**9, "18P"),
     (2**64, "18.4E"), (10**22, "1.0e+22")],
)  # fmt: skip
def test_counts_are_shown_short(value: int, shown: str) -> None:
    assert show_count(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (0.25, "250ms"),
        (59.9, "59s"),
        (60, "1m"),
        (3661, "1h1m"),
        (5400, "1h30m"),
        (90_061, "1d1h"),
        (86_400, "1d"),
    ],
)
def test_durations_are_shown_by_their_two_largest_units(seconds: float, shown: str) -> None:
    assert show_duration(seconds) == shown


@pytest.mark.parametrize(
    ("nano", "shown"),
    [(0, "$0.00"), (250_000_000, "$0.2500"), (2_500_000_000, "$2.50"), (1_999_999_999, "$2.00"), (12_345, "$0.0000"),
     (60_000, "$0.0001"), (18_014_398_509 * NANO, "$18G")],
)  # fmt: skip
def test_sums_are_shown_in_dollars(nano: int, shown: str) -> None:
    assert show_money(nano) == shown


@given(st.integers(0, LARGEST))
def test_a_count_that_was_shown_reads_as_about_the_same(value: int) -> None:
    assert abs(count(show_count(value)) - value) <= value // 15


@given(st.integers(0, LARGEST))
def test_a_count_that_was_written_out_reads_as_itself(value: int) -> None:
    assert count(str(value)) == value
    assert len(show_count(min(value, 10**9 - 1))) <= 5
