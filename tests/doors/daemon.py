"""A real door with verbs of its own, and a caller on its loop: what the tests of a door stand on."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import trio
import trio.testing

from supervisor.core.authority import Agent, Principal
from supervisor.core.refusals import Refusal, refuse
from supervisor.doors import wire
from supervisor.doors.control import serve
from supervisor.doors.service import Call, Limits, Service
from supervisor.runtime.peers import Peers
from tests.house import PATIENCE

LARGE = Limits()
SMALL = Limits(outbox=64 * 1024, stall=0.2)


class Daemon:
    """A real door whose verbs do what these tests need: `status` answers, `tree` waits until released, `logs` follows,
    `usage` fails, `whoami` is refused, `config` answers what is no JSON, `up` answers what it was sent."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.path = path
        self.runs: dict[tuple[int, int], Agent] = {}
        self.service = Service(
            Peers(os.geteuid(), self.runs, set()).resolve,
            self.dispatch,
            limits,
            on_refused=self._refused,
            on_fault=lambda sort, words: self.faults.append((sort, words)),
        )
        self.faults: list[tuple[str, str]] = []
        self.refused: list[tuple[Principal, str, Refusal]] = []
        self.begun: list[str] = []
        self.cancelled: list[str] = []
        self.release = trio.Event()
        #: what is refused goes on record once this is set
        self.recording = trio.Event()
        self.recording.set()
        self.follow: Callable[[Call], Awaitable[object]] = self._sleep

    async def _refused(self, principal: Principal, verb: str, refusal: Refusal) -> None:
        await self.recording.wait()
        self.refused.append((principal, verb, refusal))

    async def _sleep(self, _call: Call) -> object:
        return await trio.sleep_forever()

    async def dispatch(self, call: Call) -> object:
        self.begun.append(call.verb)
        try:
            return await self._do(call)
        except trio.Cancelled:
            self.cancelled.append(call.verb)
            raise

    async def _do(self, call: Call) -> object:
        match call.verb:
            case "status":
                return {"asked": call.params.get("project", "")}
            case "tree":
                await self.release.wait()
                return "released"
            case "logs":
                return await self.follow(call)
            case "usage":
                raise ZeroDivisionError
            case "whoami":
                raise refuse("budget", "too much", field="tokens", asked=5, held=3, ask="lead")
            case "stop":
                raise wire.TimedOut("lead has not ended within 5s")
            case "config":
                return {"never": object()}
            case _:
                return "x" * int(str(call.params["path"]))


class Client:
    """A caller on the daemon's own loop."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._splitter = wire.Splitter(64 << 20)
        self._lines: list[bytes | None] = []

    async def send(self, *lines: bytes) -> None:
        await self.stream.send_all(b"".join(lines))

    async def ask(self, method: str, ident: int | str = 1, **params: object) -> wire.Reply:
        await self.send(wire.request(ident, method, params))
        return await self.reply()

    async def reply(self) -> wire.Reply:
        while not self._lines:
            got = await self.stream.receive_some(65536)
            assert got, "the daemon hung up"
            self._lines += self._splitter.feed(got)
        line = self._lines.pop(0)
        assert line is not None
        return wire.reply(line)

    async def error(self) -> wire.WireError:
        reply = await self.reply()
        assert isinstance(reply, wire.Failure)
        return reply.error

    async def hung_up(self) -> bool:
        """Reads to the end; whether there is one."""
        try:
            while await self.stream.receive_some(1 << 20):
                pass
        except trio.BrokenResourceError:
            pass
        return True


@asynccontextmanager
async def daemon(tmp_path: Path, limits: Limits = LARGE) -> AsyncIterator[Daemon]:
    state = Daemon(tmp_path / "run" / "control", limits)
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(serve, state.path, state.service))
            yield state
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def client(state: Daemon) -> AsyncIterator[Client]:
    async with await trio.open_unix_socket(str(state.path)) as stream:
        yield Client(stream)


def number_of(value: object, key: str) -> Any:
    assert isinstance(value, wire.Result)
    assert isinstance(value.value, dict)
    return value.value[key]
