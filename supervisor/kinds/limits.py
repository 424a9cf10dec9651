"""What a provider's failure is as a limit, by its status or by its words. It must never take an error for a limit that
another try would be free of."""

from __future__ import annotations

import re

from supervisor.core.facts import Limit

_STATUS: dict[int, Limit] = {401: "auth", 402: "quota", 429: "rate", 503: "overload", 529: "overload"}
#: In the order in which they are tried: a quota that is used up is told as too many requests by some.
_WORDS: tuple[tuple[Limit, re.Pattern[str]], ...] = (
    (
        "quota",
        re.compile(r"usage limit|quota exceeded|insufficient_quota|out of credits|upgrade to plus", re.IGNORECASE),
    ),
    (
        "auth",
        re.compile(r"missing environment variable|no api key|not be refreshed|not logged in|/login", re.IGNORECASE),
    ),
    ("rate", re.compile(r"rate.?limit|too many requests", re.IGNORECASE)),
    ("overload", re.compile(r"at capacity|overloaded", re.IGNORECASE)),
)
#: A status as it stands in words: at the beginning, or after this word.
_NUMBER = re.compile(r"(?:^|\bstatus:? )([45]\d\d)\b")


def sort(words: str, status: int | None = None) -> Limit | None:
    """The limit that a failure is; None where it is none."""
    found = _NUMBER.search(words)
    code = status if status is not None else int(found[1]) if found else None
    by_words = next((limit for limit, pattern in _WORDS if pattern.search(words)), None)
    by_status = _STATUS.get(code) if code is not None else None
    if by_status == "rate" and by_words == "quota":
        return by_words
    return by_status or (by_words if code is None or code in {403, 429} else None)
