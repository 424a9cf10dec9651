"""Reads what the fleet writes on stdin, and waits: for an input, a time, a child. Nothing else may wait."""

from __future__ import annotations

import os
import select
import time

#: What one poll can wait for, in milliseconds; a longer sleep is several of them.
_LONGEST = 1_000_000_000


class CutError(Exception):
    """The running turn was interrupted."""


class StopError(Exception):
    """stdin is at its end: the polite word to leave."""


class Inbox:
    """Inputs that wait for their turn. `busy` says that a turn runs: only then is there something to cut. With
    `patient` the end of stdin cuts nothing: it says that no more will come."""

    def __init__(self, *, patient: bool = False) -> None:
        self.waiting: list[dict[str, str]] = []
        #: what a person said to prompts, by prompt
        self.answers: dict[str, dict[str, str]] = {}
        self._patient = patient
        self.busy = False
        #: stdin is not looked at any more
        self.deaf = False
        self._buffer = b""
        self._cut = self._ended = False

    def next(self) -> dict[str, str]:
        """The next input; StopError when none will come."""
        while not self.waiting:
            if self._ended:
                raise StopError
            self.wait(None)
        return self.waiting.pop(0)

    def drain(self) -> list[dict[str, str]]:
        """All that waits, unread."""
        waiting, self.waiting = self.waiting, []
        return waiting

    def wait(self, seconds: float | None, *fds: int) -> list[int]:
        """Until one of `fds` can be read (these are returned), stdin said something, or the time is over."""
        poll = select.poll()
        for fd in fds if self.deaf or self._ended else (0, *fds):
            poll.register(fd, select.POLLIN)
        ready = [fd for fd, _ in poll.poll(None if seconds is None else min(max(0.0, seconds) * 1000, _LONGEST))]
        if 0 in ready and not self.deaf:
            self._read()
        if self._cut:
            self._cut = False
            if self.busy:
                raise CutError
        if self._ended and (not self._patient if self.busy else not self.waiting):
            raise StopError
        return [fd for fd in ready if fd != 0]

    def sleep(self, seconds: float) -> None:
        """A given time; cut by an interruption or the end of stdin."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.wait(left)

    def _read(self) -> None:
        try:
            chunk = os.read(0, 1 << 16)
        except ConnectionResetError:
            chunk = b""
        if not chunk:
            self._ended = True
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        if not lines:
            return
        import json  # noqa: PLC0415 - costs a third of the start; most agents of a fleet are idle

        for line in lines:
            message = json.loads(line)
            if message.get("fleet") == "interrupt":
                self._cut = True
            elif message.get("fleet") == "answer":
                self.answers[message["prompt"]] = message
            else:
                you = message.pop("you", None)
                message["words"] = you.get("words", "") if isinstance(you, dict) else ""
                self.waiting.append(message)
