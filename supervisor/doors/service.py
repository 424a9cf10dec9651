"""What a door offers and what it asks for, as values: calls, the bounds of a connection, and what the daemon plugs
in."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import Protocol

from attrs import field, frozen

from supervisor.core.authority import Principal
from supervisor.core.refusals import Refusal
from supervisor.doors import wire


class Caller(Protocol):
    """Who is at the other end of a connection (`runtime.peers.Caller`)."""

    principal: Principal

    def check(self) -> Principal:
        """Who it is now: the same, or nobody."""

    def writes(self, pid: int, uid: int) -> Principal | None:
        """Who wrote, if it was someone else than the caller."""

    def close(self) -> None:
        """The connection is over."""


@frozen
class Call:
    """One admitted request. `notify` sends one line of an answer that goes on, without waiting: who does not read
    loses the connection, and with it this call. `relay` sends such lines as `wire.notification` made them. `drained`
    waits until what was sent is with the kernel, for replaying much at once."""

    principal: Principal
    verb: str
    params: dict[str, object]
    notify: Callable[[dict[str, object]], None] = field(repr=False)
    relay: Callable[[bytes], None] = field(repr=False)
    drained: Callable[[], Awaitable[None]] = field(repr=False)


@frozen
class Limits:
    """The bounds of a door. Agents and nobodies together leave room for the operator; one caller leaves room for the
    others."""

    line: int = wire.LIMIT
    #: requests of one connection that are not yet answered
    queue: int = 64
    #: bytes that wait for a caller who does not read (one answer may be larger), and for how many seconds it may take
    #: none
    outbox: int = 4 << 20
    stall: float = 30.0
    #: connections of one process; of the operator; of one agent, of all nobodies; and of all but the operator
    process: int = 64
    operators: int = 1024
    each: int = 64
    others: int = 512


def _silent(*_: object) -> None:
    pass


async def _unrecorded(*_: object) -> None:
    pass


@frozen
class Service:
    """What serves a door. `dispatch` answers a call, or raises core's RefusedError, `wire.BadParams` or
    `wire.TimedOut`; it is cancelled when the caller hangs up. `on_refused` (principal, verb, refusal) is told what the
    door itself refused, and returns when that is on record: the caller hears of it then. The others are told, and must
    not block or raise: `on_foreign` (principal, writer) of a connection that another wrote on, `on_fault` (sort, words)
    of the rest."""

    resolve: Callable[[socket.socket], Caller]
    dispatch: Callable[[Call], Awaitable[object]]
    limits: Limits = Limits()
    on_foreign: Callable[[Principal, Principal], None] = _silent
    on_refused: Callable[[Principal, str, Refusal], Awaitable[None]] = _unrecorded
    on_fault: Callable[[str, str], None] = _silent
