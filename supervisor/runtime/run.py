"""One process of an agent, from spawn to empty: its stdio, its conversation, and the facts that come of both.
It does not decide when a run ends; its host does."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable

import trio

from supervisor.core.facts import Exited, Garbled, Input, Killed, Unstarted
from supervisor.kinds.kind import LINE_LIMIT, Conversation, Kind
from supervisor.launchers.local import Process
from supervisor.runtime import points
from supervisor.runtime.containment import Cell
from supervisor.runtime.heard import Heard
from supervisor.runtime.ladder import end
from supervisor.runtime.stderr import Stderr
from supervisor.runtime.transcript import Transcript

CHUNK = 65536
#: More lines than this in one chunk are looked through for the few that matter first.
FEW = 16
#: Once nothing of a run is alive, its stdout is read until its end, or until it has been silent this long (seconds):
#: a process that escaped may hold it open.
SILENCE = 0.2
#: The longest that this reading may take (seconds): what escaped may also write for ever.
LAST_WORDS = 2.0
#: What an agent left behind that exited by itself gets this long (seconds) after SIGTERM.
LEFTOVERS = 1.0

#: What had to be ended, and what could not be.
Ended = tuple[tuple[Killed, ...], tuple[int, ...]]


class Run:
    """A spawned run. `read` and `write` are its two tasks; `finish` ends it and says how it went."""

    def __init__(
        self,
        agent: str,
        number: int,
        process: Process,
        cell: Cell,
        kind: Kind,
        talk: Conversation,
        transcript: Transcript,
        stderr: Stderr,
        heard: Heard,
    ) -> None:
        self.agent = agent
        self.number = number
        self.process = process
        self.cell = cell
        self.talk = talk
        self.heard = heard
        self.begun = trio.current_time()
        self.at_end = trio.Event()
        self._transcript = transcript
        self._stderr = stderr
        self._kind = kind
        self._last_byte = self.begun
        self._rest = b""
        self._skipping = 0
        self._until = float("-inf")
        self._sooner = trio.CancelScope()
        # Its tasks go on while the host is cancelled: the program may still speak, and is heard.
        self._scopes = [trio.CancelScope(shield=True) for _ in range(3)]
        self._unsent = bytearray()
        self._to_send = trio.Event()
        self._sent = trio.Event()
        self._closing = False

    def __repr__(self) -> str:
        return f"<Run {self.number} of {self.agent}, pid {self.process.pid}>"

    # --- towards the program

    def open(self) -> None:
        """The process is there: say what must be said first."""
        self.heard.take(self.talk.open())
        self._queue()

    def hand(self, inputs: tuple[Input, ...], words: str) -> None:
        """Give texts to the program."""
        points.reach("handing")
        self.talk.hand(inputs, words)
        self._queue()

    def interrupt(self) -> None:
        """Cut the running turn."""
        self.talk.interrupt()
        self._queue()

    def _queue(self) -> None:
        data = self.talk.outgoing()
        if data:
            self._unsent += data
            self._to_send.set()

    async def write(self) -> None:
        """The task that writes stdin: it goes on while the run is being ended."""
        with self._scopes[0]:
            while not (self._closing and not self._unsent):
                await self._to_send.wait()
                self._to_send = trio.Event()
                data, self._unsent = bytes(self._unsent), bytearray()
                try:
                    if data:
                        await self.process.stdin.send_all(data)
                        points.reach("handed")
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    break  # it closed its stdin; what it did not read stays undelivered with it
            await self.process.stdin.aclose()
        self._sent.set()

    async def polite(self) -> None:
        """The kind's own way to stop: its last words, then the end of its stdin."""
        self.talk.close()
        self._closing = True
        self._unsent += self.talk.outgoing()
        self._to_send.set()
        await self._sent.wait()

    # --- from the program

    async def read(self) -> None:
        """The task that reads stdout, always and to its end, so that no program ever waits for us."""
        with self._scopes[1]:
            try:
                while chunk := bytes(await self.process.stdout.receive_some(CHUNK)):
                    self._last_byte = trio.current_time()
                    self._transcript.write(chunk)
                    self._rest = self._lines(self._rest + chunk if self._rest else chunk)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # reset by its death: the same as the end
            self._last_words()

    def _lines(self, data: bytes) -> bytes:
        """Hear the whole lines; returns the rest. Beyond the limit bytes are counted and dropped."""
        *whole, rest = data.split(b"\n")
        mark = self._kind.mark
        if len(whole) > FEW and mark:
            # Plain output by the megabyte: only its last line is anyone's to read.
            plain = next((line for line in reversed(whole) if line and mark not in line), None)
            first = [whole[0]] if self._skipping else []
            whole = first + [line for line in whole[len(first) :] if mark in line or line is plain]
        if whole and self._skipping:
            self._skipped(len(whole.pop(0)))
        for line in whole:
            if len(line) > LINE_LIMIT:
                self.heard.take([self._garbled(len(line))])
            elif line:
                self._line(line)
        if self._skipping or len(rest) > LINE_LIMIT:
            self._skipping += len(rest)
            return b""
        return rest

    def _skipped(self, tail: int) -> None:
        self.heard.take([self._garbled(self._skipping + tail)])
        self._skipping = 0

    def _garbled(self, size: int) -> Garbled:
        return Garbled(self.agent, self.number, 1, size, f"a line of {size} bytes; the limit is {LINE_LIMIT}")

    def _line(self, line: bytes) -> None:
        self.heard.take(self.talk.read(line))
        self._queue()

    async def read_stderr(self) -> None:
        """The task that reads stderr: for people, never for facts."""
        with self._scopes[2]:
            await self._stderr.pump()

    # --- its end

    async def left(self) -> int:
        """Wait for the leader's end; returns its status as Popen gives it."""
        return await self.process.wait()

    async def finish(self, *, until: float | None) -> None:
        """End whatever is alive of the run (None: it ended by itself), read what it still says, and report its exit."""
        points.reach("ending")
        polite = self.polite if until is not None and self.talk.polite else None
        self._until = trio.current_time() + LEFTOVERS if until is None else until
        try:
            killed, unkillable = await self._empty(polite)
            await self._drain()
            self._last_words()
            points.reach("emptied")
            self.heard.flush(await self._exit(killed, unkillable))
        finally:
            for scope in self._scopes:
                scope.cancel()
            self.process.close()
            self._stderr.close()

    def hurry(self, until: float) -> None:
        """An end that is under way may not take longer than this."""
        if until < self._until:
            self._until = until
            self._sooner.cancel()

    async def _empty(self, polite: Callable[[], Awaitable[None]] | None) -> Ended:
        """By the ladder; again from SIGTERM on, which nobody gets twice, when there is less time than there was."""
        while True:
            with trio.CancelScope() as self._sooner:
                try:
                    return await end(self.process, self.cell, polite=polite, until=self._until)
                except OSError:
                    # Not a descriptor left to look with: one is held for the leader, the rest ends when others are free.
                    self.process.signal(signal.SIGKILL)
                    self._until = trio.current_time()
                    await trio.sleep(SILENCE)
            polite = None

    def _last_words(self) -> None:
        """All is read: hear the line that has no end, and what is only known now."""
        if self.at_end.is_set():
            return
        self.at_end.set()
        rest, self._rest = self._rest, b""
        if rest:
            self._line(rest)
        if self._skipping:
            self._skipped(0)
        self.heard.take(self.talk.ended())
        self._queue()

    async def _exit(self, killed: tuple[Killed, ...], unkillable: tuple[int, ...]) -> Exited | Unstarted:
        code: int | None = None
        if self.process.pid not in unkillable:
            code = await self.process.wait()
        if (failure := self.process.failure) is not None:
            return Unstarted(self.agent, self.number, f"{failure.filename}: {failure.strerror}")
        lasted = round(trio.current_time() - self.begun, 3)
        if code is not None and code < 0:
            return Exited(self.agent, self.number, None, -code, lasted, killed, unkillable)
        return Exited(self.agent, self.number, code, None, lasted, killed, unkillable)

    async def _drain(self) -> None:
        self._last_byte = trio.current_time()
        with trio.move_on_after(LAST_WORDS):
            while not self.at_end.is_set() and (left := self._last_byte + SILENCE - trio.current_time()) > 0:
                with trio.move_on_after(left):
                    await self.at_end.wait()
