"""Ending one run: the polite way, then SIGTERM, then SIGKILL, each until nothing of it lives. Waits for events, never
for a time to pass. Its caller shields it: an end that is cut in half is no end."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from supervisor.core.facts import Killed
from supervisor.runtime import turn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from supervisor.launchers.local import Process
    from supervisor.runtime.containment.cell import Cell

#: Of its slice, what the polite way gets before SIGTERM, and at most so many seconds.
POLITE_SHARE, POLITE_MOST = 0.25, 2.0
#: SIGKILL goes on for this long (seconds), then what still lives is unkillable.
KILL_WITHIN = 5.0
#: After a process ended, others get this long to end too before the rest is looked at again (seconds).
SETTLE = 0.02


@frozen
class Clock:
    """One for a leaving branch, on trio.current_time(): its deepest level goes first, and all share one grace."""

    begun: float
    grace: float
    levels: int

    def until(self, height: int) -> float:
        """The end of the slice of a host with this many levels below it."""
        levels = max(1, self.levels)
        return self.begun + self.grace * min(height + 1, levels) / levels


async def end(
    process: Process | None,
    cell: Cell,
    *,
    polite: Callable[[], Awaitable[None]] | None,
    until: float,
) -> tuple[tuple[Killed, ...], tuple[int, ...]]:
    """Returns as soon as the run is empty: (what was ended after its leader or killed, what could not be).

    Of a leader that has ended by itself this ends what it left; every such process is named."""
    if polite is not None and process is not None and process.poll() is None:
        await _politely(cell, polite, until)
    ended: dict[int, Killed] = {}
    await _terminate(process, cell, until, ended)
    killed, unkillable = await cell.clear(KILL_WITHIN)
    ended.update((one.pid, one) for one in killed)
    return tuple(ended.values()), unkillable


async def _politely(cell: Cell, polite: Callable[[], Awaitable[None]], until: float) -> None:
    now = trio.current_time()
    with trio.move_on_at(min(now + (until - now) * POLITE_SHARE, now + POLITE_MOST)):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_say, polite)
            await cell.emptied()
            nursery.cancel_scope.cancel()


async def _say(polite: Callable[[], Awaitable[None]]) -> None:
    try:
        await polite()
    except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
        return  # it no longer listens; the next step does not ask


async def _terminate(process: Process | None, cell: Cell, until: float, ended: dict[int, Killed]) -> None:
    while trio.current_time() < until:
        async with turn.mine():  # of hundreds that end at once, one looks and signals in a turn of the loop
            change = cell.change()
            if not cell.living():
                return
            if process is None or process.poll() is not None:
                for member in cell.members():
                    ended.setdefault(member.pid, Killed(member.pid, member.argv0, "TERM", member.escaped))
            cell.signal(signal.SIGTERM)
        with trio.move_on_at(until):
            await cell.changed(change)
            with trio.move_on_after(SETTLE):
                await cell.emptied()
