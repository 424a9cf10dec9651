"""How late the loop is: the one number that says whether something blocks it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio

#: Seconds between two looks, and how many looks the worst of is told.
EVERY, KEPT = 1.0, 60


class Lag:
    """Measures how much later than asked the loop wakes; `worst` is in milliseconds over the last minute."""

    def __init__(self) -> None:
        self._seen: deque[float] = deque(maxlen=KEPT)

    @property
    def worst(self) -> float:
        """The largest delay of the last minute, in milliseconds."""
        return round(max(self._seen, default=0.0) * 1000, 2)

    async def run(self, each: Callable[[], None]) -> None:
        """The task that looks, and calls `each` every time: whoever must know that the loop turns."""
        while True:
            due = trio.current_time() + EVERY
            await trio.sleep_until(due)
            self._seen.append(trio.current_time() - due)
            each()
