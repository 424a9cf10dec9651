"""Who waits to be named at a door: one connection of each process after the other, so that a process that connects a
thousand times waits for itself. It names no one and must never wait."""

from __future__ import annotations

import contextlib
import select
import socket
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

import trio

from supervisor.doors import wire
from supervisor.runtime.peers import CREDENTIALS

#: Taken off the kernel's queue in one turn of the loop: cheap, and a process that is only slow must not fill it.
_AT_ONCE: Final = 64
_NO_ROOM: Final = wire.error(None, wire.BUSY, "too many connections are open: close some")


class Queue:
    """Connections by the process that made them. Each holds one of its process's `bound` places until `gone`."""

    def __init__(self, bound: int, fault: Callable[[str, str], None]) -> None:
        self._bound = bound
        self._fault = fault
        self._waiting: dict[int, deque[socket.socket]] = {}
        self._held: Counter[int] = Counter()
        self._come = trio.Event()

    def take(self, listening: socket.socket) -> bool:
        """Takes in some that have connected; whether there may be more. Raises OSError where the machine is short of
        something."""
        turned_away: Counter[int] = Counter()
        more = True
        for _ in range(_AT_ONCE):
            try:
                raw, _ = listening.accept()
            except BlockingIOError:
                more = False
                break
            except ConnectionAbortedError:
                continue  # that one has gone again
            pid: int = CREDENTIALS.unpack(raw.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))[0]
            if self._held[pid] < self._bound:
                self._put(pid, raw)
            else:
                turned_away[pid] += 1
                turn_away(raw)
        for pid in turned_away:
            self._fault("crowded", f"process {pid} has more than {self._bound} connections")
        return more

    def _put(self, pid: int, raw: socket.socket) -> None:
        raw.setblocking(False)
        if _hung_up(raw):
            raw.close()
            return
        self._held[pid] += 1
        self._waiting.setdefault(pid, deque()).append(raw)
        self._come.set()

    async def next(self) -> tuple[int, socket.socket]:
        """The next connection, and the process that holds its place."""
        while not self._waiting:
            self._come = trio.Event()
            await self._come.wait()
        pid, own = next(iter(self._waiting.items()))
        del self._waiting[pid]
        raw = own.popleft()
        if own:
            self._waiting[pid] = own  # behind all others
        return pid, raw

    def gone(self, pid: int) -> None:
        """A connection of the process is over."""
        self._held[pid] -= 1
        if not self._held[pid]:
            del self._held[pid]

    def close(self) -> None:
        """Hangs up on all who still wait."""
        for own in self._waiting.values():
            for raw in own:
                raw.close()
        self._waiting.clear()


def turn_away(raw: socket.socket) -> None:
    """Says that there is no room, and hangs up."""
    with contextlib.suppress(OSError):
        raw.send(_NO_ROOM, socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)
    raw.close()


def _hung_up(raw: socket.socket) -> bool:
    """It has gone: whatever it asked, it waits for no answer."""
    poll = select.poll()
    poll.register(raw, 0)  # a hang-up is told unasked
    return bool(poll.poll(0))
