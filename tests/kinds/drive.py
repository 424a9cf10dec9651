"""Drives conversations in tests: from recorded bytes, and with a real process over pipes as a host would."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import trio
from attrs import define, evolve, field

from supervisor.core.facts import Fact, Input, Spent
from supervisor.core.ledger import ZERO, Meter, Usage
from supervisor.core.spec import KindSpec, Spec
from supervisor.kinds.kind import Conversation, Kind, Seat
from tests.house import PATIENCE

F = TypeVar("F", bound=Fact)

SEAT = Seat("a7", 3, "worker", session="", resume=False, home="", spec=Spec(kind="lines"))


def seat(**changes: object) -> Seat:
    return evolve(SEAT, **changes)  # type: ignore[arg-type]  # evolve checks the names itself


def task(text: str, name: str = "m1") -> Input:
    return Input(name, "task", text, "operator")


def feed(conversation: Conversation, data: bytes) -> list[Fact]:
    """What a recorded stream says, a torn last line included."""
    facts = conversation.open()
    for line in data.split(b"\n"):
        if line:
            facts += conversation.read(line)
    return facts + conversation.ended()


def only(facts: list[Fact], kind: type[F]) -> list[F]:
    return [fact for fact in facts if isinstance(fact, kind)]


def booked(facts: list[Fact], meter: Meter | None = None) -> Usage:
    """What an accountant books of them."""
    meter, total = meter or Meter(), ZERO
    for fact in only(facts, Spent):
        for report in fact.reports:
            total += meter.book(report)
    return total


def context(facts: list[Fact]) -> float | None:
    """The last word on how full the window is."""
    said = [r.context for fact in only(facts, Spent) for r in fact.reports if r.context is not None]
    return said[-1] if said else None


@define
class Driven:
    """A living program and what its conversation has said so far."""

    process: trio.Process
    conversation: Conversation
    facts: list[Fact] = field(factory=list)
    #: its stdout, line by line
    printed: list[bytes] = field(factory=list)
    ended: trio.Event = field(factory=trio.Event)
    _news: trio.Event = field(factory=trio.Event)
    _writing: trio.Lock = field(factory=trio.Lock)
    _shut: bool = False

    async def flush(self) -> None:
        await self.write(self.conversation.outgoing())
        if self.conversation.finished and not self._shut:
            self._shut = True
            assert self.process.stdin is not None
            await self.process.stdin.aclose()

    async def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        async with self._writing:
            if data and not self._shut:
                await self.process.stdin.send_all(data)

    async def hand(self, *inputs: Input, words: str = "") -> None:
        self.conversation.hand(inputs, words)
        await self.flush()

    async def interrupt(self) -> None:
        self.conversation.interrupt()
        await self.flush()

    async def close(self) -> int:
        """The polite way to stop."""
        self.conversation.close()
        await self.flush()
        self._shut = True
        assert self.process.stdin is not None
        await self.process.stdin.aclose()
        code = await self.process.wait()
        await self.ended.wait()
        return code

    async def until(self, done: Callable[[list[Fact]], object]) -> None:
        while not done(self.facts):
            if self.ended.is_set():
                raise AssertionError(f"the program ended without it: {self.facts[-5:]}")
            await self._news.wait()

    async def until_count(self, kind: type[Fact], count: int) -> None:
        await self.until(lambda facts: len(only(facts, kind)) >= count)

    async def until_printed(self, words: bytes) -> None:
        """Wait for a line with these words, of which the conversation may make no fact."""
        await self.until(lambda _facts: any(words in line for line in self.printed))

    async def read(self) -> None:
        """Feed its stdout to the conversation, to its end."""
        assert self.process.stdout is not None
        rest = b""
        async for chunk in self.process.stdout:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self.printed.append(line)
                self._take(self.conversation.read(line))
            await self.flush()
        self._take((self.conversation.read(rest) if rest else []) + self.conversation.ended())
        self.ended.set()
        self._wake()

    def _take(self, facts: list[Fact]) -> None:
        self.facts += facts
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = trio.Event()


@asynccontextmanager
async def driven(
    kind: Kind,
    place: Seat,
    *,
    command: tuple[str, ...] = (),
    env: dict[str, str] | None = None,
    cwd: str = "/",
) -> AsyncGenerator[Driven]:
    """A program under way; killed at the end of the block if it still lives."""
    launch = kind.launch(KindSpec("tested", kind.name, command), place)
    environment = {**(os.environ if env is None else env), **dict(launch.env)}
    for name, text in launch.files:
        await trio.Path(place.home, name).write_text(text)
    process = await trio.lowlevel.open_process(
        launch.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=cwd
    )
    assert process.stdin is not None
    assert process.stdout is not None
    async with process.stdout, process.stdin:
        live = Driven(process, kind.converse(place))
        try:
            async with trio.open_nursery() as nursery:
                live.facts += live.conversation.open()
                nursery.start_soon(live.read)
                with trio.fail_after(2 * PATIENCE):
                    await _flush_unless_gone(live)
                    yield live
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                if process.returncode is None:
                    process.kill()
                await process.wait()


async def _flush_unless_gone(live: Driven) -> None:
    try:
        await live.flush()
    except trio.BrokenResourceError:
        return
