"""Fairness on the one loop: whoever has much to do does a little of it in each turn of the loop, one after the other,
so that everybody else waits for one piece of work and not for all. Decides nothing."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

import trio

T = TypeVar("T")
#: How long a piece of work may take before others get their turn (seconds).
PIECE = 0.002


class Tick(trio.abc.Instrument):
    """Counts the turns of the loop."""

    def __init__(self) -> None:
        self.count = 0

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002  # trio calls it with this
        self.count += 1


_TICK: trio.lowlevel.RunVar[Tick] = trio.lowlevel.RunVar("tick")
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


async def stepped(steps: Generator[None, None, T]) -> T:
    """What these steps come to; others have their turn between two of them."""
    watch = Watch()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found
        if watch.over:
            await trio.lowlevel.checkpoint()
            watch.again()


class Pace:
    """One caller's: of all that it asks at once, one piece begins in each turn of the loop."""

    def __init__(self) -> None:
        self._last = -1
        self._lock = trio.Lock()

    async def keep(self) -> None:
        """Returns when a piece may begin, at once if none has in this turn."""
        tick = _tick()
        if self._last != tick.count and not self._lock.locked():
            self._last = tick.count
            return
        async with self._lock:
            while self._last == tick.count:
                await trio.lowlevel.checkpoint()
            self._last = tick.count


def _tick() -> Tick:
    try:
        return _TICK.get()
    except LookupError:
        tick = Tick()
        trio.lowlevel.add_instrument(tick)
        _TICK.set(tick)
        return tick
