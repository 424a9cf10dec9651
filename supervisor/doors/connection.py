"""One caller's connection: its requests answered in the order they came, each by who its caller is at that moment. It
must never wait for a caller that does not read, nor let one's bytes pass as another's."""

from __future__ import annotations

import array
import contextlib
import os
import select
import socket
from collections import deque
from typing import Final

import trio
from attrs import frozen

from supervisor.core.authority import Nobody, Principal
from supervisor.core.refusals import RefusedError
from supervisor.doors import check, wire
from supervisor.doors.outbox import Outbox
from supervisor.doors.pieces import pieces
from supervisor.doors.service import Call, Caller, Service
from supervisor.runtime import turn
from supervisor.runtime.peers import CREDENTIALS
from supervisor.runtime.turn import Pace

_CHUNK: Final = 64 * 1024
_SCM_MAX_FD: Final = 253
_CONTROL: Final = socket.CMSG_SPACE(CREDENTIALS.size) + socket.CMSG_SPACE(_SCM_MAX_FD * 4)


@frozen
class Received:
    """What one read gave: the bytes, and the kernel's word on who wrote them (None: it said nothing)."""

    data: bytes
    pid: int | None
    uid: int | None


async def receive(sock: trio.socket.SocketType) -> Received:
    """One read of one writer's bytes (the kernel never joins two writers'). Descriptors that come along are closed."""
    data, control, _, _ = await sock.recvmsg(_CHUNK, _CONTROL, socket.MSG_CMSG_CLOEXEC)
    pid = uid = None
    for level, sort, value in control:
        if level != socket.SOL_SOCKET:
            continue
        if sort == socket.SCM_RIGHTS:
            passed = array.array("i", value[: len(value) // 4 * 4])
            for fd in passed:
                with contextlib.suppress(OSError):
                    os.close(fd)
        elif sort == socket.SCM_CREDENTIALS and len(value) == CREDENTIALS.size:
            pid, uid, _ = CREDENTIALS.unpack(value)
    return Received(data, pid, uid)


async def hung_up(sock: socket.socket) -> None:
    """Returns when the caller has closed its end for good. One that only ended its writing still waits for answers,
    and reads as ended all the time: only an epoll that asks for nothing tells the two apart without spinning."""
    with select.epoll() as epoll:
        epoll.register(sock, 0)  # EPOLLHUP and EPOLLERR come unasked
        await trio.lowlevel.wait_readable(epoll.fileno())


async def _encoded(ident: wire.Id, value: object) -> bytes:
    """The line of an answer; a large one is made in several turns of the loop."""
    found: list[bytes] = []
    watch = turn.Watch()
    for piece in pieces(ident, value):
        found.append(piece)
        if watch.over:
            await trio.lowlevel.checkpoint()
            watch.again()
    return b"".join(found)


class Connection:
    """Answers one caller until it leaves. `converse` is its whole life; the socket and the caller are closed by
    whoever made them."""

    def __init__(
        self, raw: socket.socket, sock: trio.socket.SocketType, caller: Caller, service: Service, pace: Pace
    ) -> None:
        self._raw = raw
        self._pace = pace
        self._sock = sock
        self._caller = caller
        self._service = service
        self._asked: deque[wire.Request | bytes] = deque()
        self._working = False
        self._following = False
        self._all = trio.CancelScope()

    async def converse(self) -> None:
        """Returns when the caller left, was dropped, or was closed for a foreign writer."""
        limits = self._service.limits
        with self._all:
            async with trio.open_nursery() as watchers:
                async with trio.open_nursery() as self._tasks:
                    self._outbox = Outbox(
                        self._raw, self._tasks, limit=limits.outbox, stall=limits.stall, drop=self._drop
                    )
                    await self._read()
                    # Its writing has ended: what it asked is answered still, unless it has gone altogether.
                    watchers.start_soon(self._watch)
                watchers.cancel_scope.cancel()
        self._outbox.close()

    async def _watch(self) -> None:
        await hung_up(self._raw)
        self._all.cancel()

    async def _read(self) -> None:
        splitter = wire.Splitter(self._service.limits.line)
        while True:
            try:
                got = await receive(self._sock)
            except OSError:
                self._all.cancel()
                return
            if not got.data:
                return
            foreign = self._foreign(got)
            if foreign is not None:
                self._service.on_foreign(self._caller.principal, foreign)
                self._all.cancel()
                return
            watch = turn.Watch()
            for line in splitter.feed(got.data):
                self._take(line)
                if watch.over:
                    await self._pace.keep()
                    watch.again()

    def _foreign(self, got: Received) -> Principal | None:
        if got.pid is None or got.uid is None:
            return Nobody("the kernel did not say who wrote")
        return self._caller.writes(got.pid, got.uid)

    def _take(self, line: bytes | None) -> None:
        """Queues what a line asks, so that answers keep the order of the lines."""
        item = self._read_line(line)
        ident = None if isinstance(item, bytes) else item.id
        if self._following:
            self._asked.append(item)
            self._refuse_the_rest()
        elif len(self._asked) >= self._service.limits.queue:
            message = f"{len(self._asked)} requests of this connection wait already: read their answers first"
            self._outbox.put(wire.error(ident, wire.BUSY, message))
        elif isinstance(item, bytes) and not self._working:
            self._outbox.put(item)
        else:
            self._asked.append(item)
            if not self._working:
                self._working = True
                self._tasks.start_soon(self._work)

    def _refuse_the_rest(self) -> None:
        """What comes after a request that goes on until the caller leaves would wait for ever."""
        for item in self._asked:
            ident = None if isinstance(item, bytes) else item.id
            self._outbox.put(wire.error(ident, wire.BUSY, "this connection follows: ask on another"))
        self._asked.clear()

    def _read_line(self, line: bytes | None) -> wire.Request | bytes:
        """The request, or the answer to what is none."""
        if line is None:
            problem = wire.WireError(wire.INVALID, f"a line has more than {self._service.limits.line} bytes")
        else:
            try:
                return wire.parse(line)
            except wire.WireError as found:
                problem = found
        self._service.on_fault("line", f"{self._caller.principal}: {problem.message}")
        return wire.failed(problem.id, problem)

    async def _work(self) -> None:
        while self._asked:
            item = self._asked.popleft()
            self._outbox.put(item if isinstance(item, bytes) else await self._answer(item))
            await trio.lowlevel.checkpoint()
        self._working = False

    async def _answer(self, request: wire.Request) -> bytes:
        await self._pace.keep()
        try:
            return await _encoded(request.id, await self._ask(request))
        except wire.WireError as problem:
            return wire.failed(request.id, problem)
        except RefusedError as no:
            return wire.error(request.id, wire.REFUSED, no.refusal.message, dict(no.refusal.plain()))
        except Exception as problem:  # noqa: BLE001 - a bug behind one verb ends that answer, not the daemon; it is told
            self._service.on_fault("internal", f"{wire.brief(request.method)}: {problem!r}")
            return wire.error(
                request.id,
                wire.INTERNAL,
                f"the daemon failed to answer: {type(problem).__name__}; it is on record",
            )

    async def _ask(self, request: wire.Request) -> object:
        principal = self._caller.check()
        verb = check.method(request.method)
        try:
            check.authority(principal, verb)
        except RefusedError as no:
            await self._service.on_refused(principal, verb.name, no.refusal)
            raise
        check.params(verb, request.params)

        def notify(params: dict[str, object]) -> None:
            self._outbox.put(wire.notification(verb.name, params))

        self._following = verb.streams and request.params.get("follow") is True
        if self._following:
            self._refuse_the_rest()
        try:
            return await self._service.dispatch(
                Call(principal, verb.name, request.params, notify, self._outbox.put, self._outbox.drained)
            )
        finally:
            self._following = False

    def _drop(self, why: str) -> None:
        if why:
            self._service.on_fault("dropped", f"{self._caller.principal} {why}")
        self._all.cancel()
