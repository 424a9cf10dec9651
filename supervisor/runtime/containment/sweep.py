"""Recovery: ends what carries the mark of a daemon that is dead. The one full walk over /proc, at start only."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from supervisor.core.facts import Killed
from supervisor.runtime.containment import marks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from supervisor.runtime.containment.marks import Stat


def carrying(instance: int) -> Iterator[Stat]:
    """What lives and carries a mark of this instance, or says so in its environment."""
    for entry in os.listdir("/proc"):
        if not entry.isdecimal():
            continue
        pid = int(entry)
        found = marks.stat(pid)
        if found is None or not found.alive:
            continue
        mark = marks.marked(pid) or marks.named(pid)
        if mark is not None and mark[0] == instance:
            yield found


async def sweep(instance: int, within: float = 5.0) -> tuple[tuple[Killed, ...], tuple[int, ...]]:
    """SIGKILL to all of a dead instance until none is left or the time is over: (killed, unkillable)."""
    killed: dict[int, Killed] = {}
    with trio.move_on_after(within):
        while True:
            frozen = [found for found, fresh in marks.freeze(lambda: carrying(instance)) if fresh]
            if not frozen:
                return tuple(killed.values()), ()
            for found in frozen:
                killed.setdefault(found.pid, Killed(found.pid, marks.argv0(found.pid) or found.comm, "KILL"))
                marks.send(found.pid, found.start, signal.SIGKILL)
            await _gone(frozen[0].pid)
    left = tuple(found.pid for found in carrying(instance))
    return tuple(one for one in killed.values() if one.pid not in left), left


async def _gone(pid: int) -> None:
    """One of them ended; the others will have by then, or are looked at again."""
    with suppress(ProcessLookupError), trio.move_on_after(0.1):
        fd = os.pidfd_open(pid)
        try:
            await trio.lowlevel.wait_readable(fd)
        finally:
            os.close(fd)
