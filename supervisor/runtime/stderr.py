"""The stderr of one run, emptied into a transcript under its cap. Must never let an agent wait, nor fill the disk."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

import trio

from supervisor.runtime import turn
from supervisor.runtime.transcript import CHUNK, Transcript


class Stderr:
    """A pipe that we empty into a transcript. Not the file itself: whoever holds it could fill the disk. Not a
    socket: a shell's `>/dev/stderr` cannot open one, and nothing is decided by what stands here."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.said: Callable[[], None] = lambda: None  #: called when something came
        self._ours, self.fd = os.pipe2(os.O_CLOEXEC)  #: `fd` is the run's end, for the launcher
        os.set_blocking(self._ours, False)

    async def pump(self) -> None:
        """Once the run is spawned: keep what it says, to the end of all who hold the pipe."""
        self._hand_over()
        with contextlib.suppress(trio.ClosedResourceError):
            while True:
                try:
                    async with turn.mine():  # a flood may not keep others from their turn
                        if self._ours < 0 or not self._read():
                            return  # closed while it waited, or at its end
                except BlockingIOError:
                    await trio.lowlevel.wait_readable(self._ours)

    def close(self) -> None:
        """Keep what still lies in the pipe, and close it."""
        if self._ours < 0:
            return
        self._hand_over()
        with contextlib.suppress(BlockingIOError):
            for _ in range(16):  # the pipe holds no more; whoever escaped with it may write for ever
                if not self._read():
                    break
        trio.lowlevel.notify_closing(self._ours)
        os.close(self._ours)
        self._ours = -1

    def _read(self) -> int:
        data = os.read(self._ours, CHUNK)
        self.transcript.write(data)
        if data:
            self.said()
        return len(data)

    def _hand_over(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
