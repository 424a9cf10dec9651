"""A door: listens at one path, takes callers in, names each at the moment it connects, and bounds how many there are.
It answers nothing itself and must never wait for a caller."""

from __future__ import annotations

import contextlib
import socket
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Final

import trio

from supervisor.core.authority import Agent, Nobody, Operator, Principal
from supervisor.doors import wire
from supervisor.doors.connection import Connection
from supervisor.doors.listener import bind, keep
from supervisor.doors.service import Caller, Limits, Service

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
                    while door.take(bound.sock):
                        pass
                bound.close()
                bound = fresh
    finally:
        bound.close()


class _Door:
    """Who is connected to one door."""

    def __init__(self, service: Service, nursery: trio.Nursery) -> None:
        self._service = service
        self._nursery = nursery
        self._present: Counter[str] = Counter()

    async def accept(self, sock: socket.socket, scope: trio.CancelScope) -> None:
        """Takes callers in, one a turn of the loop."""
        with scope:
            while True:
                await trio.lowlevel.wait_readable(sock)
                try:
                    self.take(sock)
                except OSError as problem:
                    self._service.on_fault("accept", str(problem))
                    await trio.sleep(_BREATH)

    def take(self, listening: socket.socket) -> bool:
        """Takes one caller in, if one waits. Raises OSError where the machine is short of something."""
        try:
            raw, _ = listening.accept()
        except BlockingIOError:
            return False
        except ConnectionAbortedError:
            return True  # that one has gone again
        raw.setblocking(False)
        try:
            caller = self._service.resolve(raw)
        except Exception as problem:  # noqa: BLE001 - who cannot be named is not served; naming the next may work
            self._service.on_fault("internal", f"a caller could not be named: {problem!r}")
            raw.close()
            return True
        room = _room(caller.principal)
        if self._crowded(room):
            self._turn_away(raw, caller)
        else:
            self._present[room] += 1
            self._nursery.start_soon(self._host, raw, caller, room)
        return True

    async def _host(self, raw: socket.socket, caller: Caller, room: str) -> None:
        try:
            with trio.socket.from_stdlib_socket(raw) as sock:
                await Connection(raw, sock, caller, self._service).converse()
        except Exception as problem:  # noqa: BLE001 - a bug in one conversation must not end the others; it is told
            self._service.on_fault("internal", f"connection of {caller.principal}: {problem!r}")
        finally:
            caller.close()
            self._present[room] -= 1
            if not self._present[room]:
                del self._present[room]

    def _crowded(self, room: str) -> bool:
        limits: Limits = self._service.limits
        others = self._present.total() - self._present[_OPERATORS]
        return self._present[room] >= limits.each or (room != _OPERATORS and others >= limits.others)

    def _turn_away(self, raw: socket.socket, caller: Caller) -> None:
        self._service.on_fault("crowded", f"{caller.principal} has too many connections")
        with contextlib.suppress(OSError):
            raw.send(wire.error(None, wire.BUSY, "too many connections are open: close some"), socket.MSG_NOSIGNAL)
        raw.close()
        caller.close()


def _room(principal: Principal) -> str:
    """Who shares one bound."""
    match principal:
        case Operator():
            return _OPERATORS
        case Agent(project, agent, _):
            return f"{project}/{agent}"
        case Nobody():
            return "nobody"
