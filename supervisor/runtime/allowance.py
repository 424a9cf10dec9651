"""How much of something one caller may use: a burst, then so much a second. Decides nothing and never waits."""

from __future__ import annotations

import trio


class Allowance:
    """Filled at `rate` a second up to `burst`; what is taken beyond it is owed."""

    def __init__(self, burst: float, rate: float) -> None:
        self._burst = burst
        self._rate = rate
        self._left = burst
        self._at = trio.current_time()

    def take(self, amount: float) -> None:
        """Use so much, whether it is there or not."""
        self._fill()
        self._left -= amount

    def spare(self, amount: float) -> bool:
        """Use so much if it is there; otherwise nothing."""
        self._fill()
        if self._left < amount:
            return False
        self._left -= amount
        return True

    @property
    def wait(self) -> float:
        """Seconds until nothing is owed."""
        self._fill()
        return max(0.0, -self._left / self._rate)

    @property
    def full(self) -> bool:
        """Nothing was used lately."""
        self._fill()
        return self._left >= self._burst

    def _fill(self) -> None:
        now = trio.current_time()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
