"""Times out of texts: what providers write, both sides of every midnight and clock change, and nothing out of noise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.kinds.until import FURTHEST, JUST_NOW, LONGEST, until

BERLIN, LONDON, KOLKATA = ZoneInfo("Europe/Berlin"), ZoneInfo("Europe/London"), ZoneInfo("Asia/Kolkata")
NEW_YORK = ZoneInfo("America/New_York")
#: A Monday, 13:00 in Berlin, 12:00 in UTC.
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()


def at(year: int, month: int, day: int, hour: int, minute: int = 0, zone: tzinfo = BERLIN, fold: int = 0) -> float:
    return datetime(year, month, day, hour, minute, tzinfo=zone, fold=fold).timestamp()


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("limit until 15:00", at(2026, 11, 30, 15)),
        ("limit until 12:30", at(2026, 12, 1, 12, 30)),
        ("You've hit your limit · resets 3pm (Europe/Berlin)", at(2026, 11, 30, 15)),
        ("You've hit your limit · resets 3pm (America/New_York)", at(2026, 11, 30, 15, zone=NEW_YORK)),
        ("5-hour limit reached ∙ resets 3am", at(2026, 12, 1, 3)),
        ("resets at Dec 1, 9am", at(2026, 12, 1, 9)),
        ("Your weekly limit · resets Dec 1, 9am (UTC)", at(2026, 12, 1, 9, zone=UTC)),
        ("resets Dec 4", at(2026, 12, 4, 0)),
        ("resets 4 December at 10:30", at(2026, 12, 4, 10, 30)),
        ("try again at Dec 1st, 2026 9:00 AM", at(2026, 12, 1, 9)),
        ("try again at 3:05 PM.", at(2026, 11, 30, 15, 5)),
        ("until tomorrow at 9am", at(2026, 12, 1, 9)),
        ("resets Thursday at 5pm", at(2026, 12, 3, 17)),
        ("resets Mon 9am", at(2026, 12, 7, 9)),
        ("resets 12am", at(2026, 12, 1, 0)),
        ("resets 12pm", at(2026, 12, 1, 12)),
        ("until noon", at(2026, 12, 1, 12)),
        ("until midnight", at(2026, 12, 1, 0)),
        ("until 24:00", at(2026, 12, 1, 0)),
        ("until 15:00 UTC", at(2026, 11, 30, 15, zone=UTC)),
        ("until 15:00 GMT+2", at(2026, 11, 30, 14)),
        ("until 15:00 PST", at(2026, 12, 1, 0)),
        ("resets 12am PT", at(2026, 12, 1, 0, zone=ZoneInfo("America/Los_Angeles"))),
        ("Please try again in 20s", NOW + 20),
        ("Please try again in 1.5s.", NOW + 1.5),
        ("in 2 hours 5 minutes", NOW + 7500),
        ("come back in 2 hours, 5 minutes and 10 seconds", NOW + 7510),
        ("Try again in 1 day 3 hours", NOW + 27 * 3600),
        ("Your quota will reset after 1h2m3s.", NOW + 3723),
        ("x-ratelimit-reset-tokens: 6m0s", NOW + 360),
        ("retry after 37", NOW + 37),
        ("Retry-After: 37", NOW + 37),
        ("please wait 30 seconds", NOW + 30),
        ('{"retry_after_ms":500}', NOW + 0.5),
        ('{"details":[{"retryDelay":"34.5s"}]}', NOW + 34.5),
        ('{"error":{"type":"usage_limit_reached","resets_in_seconds":3600}}', NOW + 3600),
        ('{"resets_at":%d}' % (NOW + 60), NOW + 60),  # noqa: UP031  # full of braces
        ('{"resetsAt":%d}' % ((NOW + 60) * 1000), NOW + 60),  # noqa: UP031
        (f"Claude AI usage limit reached|{NOW + 3600:.0f}", NOW + 3600),
        (f"{NOW + 3600:.0f}", NOW + 3600),
        ("2026-12-01T09:00:00Z", at(2026, 12, 1, 9, zone=UTC)),
        ("2026-12-01T09:00:00.123+02:00", at(2026, 12, 1, 8)),
        ("until 2026-12-01 09:00", at(2026, 12, 1, 9)),
        ("until 2026-12-01", at(2026, 12, 1, 0)),
        ("Retry-After: Wed, 02 Dec 2026 07:28:00 GMT", at(2026, 12, 2, 7, 28, zone=UTC)),
        ('{"timestamp":"2026-11-30T12:00:00Z","message":"limit, resets 3pm"}', at(2026, 11, 30, 15)),
    ],
)  # fmt: skip
def test_what_providers_write_is_read(text: str, then: float) -> None:
    assert until(text, NOW, BERLIN) == then
    assert until(f"Error: 429 {text}" if ":" in text[3:] and text[0] not in "{2" else text, NOW, BERLIN) == then


@pytest.mark.parametrize(
    "text",
    [
        "",
        "429 Too Many Requests",
        "exceeded retry limit, last status: 429 Too Many Requests",
        "Limit reached: 20 requests per minute",
        "limit reached 5 hours ago",
        "resets 25:00",
        "resets 13pm",
        "until 15:61",
        "until 2026-13-40",
        "resets Feb 30, 9am",
        "resets 3pm (Mars/Base)",
        "resets 3pm (Etc/passwd)",
        "resets at 99999999999999999999",
        "resets Mar 9 at 10am",
        "again in 9 days",
        "until 1999-01-01T00:00:00Z",
        "in 999999999999 weeks",
        "37",
        "retry 3 of 10",
        "until later",
        "resets \u0663pm",
    ],
)
def test_what_names_no_time_that_may_be_comes_to_none(text: str) -> None:
    assert until(text, NOW, BERLIN) is None


def test_a_time_that_has_just_passed_is_that_one() -> None:
    now = at(2026, 11, 30, 15, 1)
    assert until("resets 3pm", now, BERLIN) == at(2026, 11, 30, 15)
    assert until("resets 3pm", now + JUST_NOW, BERLIN) == at(2026, 12, 1, 15)


def test_the_year_is_the_one_that_comes() -> None:
    assert until("resets Jan 2, 9am", at(2026, 12, 30, 9), BERLIN) == at(2027, 1, 2, 9)
    assert until("resets Feb 29, 9am", at(2028, 2, 25, 9), BERLIN) == at(2028, 2, 29, 9)


def test_a_clock_that_is_set_forward_shows_a_skipped_time_as_much_later() -> None:
    now = at(2027, 3, 28, 1)
    assert until("until 2:30", now, BERLIN) == at(2027, 3, 28, 3, 30)


def test_a_clock_that_is_set_back_shows_a_time_twice_and_the_next_one_counts() -> None:
    before, between = at(2026, 10, 25, 1), at(2026, 10, 25, 2, 45)
    assert until("until 2:30", before, BERLIN) == at(2026, 10, 25, 2, 30)
    assert until("until 2:30", between, BERLIN) == at(2026, 10, 25, 2, 30, fold=1)
    assert until("until 2:30", at(2026, 10, 25, 3), BERLIN) == at(2026, 10, 26, 2, 30)


TIMES = st.integers(1_700_000_000, 2_000_000_000)
ZONES = st.sampled_from([UTC, BERLIN, LONDON, KOLKATA, NEW_YORK, ZoneInfo("Australia/Lord_Howe")])


@given(now=TIMES, zone=ZONES, hour=st.integers(0, 23), minute=st.integers(0, 59))
def test_a_time_of_day_is_the_next_such_time(now: int, zone: tzinfo, hour: int, minute: int) -> None:
    found = until(f"limit until {hour}:{minute:02}", now, zone)
    assert found is not None
    assert -JUST_NOW <= found - now <= 86400 + 3600
    shown = datetime.fromtimestamp(found, zone)
    skipped = datetime.fromtimestamp(found - 7200, zone).utcoffset() != shown.utcoffset()
    assert (shown.hour, shown.minute) == (hour, minute) or skipped


@given(now=TIMES, zone=ZONES, hour=st.integers(1, 12), half=st.sampled_from(["am", "pm", " AM", " p.m."]))
def test_half_days_are_read_as_whole_ones(now: int, zone: tzinfo, hour: int, half: str) -> None:
    whole = hour % 12 + 12 * ("p" in half)
    assert until(f"resets {hour}{half}", now, zone) == until(f"resets {whole}:00", now, zone)


@given(now=TIMES, zone=ZONES, ahead=st.integers(0, int(FURTHEST)))
def test_absolute_times_come_back_as_they_were_written(now: int, zone: tzinfo, ahead: int) -> None:
    then = now + ahead
    shown = datetime.fromtimestamp(then, zone)
    assert until(f"resets at {shown.isoformat()}", now, UTC) == then
    assert until(f"limit reached|{then}", now, zone) == then
    assert until(f"reset: {then * 1000}", now, zone) == then
    assert until(f"try again in {ahead}s", now, zone) == then
    assert until(f"try again in {ahead // 3600}h {ahead % 3600 // 60}m {ahead % 60}s", now, zone) == then


@given(now=TIMES, zone=ZONES, ahead=st.integers(3600, 7 * 86400))
def test_dates_without_a_year_come_back(now: int, zone: tzinfo, ahead: int) -> None:
    shown = datetime.fromtimestamp(now + ahead, zone)
    shown = shown.replace(second=0, microsecond=0) + timedelta(0)
    found = until(f"resets {shown:%b} {shown.day}, {shown.hour}:{shown:%M}", now, zone)
    assert found is not None
    assert datetime.fromtimestamp(found, zone).strftime("%m-%d %H:%M") == f"{shown:%m-%d %H:%M}"


@given(text=st.text(max_size=300), now=st.floats(allow_nan=True, allow_infinity=True), zone=ZONES)
def test_any_text_at_any_time_is_read_without_fail(text: str, now: float, zone: tzinfo) -> None:
    found = until(text, now, zone)
    assert found is None or -JUST_NOW <= found - now <= FURTHEST


WORDS = (
    "until", "resets", "at", "in", "again", "3pm", "15:00", "Dec", "1", "2h", "30m", "(", "Europe/Berlin", ")", "Mon",
    ",", "2026-12-01", "T", "Z", "+02:00", "1796043600", "|", "noon", "ago", "99", "ms", "after",
)  # fmt: skip


@given(words=st.lists(st.sampled_from(WORDS), max_size=12))
def test_words_of_times_in_any_order_come_to_a_time_that_may_be_or_to_none(words: list[str]) -> None:
    found = until(" ".join(words), NOW, BERLIN)
    assert found is None or -JUST_NOW <= found - NOW <= FURTHEST


def test_what_stands_far_behind_is_not_looked_for() -> None:
    assert until(" " * LONGEST + "until 15:00", NOW, BERLIN) is None
