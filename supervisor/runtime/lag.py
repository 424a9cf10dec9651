"""How late the loop is: the one number that says whether something blocks it. Every turn of the loop is measured, not
only those that a clock meets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter

import trio

#: Seconds that share one number, and how many of these numbers the worst of is told.
EVERY, KEPT = 1.0, 60


class Lag(trio.abc.Instrument):
    """Measures how long each turn keeps all others waiting, and how much later than asked the loop wakes; `worst` is in
    milliseconds over the last minute."""

    def __init__(self) -> None:
        self._seen: deque[float] = deque(maxlen=KEPT)
        self._longest = 0.0
        self._woken = perf_counter()

    @property
    def worst(self) -> float:
        """The largest delay of the last minute, in milliseconds."""
        return round(max(self._longest, *self._seen, 0.0) * 1000, 2)

    async def run(self, each: Callable[[], None]) -> None:
        """The task that looks, and calls `each` every time: whoever must know that the loop turns."""
        trio.lowlevel.add_instrument(self)
        try:
            while True:
                due = trio.current_time() + EVERY
                await trio.sleep_until(due)
                self._seen.append(max(self._longest, trio.current_time() - due))
                self._longest = 0.0
                each()
        finally:
            trio.lowlevel.remove_instrument(self)

    def after_io_wait(self, timeout: float) -> None:
        """A turn begins."""
        del timeout
        self._woken = perf_counter()

    def before_io_wait(self, timeout: float) -> None:
        """It is over."""
        del timeout
        self._longest = max(self._longest, perf_counter() - self._woken)
