"""Whether an agents.toml is still what was accepted. The file is the person's and may have become anything: a pipe, a
device, a thousand times as large, out of reach. Must never hold up the loop."""

from __future__ import annotations

import hashlib
import os
import stat
import threading

import trio

from supervisor.doors import wire

#: How long the content may take to be read (seconds) before the answer is "unknown".
PATIENCE = 0.05

#: What tells one content of a file from another without reading it.
Looks = tuple[int, int, int]


class Changed:
    """Reads a file only when it looks different from the last time."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Looks, str]] = {}
        self._asking: set[str] = set()

    async def since(self, file: str, sha256: str) -> bool | None:
        """Whether the file differs from the content with this hash; None where it cannot be read, or not now."""
        looks = _looks(file)
        if looks is None:
            return None
        known = self._known.get(file)
        if known is None or known[0] != looks:
            if file in self._asking:
                return None  # whoever reads it has had no answer yet
            await self._ask(file)
            known = self._known.get(file)
        return None if known is None or known[0] != looks else known[1] != sha256

    async def _ask(self, file: str) -> None:
        begun = threading.Event()
        self._asking.add(file)
        try:
            with trio.move_on_after(PATIENCE):
                await trio.to_thread.run_sync(self._read, file, begun, abandon_on_cancel=True)
        finally:
            if not begun.is_set():  # no thread was free: nobody reads it
                self._asking.discard(file)

    def _read(self, file: str, begun: threading.Event) -> None:
        begun.set()
        try:
            opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            try:
                about = os.fstat(opened)
                if stat.S_ISREG(about.st_mode):
                    # No content that was accepted is as large.
                    large = about.st_size > wire.LIMIT
                    found = "" if large else hashlib.sha256(os.read(opened, wire.LIMIT + 1)).hexdigest()
                    self._known[file] = (_key(about), found)
            finally:
                os.close(opened)
        except OSError:
            self._known.pop(file, None)
        finally:
            self._asking.discard(file)


def _looks(file: str) -> Looks | None:
    try:
        about = os.stat(file)
    except OSError:
        return None
    return _key(about) if stat.S_ISREG(about.st_mode) else None


def _key(about: os.stat_result) -> Looks:
    return about.st_ino, about.st_size, about.st_mtime_ns
