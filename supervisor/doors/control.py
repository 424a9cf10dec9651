"""A door: listens at one path, takes callers in, names each at the moment it connects, and bounds how many there are.
It answers nothing itself and must never wait for a caller."""

from __future__ import annotations

import contextlib
import socket
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

import trio

from supervisor.core.authority import Agent, Nobody, Operator, Principal
from supervisor.doors.connection import Connection
from supervisor.doors.listener import bind, keep
from supervisor.doors.queue import Queue, turn_away
from supervisor.doors.service import Caller, Limits, Service
from supervisor.runtime.turn import Pace

#: Seconds without accepting when the machine has no descriptor or memory left.
_BREATH: Final = 0.1
_OPERATORS: Final = "operator"


async def serve(path: Path, service: Service, *, task_status: trio.TaskStatus[Path] = trio.TASK_STATUS_IGNORED) -> None:
    """Serves the door until cancelled; started when it listens. Raises `listener.DoorError` if it cannot,
    `TakenError` if another daemon answers there. A file that is deleted or replaced is bound again."""
    bound = await bind(path)
    try:
        async with trio.open_nursery() as nursery:
            door = _Door(service, nursery)
            nursery.start_soon(door.meet)
            if bound.stale:
                service.on_fault("socket", f"{path} was stale: nobody answered there; it was removed")
            task_status.started(path)
            while True:
                accepting = trio.CancelScope()
                nursery.start_soon(door.accept, bound.sock, accepting)
                fresh = await keep(bound, partial(service.on_fault, "socket"))
                service.on_fault("socket", f"{path} was deleted or replaced; it is bound again")
                # Who had connected before is in the old socket's queue still.
                accepting.cancel()
                with contextlib.suppress(OSError):
                    while door.queue.take(bound.sock):
                        pass
                bound.close()
                bound = fresh
    finally:
        bound.close()


class _Door:
    """Who is connected to one door."""

    def __init__(self, service: Service, nursery: trio.Nursery) -> None:
        self.queue = Queue(service.limits.process, service.on_fault)
        self._service = service
        self._nursery = nursery
        self._present: Counter[str] = Counter()
        self._paces: WeakValueDictionary[str, Pace] = WeakValueDictionary()

    async def accept(self, sock: socket.socket, scope: trio.CancelScope) -> None:
        """Takes callers off the kernel's queue."""
        with scope:
            while True:
                await trio.lowlevel.wait_readable(sock)
                try:
                    self.queue.take(sock)
                except OSError as problem:
                    self._service.on_fault("accept", str(problem))
                    await trio.sleep(_BREATH)

    async def meet(self) -> None:
        """Names callers and lets them in, one a turn of the loop."""
        try:
            while True:
                pid, raw = await self.queue.next()
                self._let_in(pid, raw)
                await trio.lowlevel.checkpoint()
        finally:
            self.queue.close()

    def _let_in(self, pid: int, raw: socket.socket) -> None:
        try:
            caller = self._service.resolve(raw)
        except Exception as problem:  # noqa: BLE001 - who cannot be named is not served; naming the next may work
            self._service.on_fault("internal", f"a caller could not be named: {problem!r}")
            raw.close()
            self.queue.gone(pid)
            return
        room = _room(caller.principal)
        if self._crowded(room):
            self._service.on_fault("crowded", f"{caller.principal} has too many connections")
            turn_away(raw)
            caller.close()
            self.queue.gone(pid)
        else:
            self._present[room] += 1
            # A person's programs are many: each is fair to the others.
            pace = self._paces.setdefault(str(pid) if room == _OPERATORS else room, Pace())
            self._nursery.start_soon(self._host, raw, caller, room, pid, pace)

    async def _host(self, raw: socket.socket, caller: Caller, room: str, pid: int, pace: Pace) -> None:
        try:
            with trio.socket.from_stdlib_socket(raw) as sock:
                await Connection(raw, sock, caller, self._service, pace).converse()
        except Exception as problem:  # noqa: BLE001 - a bug in one conversation must not end the others; it is told
            self._service.on_fault("internal", f"connection of {caller.principal}: {problem!r}")
        finally:
            caller.close()
            self.queue.gone(pid)
            self._present[room] -= 1
            if not self._present[room]:
                del self._present[room]

    def _crowded(self, room: str) -> bool:
        limits: Limits = self._service.limits
        if room == _OPERATORS:
            return self._present[room] >= limits.operators
        others = self._present.total() - self._present[_OPERATORS]
        return self._present[room] >= limits.each or others >= limits.others


def _room(principal: Principal) -> str:
    """Who shares one bound."""
    match principal:
        case Operator():
            return _OPERATORS
        case Agent(project, agent, _):
            return f"{project}/{agent}"
        case Nobody():
            return "nobody"
