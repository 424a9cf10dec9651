"""How many programs may be starting at once: a fleet that comes back does not fall over itself. It orders starts and
must never keep one from happening."""

from __future__ import annotations

import os

import trio

#: So many, or so many for each processor, if that is more.
FEWEST, EACH = 16, 4
#: A program that has not said that it is ready by then (seconds) is no reason to hold up another.
PATIENCE = 2.0


class Starts:
    """A place is taken before a run is spawned, and is free once the run is ready or over, or after `PATIENCE`."""

    def __init__(self, most: int = 0) -> None:
        self._most = most or max(FEWEST, EACH * (os.cpu_count() or 1))
        self._taken: dict[tuple[str, int], float] = {}
        self._freed = trio.Event()
        self._queue = trio.Lock()

    async def take(self, agent: str, run: int) -> None:
        """Wait for a place, in the order of asking."""
        async with self._queue:
            while len(self._taken) >= self._most:
                oldest, since = next(iter(self._taken.items()))
                self._freed = trio.Event()
                with trio.move_on_at(since + PATIENCE) as waited:
                    await self._freed.wait()
                if waited.cancelled_caught:
                    self._taken.pop(oldest, None)
            self._taken[agent, run] = trio.current_time()

    def free(self, agent: str, run: int) -> None:
        """The run is ready, or will not be."""
        if self._taken.pop((agent, run), None) is not None:
            self._freed.set()
