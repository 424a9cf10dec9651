"""How many programs may be starting at once: a fleet that comes back does not fall over itself, nor over one login. It
orders starts and must never keep one from happening."""

from __future__ import annotations

import os

import trio

#: So many, or so many for each processor, if that is more.
FEWEST, EACH = 16, 4
#: A program that has not said that it is ready by then (seconds) is no reason to hold up another.
PATIENCE = 2.0
#: A login with which a program has come up within this time (seconds) is fresh: programs renew it as they start, and
#: two that do so at once log each other out.
FRESH = 60.0


class Starts:
    """A place is taken before a run is spawned, and is free once the run is ready or over, or after `PATIENCE`. Where a
    login is not fresh one run starts alone with it: what comes of that, the others see before they start."""

    def __init__(self, most: int = 0) -> None:
        self._most = most or max(FEWEST, EACH * (os.cpu_count() or 1))
        self._taken: dict[tuple[str, int], float] = {}
        self._alone: dict[str, tuple[str, int]] = {}
        self._fresh: dict[str, float] = {}
        self._freed = trio.Event()
        self._queue = trio.Lock()
        self._lines: dict[str, trio.Lock] = {}

    async def take(self, agent: str, run: int, credential: str = "") -> None:
        """Wait for a place, in the order of asking."""
        if credential:
            async with self._lines.setdefault(credential, trio.Lock()):
                await self._turn(credential)
                if not self._is_fresh(credential):
                    self._alone[credential] = (agent, run)
                await self._place(agent, run)
        else:
            await self._place(agent, run)

    async def _turn(self, credential: str) -> None:
        """Until nobody tries the login alone."""
        while (first := self._alone.get(credential)) is not None:
            since = self._taken.get(first)
            if since is None or not await self._wait(since):
                self._alone.pop(credential, None)

    async def _place(self, agent: str, run: int) -> None:
        async with self._queue:
            while len(self._taken) >= self._most:
                oldest, since = next(iter(self._taken.items()))
                if not await self._wait(since):
                    self._taken.pop(oldest, None)
            self._taken[agent, run] = trio.current_time()

    async def _wait(self, since: float) -> bool:
        """Until somebody is ready or over; False where one who began then takes too long."""
        with trio.move_on_at(since + PATIENCE) as waited:
            await self._freed.wait()
        return not waited.cancelled_caught

    def _is_fresh(self, credential: str) -> bool:
        return trio.current_time() - self._fresh.get(credential, float("-inf")) < FRESH

    def free(self, agent: str, run: int, ready: str = "") -> None:
        """The run is ready, with this login, or will not be."""
        if ready:
            self._fresh[ready] = trio.current_time()
        for credential, first in [*self._alone.items()]:
            if first == (agent, run):
                del self._alone[credential]
        if self._taken.pop((agent, run), None) is not None:
            self._freed.set()
            self._freed = trio.Event()
