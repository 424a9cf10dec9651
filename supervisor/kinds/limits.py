"""What a provider's failure is as a limit, by its status or by its words. It must never take an error for a limit that
another try would be free of, and never guesses a time: that is read elsewhere, where there is a clock."""

from __future__ import annotations

import re

from supervisor.core.facts import Limit
from supervisor.kinds.readable import readable

_STATUS: dict[int, Limit] = {401: "auth", 402: "quota", 429: "rate", 503: "overload", 529: "overload"}
#: In the order in which they are tried.
_WORDS: tuple[tuple[Limit, re.Pattern[str]], ...] = (
    (
        "quota",
        re.compile(r"usage limit|quota exceeded|insufficient_quota|out of credits|upgrade to plus", re.IGNORECASE),
    ),
    (
        "auth",
        re.compile(
            r"missing environment variable|no api key|not be refreshed|not logged in|/login|log ?in again"
            r"|unauthenticated|unauthorized|permission_denied|invalid[ _](?:api[ _])?key"
            r"|api[ _]key[ _](?:is )?(?:not|in)[ _]?valid|authentication",
            re.IGNORECASE,
        ),
    ),
    ("rate", re.compile(r"rate[ _.-]?limit|too many requests|resource_exhausted|quota", re.IGNORECASE)),
    ("overload", re.compile(r"at capacity|overloaded|\bunavailable\b", re.IGNORECASE)),
)
#: A quota that is used up is told as too many requests by some. It is used up for hours or days; whatever else is
#: limited is limited for seconds or minutes.
_LONG = re.compile(
    r"daily|per ?day|billing|insufficient|credit|usage limit|quota exceeded|quota will reset|exhausted your|monthly"
    r"|weekly|upgrade to plus",
    re.IGNORECASE,
)
#: A status as it stands in words: at the beginning, or after this word.
_NUMBER = re.compile(r"(?:^|\bstatus:? )([45]\d\d)\b")


def sort(words: str, status: int | None = None) -> Limit | None:
    """The limit that a failure is; None where it is none. `status` is the HTTP status, None where only the words may
    tell it."""
    found = _NUMBER.search(words)
    code = status if status is not None else int(found[1]) if found else None
    by_words = next((limit for limit, pattern in _WORDS if pattern.search(words)), None)
    by_status = _STATUS.get(code) if code is not None else None
    limit = by_status or (by_words if code is None or code == 403 else None)
    return "quota" if limit == "rate" and _LONG.search(words) else limit


def met(words: str, status: int | None = None) -> tuple[Limit | None, str]:
    """The limit that a failure is, and the failure in words for people."""
    return sort(words, status), readable(words)
