"""A failure in words that a person can read: a provider's answer stands as JSON, or as a page, in the midst of what a
program says. It must lose neither the status nor the time that stands in it, and what it cannot read stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from html import unescape

from supervisor.core.weight import heavy
from supervisor.kinds import fields

#: So much of a text is looked at (characters), so many places in it where an answer may begin, and so many answers in
#: answers.
LONGEST, PLACES, DEEP = 64 * 1024, 8, 4
#: Where an answer keeps its words, in the order in which they are looked for.
_WORDS = ("message", "detail", "msg", "error_description", "title")
#: What names a failure that has no words.
_NAMES = ("code", "type", "status", "name", "error")
_HOLDERS = ("error", "errors", "data", "body", "response")
#: Keys that name when to come back, as they are compared: without anything but letters.
_WAITS = ("retrydelay", "retryafter", "retryafterms", "retryafterseconds", "resetsinseconds", "resetin")
_TIMES = ("resetsat", "resetat", "resettime", "quotaresettimestamp")
_PAGE = re.compile(r"<!doctype html|<html", re.IGNORECASE)
_TITLE = re.compile(r"<(title|h1)\b[^<>]{0,200}>([^<>]{1,500})</", re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DECODER = json.JSONDecoder()


def readable(words: str, deep: int = DEEP) -> str:
    """The same failure: what stands before the answer, its status, its words, and when to come back."""
    if _PAGE.search(words[:LONGEST]):
        return _page(words)
    if deep <= 0 or ("{" not in words and "[" not in words):
        return words
    found = _answer(words)
    if found is None:
        return words
    begin, end, answer = found
    told = _told(answer, deep)
    if not told:
        return words
    before, after = words[:begin].rstrip(" :\t\r\n-"), words[end:].rstrip()
    status = _status(answer)
    if before.endswith(said := told.partition(": ")[0]) and said.isdigit():
        told = told.partition(": ")[2]
    if status and status not in before and not told.startswith(status):
        told = f"{status}: {told}"
    told = f"{before}: {told}" if before and not before.endswith(("(", "[")) else f"{before}{told}"
    hint = next(_hints(answer, DEEP), "")
    return fields.clip(f"{told}{after}" + (f"; {hint}" if hint and hint not in told else ""))


def _answer(words: str) -> tuple[int, int, object] | None:
    """The first JSON object with something in it, or list of such, and where it stands."""
    if len(words) > LONGEST or heavy(words.encode("utf-8", "replace"), fields.VALUES):
        return None
    place = -1
    for _ in range(PLACES):
        starts = [found for sign in "{[" if (found := words.find(sign, place + 1)) >= 0]
        if not starts:
            return None
        place = min(starts)
        try:
            value, end = _DECODER.raw_decode(words, place)
        except (ValueError, RecursionError):
            continue
        inner = value[0] if isinstance(value, list) and value else value
        if isinstance(inner, dict) and inner:
            return place, end, inner
    return None


def _told(answer: object, deep: int) -> str:
    """The words of an answer; of one that has none, what it is called."""
    for holder in _holders(answer):
        for key in _WORDS:
            value = holder.get(key)
            if isinstance(value, str) and value.strip():
                return readable(value.strip(), deep - 1)
    for holder in _holders(answer):
        for key in _NAMES:
            value = holder.get(key)
            if isinstance(value, str) and value.strip():
                return readable(value.strip(), deep - 1) if key == "error" else value.strip()
    return ""


def _holders(answer: object) -> Iterator[Mapping[str, object]]:
    """The objects that may hold what is looked for, the innermost error first."""
    if isinstance(answer, list):
        answer = answer[0] if answer else None
    if not isinstance(answer, dict):
        return
    for key in _HOLDERS:
        yield from _holders(answer.get(key))
    yield answer


def _status(answer: object) -> str:
    """The HTTP status that an answer names."""
    for holder in _holders(answer):
        for key in ("status", "code", "statusCode", "status_code"):
            value = holder.get(key)
            if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
                return str(value)
    return ""


def _hints(value: object, deep: int) -> Iterator[str]:
    """When to come back, in words that are read again as that time."""
    if deep <= 0:
        return
    if isinstance(value, list):
        for one in value[:PLACES]:
            yield from _hints(one, deep - 1)
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        name = re.sub(r"[^a-z]", "", key.lower())
        if name in _WAITS:
            yield from _wait(inner, 0.001 if name.endswith("ms") else 1.0)
        elif name in _TIMES:
            yield from _time(inner)
        else:
            yield from _hints(inner, deep - 1)


def _wait(value: object, unit: float) -> Iterator[str]:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < fields.EXACT:
        yield f"try again in {value * unit:.12g}s"
    elif isinstance(value, str) and value.strip():
        text = value.strip()[:40]
        yield f"try again in {text}{'s' if re.fullmatch(r'[0-9.]+', text) else ''}"


def _time(value: object) -> Iterator[str]:
    if isinstance(value, str) and value.strip():
        yield f"resets {value.strip()[:60]}"
    elif isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < fields.EXACT:
        seconds = value / 1000 if value >= 1e11 else value
        if seconds < 1e11:
            yield f"resets {_EPOCH + timedelta(seconds=round(seconds)):%Y-%m-%dT%H:%M:%SZ}"


def _page(words: str) -> str:
    """A proxy answers with a page: its title, and what stood before."""
    begin = _PAGE.search(words)
    titled = _TITLE.search(words[:LONGEST])
    before = words[: begin.start()].rstrip(" :\t\r\n-") if begin is not None else ""
    title = " ".join(unescape(titled[2]).split()) if titled is not None else "a web page instead of an answer"
    if before and title.startswith(before):
        return title
    return f"{before}: {title}" if before else title
