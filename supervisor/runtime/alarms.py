"""Rings when a time of day comes, whatever the clocks do meanwhile. Decides nothing: who set an alarm looks whether it
still means something.

A time is meant as people read it: when the clock on the wall shows it, it is there, also after a sleep of the machine
and when the clock was set forward. A clock that is set back must not make anybody wait longer than was said: so an
alarm rings as well when as much time has gone by as there was to go, counted by the clock that never jumps and goes on
while the machine sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable

import trio
from attrs import frozen

#: No wait is longer (seconds): a machine that slept, or whose clock was set, is noticed within it.
PIECE = 60.0


@frozen
class _Alarm:
    """`until` is in Unix seconds, `gone` on the clock that only goes forward."""

    until: float
    gone: float
    ring: Callable[[], None]

    def left(self, now: float, gone: float) -> float:
        """Seconds until it rings, for all that is known now."""
        return min(self.until - now, self.gone - gone)


def read() -> tuple[float, float]:
    """Both clocks, now."""
    return time.time(), time.clock_gettime(time.CLOCK_BOOTTIME)


class Alarms:
    """By a name each; one that is set again is moved. `clocks` reads both: the one on the wall and the one that only
    goes forward."""

    def __init__(self, clocks: Callable[[], tuple[float, float]] = read) -> None:
        self._clocks = clocks
        self._set: dict[str, _Alarm] = {}
        self._changed = trio.Event()

    def set(self, name: str, until: float, ring: Callable[[], None]) -> None:
        """Call `ring` when it is `until` (Unix seconds); at once, but never before this returns, if that is over."""
        now, gone = self._clocks()
        self._set[name] = _Alarm(until, gone + until - now, ring)
        self._changed.set()

    async def run(self) -> None:
        """The task that rings; it sleeps while nothing is set."""
        while True:
            self._changed = trio.Event()
            now, gone = self._clocks()
            for name, alarm in [*self._set.items()]:
                if alarm.left(now, gone) <= 0 and self._set.get(name) is alarm:
                    del self._set[name]
                    alarm.ring()
            now, gone = self._clocks()
            wait = min((alarm.left(now, gone) for alarm in self._set.values()), default=float("inf"))
            with trio.move_on_after(min(max(wait, 0.0), PIECE) if self._set else float("inf")):
                await self._changed.wait()
