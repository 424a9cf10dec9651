"""When a limit ends, by what a program or its provider says of it in words. Pure: the time and the zone of the machine
are passed in. It must never guess: a text that names no time within `FURTHEST` comes to None."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from attrs import frozen

#: No provider's limit lasts longer (seconds): weekly ones end within seven days.
FURTHEST = 8 * 86400.0
#: A time that has just passed (seconds) is that one, not tomorrow's: clocks differ, and lines come late.
JUST_NOW = 120.0
#: So much of a text is looked at (characters).
LONGEST = 4096

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FLAGS = re.IGNORECASE | re.ASCII
#: A time counts only where the text says that something ends with it: lines are full of other times.
_SAYS = re.compile(
    r"(?<![a-z])(?:until|till|re-?sets?|resetting|retry|again|reached|wait|renews?|expires?|available)", _FLAGS
)
#: Only where nothing else says it: a line may have taken some seconds, too.
_IN = re.compile(r"(?<![a-z])in\s{1,3}(?=[0-9])", _FLAGS)
#: What may stand between such a word and its time, in prose and in keys such as `retry_after_ms` or `resetsAt`.
_BETWEEN = re.compile(
    r"(?:at|in|after|on|by|delay|time|date|tokens|requests|about|approximately|around|another|is|be|for"
    r"|milliseconds|millis|ms|seconds|secs|sec|[\s\"'`:=|(,\\_*\u00b7\u2219\u2022~-]){0,24}",
    _FLAGS,
)
_RELATIVE = re.compile(r"in|after|delay|for|sec|ms|milli|another", _FLAGS)
_ISO = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ]\s?([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,][0-9]{1,9})?)?)?", _FLAGS
)
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DAY = r"([0-9]{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s{1,3}([0-9]{4})(?![0-9:]))?"
_MONTH_DAY = re.compile(rf"{_MONTH}\s{{1,3}}{_DAY}(?![0-9:]){_YEAR}", _FLAGS)
_DAY_MONTH = re.compile(rf"{_DAY}\.?\s{{1,3}}{_MONTH}{_YEAR}", _FLAGS)
_WEEKDAY = re.compile(r"(mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}(?![a-z])\.?,?\s{0,3}", _FLAGS)
_NAMED_DAY = re.compile(r"(today|tomorrow)(?![a-z])", _FLAGS)
_THEN = re.compile(r"(?:[,\s]|at(?![a-z])|@){0,6}", _FLAGS)
_TIME = re.compile(
    r"([0-9]{1,2})(?::([0-9]{2})(?::([0-9]{2}))?)?\s{0,2}(?:([ap])\.?m(?![a-z])\.?)?|(noon|midnight)", _FLAGS
)
_ZONE = re.compile(
    r"\s{0,2}\(?\s?(?:([a-z_]{2,30}(?:/[a-z0-9_+-]{2,30}){1,2})|(?:UTC|GMT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?(?![0-9])"
    r"|(UTC|GMT|Z|[A-Z]{2,4}(?<=T))(?![a-z]))",
    _FLAGS,
)
_NUMBER = re.compile(r"[0-9]{1,13}(?:\.[0-9]{1,9})?(?![0-9])")
_PART = re.compile(
    r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s{0,2}"
    r"(ms|milliseconds?|msecs?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)(?![a-z])",
    _FLAGS,
)
_PART_AFTER = re.compile(r"(?:[,\s]|and(?![a-z])){0,5}", _FLAGS)
_AGO = re.compile(r"\s{0,3}ago(?![a-z])", _FLAGS)
_SECONDS = {"ms": 0.001, "mi": 60.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
#: What Americans and Europeans write; whatever else has only letters is no zone.
_HOURS = {"UTC": 0, "GMT": 0, "Z": 0, "PST": -8, "PDT": -7, "MST": -7, "MDT": -6, "CST": -6, "CDT": -5} | {
    "EST": -5, "EDT": -4, "WET": 0, "BST": 1, "WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "IST": 5.5, "JST": 9,
}  # fmt: skip
_PLACES = {"PT": "America/Los_Angeles", "MT": "America/Denver", "CT": "America/Chicago", "ET": "America/New_York"}


@frozen
class _At:
    """Where in which text, and when and where it was read. `relative` says that a bare number is a wait, in units of
    `unit` seconds."""

    text: str
    place: int
    now: datetime
    zone: tzinfo
    relative: bool = True
    unit: float = 1.0

    def match(self, pattern: re.Pattern[str], place: int | None = None) -> re.Match[str] | None:
        """The pattern, here."""
        return pattern.match(self.text, self.place if place is None else place)


def until(text: str, now: float, zone: tzinfo = UTC) -> float | None:
    """The time that the text names for the end of a limit, in Unix seconds: at most `FURTHEST` after `now`, at most
    `JUST_NOW` before it. Times without a zone are of `zone`; without a date, the next such time is meant. None where
    the text names none."""
    try:
        then = _EPOCH + timedelta(seconds=now)
    except (OverflowError, ValueError):
        return None
    for at in _places(text[:LONGEST], then, zone):
        for reads in (_iso, _dated, _near, _of_day, _duration, _number):
            try:
                found = reads(at)
            except (ValueError, OverflowError, OSError, KeyError):  # no such day, hour or zone
                continue
            if found is not None and -JUST_NOW <= found - now <= FURTHEST:
                return found
    return None


def _places(text: str, now: datetime, zone: tzinfo) -> Iterator[_At]:
    """Where a time may stand: after each word that says so; a text that is nothing but a time needs none."""
    bare = text.strip(" \t\r\n\"'().")
    if len(bare) < 64:
        yield _At(bare, 0, now, zone, relative=False)
    for said in _SAYS.finditer(text):
        between = _BETWEEN.match(text, said.end())
        if between is not None:
            key = between.group().lower()
            relative = bool(_RELATIVE.search(key)) or said.group().lower() in ("wait", "retry")
            unit = 0.001 if "ms" in key or "milli" in key else 1.0
            yield _At(text, between.end(), now, zone, relative, unit)
    for said in _IN.finditer(text):
        yield _At(text, said.end(), now, zone, relative=False)


def _iso(at: _At) -> float | None:
    """2026-12-01T09:00:00Z, and without a zone, seconds or time."""
    if (found := at.match(_ISO)) is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups())
    zone = _zone(at, found.end())
    return _seconds(datetime(year, month, day, hour, minute, second, tzinfo=zone))


def _dated(at: _At) -> float | None:
    """Dec 1, 9am; 1 December 2026 09:00; Wed, 21 Oct 2026 07:28:00 GMT."""
    weekday = at.match(_WEEKDAY)
    place = weekday.end() if weekday is not None else at.place
    if (found := at.match(_MONTH_DAY, place)) is not None:
        month, day, year = found.groups()
    elif (found := at.match(_DAY_MONTH, place)) is not None:
        day, month, year = found.groups()
    else:
        return None
    hour, minute, second, zone = _time(at, found.end()) or (0, 0, 0, at.zone)
    now = at.now.astimezone(zone).year
    number = _MONTHS.index(month.lower()) + 1
    years = [int(year)] if year else [now - 1, now, now + 1]
    return _next(at, [_day(each, number, int(day), hour, minute, second, zone) for each in years])


def _near(at: _At) -> float | None:
    """Thursday at 5pm; tomorrow 9am."""
    found = at.match(_WEEKDAY) or at.match(_NAMED_DAY)
    if found is None:
        return None
    hour, minute, second, zone = _time(at, found.end()) or (0, 0, 0, at.zone)
    today, word = at.now.astimezone(zone), found.group(1).lower()
    if word in _WEEKDAYS:
        first = (_WEEKDAYS.index(word) - today.weekday()) % 7
        ahead = [first, first + 7]
    else:
        ahead = [int(word == "tomorrow")]
    return _next(at, [_on(today + timedelta(days=more), hour, minute, second) for more in ahead])


def _of_day(at: _At) -> float | None:
    """15:00; 3pm (Europe/Berlin): the next such time."""
    if (found := _time(at, at.place)) is None:
        return None
    hour, minute, seconds, zone = found
    today = at.now.astimezone(zone)
    return _next(at, [_on(today + timedelta(days=more), hour, minute, seconds) for more in (-1, 0, 1)])


def _duration(at: _At) -> float | None:
    """20s; 2 hours 5 minutes; 1h30m."""
    place, sum_of = at.place, 0.0
    while (part := at.match(_PART, place)) is not None:
        unit = part.group(2).lower()
        sum_of += float(part.group(1)) * (_SECONDS["ms"] if unit[:2] == "ms" or "milli" in unit else _SECONDS[unit[0]])
        place = part.end()
        if (more := at.match(_PART_AFTER, place)) is not None and at.match(_PART, more.end()) is not None:
            place = more.end()
    return None if place == at.place or at.match(_AGO, place) else _seconds(at.now) + sum_of


def _number(at: _At) -> float | None:
    """Epoch seconds or milliseconds; a wait where it stands as one."""
    if (found := at.match(_NUMBER)) is None:
        return None
    value = float(found.group())
    if value >= 1e9:
        return value / 1000 if value >= 1e11 else value
    # `100%` and `5 requests` are no times.
    alone = re.match(r"[\"'\s]*(?:$|[,.;)}\]\n|]|\s-)", at.text[found.end() : found.end() + 8])
    return _seconds(at.now) + value * at.unit if at.relative and alone else None


def _time(at: _At, place: int) -> tuple[int, int, int, tzinfo] | None:
    """Hour, minute, second and zone of a time of day; a bare number is none."""
    then = at.match(_THEN, place)
    found = at.match(_TIME, then.end() if then is not None else place)
    if found is None:
        return None
    hour, minute, second, half, word = found.groups()
    zone = _zone(at, found.end())
    if word is not None:
        return (12 if word.lower() == "noon" else 0), 0, 0, zone
    if minute is None and half is None:
        return None
    hours = int(hour)
    if half is not None:
        if not 1 <= hours <= 12:
            raise ValueError("no hour of half a day")
        hours = hours % 12 + 12 * (half.lower() == "p")
    return hours % 24 if hours == 24 and not int(minute or 0) else hours, int(minute or 0), int(second or 0), zone


def _zone(at: _At, place: int) -> tzinfo:
    """The zone that is named there, else the machine's. Raises where a place is named that nobody knows."""
    found = at.match(_ZONE, place)
    if found is None:
        return at.zone
    name, sign, hours, minutes, letters = found.groups()
    if name is not None:
        return ZoneInfo(name)
    if sign is not None:
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(-offset if sign == "-" else offset)
    if letters.upper() in _PLACES:
        return ZoneInfo(_PLACES[letters.upper()])
    if letters.upper() in _HOURS:
        return timezone(timedelta(hours=_HOURS[letters.upper()]))
    return at.zone


def _on(day: datetime, hour: int, minute: int, second: int) -> list[float]:
    return _day(day.year, day.month, day.day, hour, minute, second, day.tzinfo or UTC)


def _day(year: int, month: int, day: int, hour: int, minute: int, second: int, zone: tzinfo) -> list[float]:
    """When a clock shows this: twice where it is set back, as much later where it skips it, never on Feb 29 of most
    years."""
    try:
        first, again = (datetime(year, month, day, hour, minute, second, tzinfo=zone, fold=fold) for fold in (0, 1))
    except ValueError:
        return []
    return [_seconds(first), max(_seconds(first), _seconds(again))]


def _next(at: _At, days: list[list[float]]) -> float | None:
    """The first of these times that is not over."""
    now = _seconds(at.now)
    return min((time for day in days for time in day if time >= now - JUST_NOW), default=None)


def _seconds(time: datetime) -> float:
    return (time - _EPOCH).total_seconds()
