"""Fairness on the one loop: whoever has much to do does a little of it in each turn of the loop, one after the other,
so that everybody else waits for one piece of work and not for all. Decides nothing."""

from __future__ import annotations

import trio

#: How long a piece of work may take before others get their turn (seconds).
PIECE = 0.002

_LOCK: trio.lowlevel.RunVar[trio.Lock] = trio.lowlevel.RunVar("turn")


def mine() -> trio.Lock:
    """Held for a piece of work: of all who ask for it, one has it in each turn of the loop."""
    try:
        return _LOCK.get()
    except LookupError:
        lock = trio.Lock()
        _LOCK.set(lock)
        return lock


class Watch:
    """Tells when a piece of work has taken long enough."""

    def __init__(self) -> None:
        self._until = trio.current_time() + PIECE

    @property
    def over(self) -> bool:
        """Time for others."""
        return trio.current_time() > self._until

    def again(self) -> None:
        """Another piece begins."""
        self._until = trio.current_time() + PIECE
