"""One process of an agent, from spawn to empty: its stdio, its conversation, and the facts that come of both.
It does not decide when a run ends; its host does."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Iterator

import trio

from supervisor.core.facts import Exited, Fact, Garbled, Input, Killed, Spoke, TurnEnded, TurnStarted, Unstarted
from supervisor.kinds.kind import LINE_LIMIT, Conversation, Kind
from supervisor.launchers.local import Process
from supervisor.runtime import points, turn, unanswered
from supervisor.runtime.containment.cell import Cell
from supervisor.runtime.containment.ladder import end
from supervisor.runtime.heard import Heard
from supervisor.runtime.pulse import Pulse
from supervisor.runtime.sieve import Overlong, Sieve
from supervisor.runtime.stderr import Stderr
from supervisor.runtime.stdin import Stdin
from supervisor.runtime.transcript import Transcript

CHUNK = 65536
#: Of what a program is told, so much may wait to be read (bytes); beyond it the program is not heard either.
UNREAD = 8 * 1024 * 1024
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
        *,
        once: bool,
    ) -> None:
        self.agent = agent
        self.number = number
        self.process = process
        self.cell = cell
        self.talk = talk
        self.heard = heard
        self.begun = trio.current_time()
        self.pulse = Pulse()
        stderr.said = self.pulse.said
        self.at_end = trio.Event()
        self._transcript = transcript
        self._stderr = stderr
        self._last_byte = self.begun
        self._sieve = Sieve(kind.mark, LINE_LIMIT)
        self._unread = False
        self._hearing = False  # bytes were read, and wait for their turn
        self._given: set[str] = set()
        self._empty = trio.Event()
        self._until = float("-inf")
        self._sooner = trio.CancelScope()
        # Its tasks go on while the host is cancelled: the program may still speak, and is heard.
        self._scopes = [trio.CancelScope(shield=True) for _ in range(3)]
        self._stdin = Stdin(process.stdin)
        # A program that does one task and ends is waited for until its turn is over, and then for `grace` seconds.
        self.once, self._over, self._grace = once, False, float("inf")
        self._patience = trio.CancelScope()
        #: how long its agent stood by without a process before it
        self.stood = 0.0

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
        self._given = self._decided() & (self._given | {item.id for item in inputs})
        self.talk.hand(inputs, words)
        self._queue()

    def interrupt(self) -> None:
        """Cut the running turn."""
        self.talk.interrupt()
        self._queue()

    def answer(self, prompt: str, *, allow: bool | None, text: str) -> None:
        """A person's answer to what the program asked; None where there was none."""
        self.pulse.spoken_to()
        self.talk.answer(prompt, allow=allow, text=text)
        self._queue()

    def _queue(self) -> None:
        self._stdin.put(self.talk.outgoing())
        if self.talk.finished:
            self._stdin.end()

    async def write(self) -> None:
        """The task that writes stdin: it goes on while the run is being ended."""
        with self._scopes[0]:
            await self._stdin.write()
        self._stdin.hush()

    async def polite(self) -> None:
        """The kind's own way to stop: its last words, then the end of its stdin."""
        self.talk.close()
        self._queue()
        self._stdin.end()
        await self._stdin.sent()

    # --- from the program

    async def read(self) -> None:
        """The task that reads stdout, always and to its end, so that no program waits for us: but one that says more
        than can be kept, or that does not take what it is told."""
        with self._scopes[1]:
            try:
                while chunk := bytes(await self.process.stdout.receive_some(CHUNK)):
                    self._hearing = True
                    await self._hear(chunk)
                    self._hearing = False
                    await self._slow_down()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # reset by its death: the same as the end
            self._last_words()

    async def _hear(self, chunk: bytes) -> None:
        lines: Iterator[bytes | Overlong] | None = None
        more = True
        while more:
            async with turn.mine():
                self._last_byte = trio.current_time()
                self.pulse.said()
                if lines is None:
                    self._transcript.write(chunk)
                    lines = self._sieve.feed(chunk)
                more = self._some(lines)

    def _some(self, lines: Iterator[bytes | Overlong]) -> bool:
        """Hear lines for a piece of time; whether there may be more."""
        watch = turn.Watch()
        for line in lines:
            self._line(line)
            if watch.over:
                return True
        return False

    async def _slow_down(self) -> None:
        # Of a run that is empty there is no more to come than the kernel holds.
        if not self._empty.is_set() and (owed := self.heard.owed()) > 0:
            self.heard.complain("says more than the journal takes of one agent: it is read slowly")
            with trio.move_on_after(owed):
                await self._empty.wait()
        if not self._empty.is_set() and self._stdin.waiting > UNREAD:
            self.heard.complain(f"leaves over {UNREAD} bytes of its stdin unread: it is not heard until it reads")
            await self._stdin.room()

    def _line(self, line: bytes | Overlong) -> None:
        if isinstance(line, Overlong):
            self._overlong(line)
        else:
            self._take(self.talk.read(line))

    def _take(self, said: list[Fact]) -> None:
        # What was decided to be handed reaches the program only when it is on disk: a turn that ends before is another.
        if any(isinstance(fact, TurnEnded) for fact in said) and not self._decided() <= self._given:
            said = [fact for fact in said if not isinstance(fact, TurnEnded)]
        for fact in said:
            if not isinstance(fact, Spoke | Garbled):
                self.pulse.moved(turn=isinstance(fact, TurnStarted) and not self._turns())
            if self.once and isinstance(fact, TurnStarted | TurnEnded):
                self._over = isinstance(fact, TurnEnded)
                self._patience.deadline = trio.current_time() + self._grace if self._over else float("inf")
        self.heard.take(said)
        unanswered.watch(self, said)
        self._queue()

    def _turns(self) -> bool:
        node = self.heard.desk.project.agents.get(self.agent)
        return node is not None and node.turn

    def _decided(self) -> set[str]:
        """The texts that the program has by now, for all that the core knows."""
        node = self.heard.desk.project.agents.get(self.agent)
        return {item.id for item in node.handed} if node is not None and node.run == self.number else set()

    def _overlong(self, line: Overlong) -> None:
        if line.head:
            # Its beginning may say that nobody would have read it.
            facts = self.talk.overlong(line.head, line.size)
            self._unread = bool(facts)
            self.heard.take(facts)
        elif self._unread:
            self.heard.take([Garbled(self.agent, self.number, 0, line.size, f"a line of more than {LINE_LIMIT} bytes")])

    async def read_stderr(self) -> None:
        """The task that reads stderr: for people, never for facts."""
        with self._scopes[2]:
            await self._stderr.pump()

    # --- its end

    async def left(self, grace: float) -> None:
        """Wait for the leader's end, but no longer than so many seconds for one that does one task and has done it."""
        self._grace = grace
        with self._patience:
            await self.process.wait()

    async def finish(self, *, until: float | None) -> None:
        """End whatever is alive of the run (None: it ended by itself), read what it still says, and report its exit."""
        points.reach("ending")
        # One that works on its only task has had the end of its stdin long ago.
        deaf = self._stdin.ending and not self._over
        polite = self.polite if until is not None and self.talk.polite and not deaf else None
        self._until = trio.current_time() + LEFTOVERS if until is None else until
        try:
            killed, unkillable = await self._end(polite)
            self._empty.set()
            self._stdin.release()
            await self._drain()
            async with turn.mine():
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

    async def _end(self, polite: Callable[[], Awaitable[None]] | None) -> Ended:
        """By the ladder; again from SIGTERM on, which nobody gets twice, when there is less time than there was."""
        while True:
            with trio.CancelScope() as self._sooner:
                try:
                    return await end(self.process, self.cell, polite=polite, until=self._until)
                except OSError:
                    # Not a descriptor left to look with: the leader's is held, the rest ends when others are free.
                    self.process.signal(signal.SIGKILL)
                    self._until = trio.current_time()
                    await trio.sleep(SILENCE)
            polite = None

    def _last_words(self) -> None:
        """All is read: hear the line that has no end, and what is only known now."""
        if self.at_end.is_set():
            return
        self.at_end.set()
        for line in self._sieve.rest():
            self._line(line)
        self._take(self.talk.ended())

    async def _exit(self, killed: tuple[Killed, ...], unkillable: tuple[int, ...]) -> Exited | Unstarted:
        code: int | None = None
        if self.process.pid not in unkillable:
            code = await self.process.wait()
        if (failure := self.process.failure) is not None:
            return Unstarted(self.agent, self.number, f"{failure.filename}: {failure.strerror}")
        lasted = round(trio.current_time() - self.begun, 3)
        signal = -code if code is not None and code < 0 else None
        code = None if signal is not None else code
        stood = round(self.stood, 3)
        return Exited(self.agent, self.number, code, signal, lasted, killed, unkillable, self.cell.oom(), stood)

    async def _drain(self) -> None:
        self._last_byte = trio.current_time()
        with trio.move_on_after(LAST_WORDS):
            while not self.at_end.is_set():
                silent = 0.0 if self._hearing else trio.current_time() - self._last_byte
                if silent >= SILENCE:
                    return
                with trio.move_on_after(SILENCE - silent):
                    await self.at_end.wait()
