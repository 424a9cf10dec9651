"""The way out to one caller: never waits for it, holds a bounded backlog, and gives up on who does not read."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable

import trio


class Outbox:
    """Lines for one socket, in order. What the kernel takes at once is sent at once; `drop` is called, once, with the
    reason why the rest will never be."""

    def __init__(
        self,
        sock: socket.socket,
        nursery: trio.Nursery,
        *,
        limit: int,
        stall: float,
        drop: Callable[[str], None],
    ) -> None:
        self._sock = sock
        self._nursery = nursery
        self._limit = limit
        self._stall = stall
        self._drop = drop
        self._held: deque[memoryview] = deque()
        self._size = 0
        self._dead = False
        self._empty = trio.Event()
        self._empty.set()

    def put(self, line: bytes) -> None:
        """Sends the line, now or as soon as the caller reads. One line may exceed the limit, a backlog may not."""
        if self._dead:
            return
        if self._held:
            if self._size + len(line) > self._limit:
                self._give_up("does not read its answers")
                return
            self._hold(memoryview(line))
            return
        rest = self._send(memoryview(line))
        if rest:
            self._empty = trio.Event()
            self._hold(rest)
            self._nursery.start_soon(self._flush)

    async def drained(self) -> None:
        """Returns when nothing waits."""
        await self._empty.wait()

    def close(self) -> None:
        """Takes nothing any more."""
        self._dead = True
        self._held.clear()

    def _hold(self, rest: memoryview) -> None:
        self._held.append(rest)
        self._size += len(rest)

    def _send(self, data: memoryview) -> memoryview:
        """What the kernel did not take."""
        try:
            return data[self._sock.send(data, socket.MSG_NOSIGNAL) :]
        except BlockingIOError:
            return data
        except OSError as problem:
            self._give_up("" if isinstance(problem, BrokenPipeError | ConnectionResetError) else str(problem))
            return data[:0]

    async def _flush(self) -> None:
        while self._held and not self._dead:
            with trio.move_on_after(self._stall) as patience:
                await trio.lowlevel.wait_writable(self._sock)
            if patience.cancelled_caught:
                self._give_up("does not read its answers")
                break
            first = self._held.popleft()
            rest = self._send(first)
            self._size -= len(first) - len(rest)
            if rest:
                self._held.appendleft(rest)
        if not self._dead:
            self._empty.set()

    def _give_up(self, why: str) -> None:
        if not self._dead:
            self._dead = True
            self._held.clear()
            self._size = 0
            self._drop(why)
