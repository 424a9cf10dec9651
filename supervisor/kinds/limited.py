"""Tells by a status and by words why a provider takes no more for now. It never guesses a time: that is read elsewhere,
where there is a clock."""

from __future__ import annotations

import re

from supervisor.core.facts import Limit

_AUTH = re.compile(
    r"unauthenticated|unauthorized|permission_denied|invalid[ _](?:api[ _])?key"
    r"|api[ _]key[ _](?:is )?(?:not|in)[ _]?valid|no api key|not logged in|log ?in again|authentication",
    re.IGNORECASE,
)
_RATE = re.compile(r"resource_exhausted|rate[ _-]?limit|too many requests|quota|usage limit", re.IGNORECASE)
#: A quota is used up for hours or days; whatever else is limited is limited for seconds or minutes.
_QUOTA = re.compile(
    r"daily|per ?day|billing|insufficient|credit|usage limit|quota will reset|exhausted your|monthly|weekly",
    re.IGNORECASE,
)
_OVERLOAD = re.compile(r"overloaded|\bunavailable\b", re.IGNORECASE)


def sort(status: int, text: str) -> Limit | None:
    """The sort of limit that an error is, None where it is none. `status` is the HTTP status, 0 where it is unknown."""
    if status in {401, 403} or (not status and _AUTH.search(text)):
        return "auth"
    if status in {402, 429} or (not status and _RATE.search(text)):
        return "quota" if status == 402 or _QUOTA.search(text) else "rate"
    if status in {503, 529} or (not status and _OVERLOAD.search(text)):
        return "overload"
    return None
