"""One inotify fd for many files: calls back when one of them is written. Decides nothing."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import trio

from supervisor.runtime.containment import kernel

if TYPE_CHECKING:
    from collections.abc import Callable

_EVENT = struct.Struct("iIII")


class Watch:
    """Start `serve` once, in a task; what happened before it started is told then."""

    def __init__(self) -> None:
        self._fd = kernel.inotify_open()
        self._calls: dict[int, Callable[[], None]] = {}
        self._served = False

    def add(self, path: str, call: Callable[[], None]) -> int:
        watch = kernel.inotify_add(self._fd, path, kernel.IN_MODIFY)
        self._calls[watch] = call
        return watch

    def remove(self, watch: int) -> None:
        if self._calls.pop(watch, None) is not None and self._fd >= 0:
            kernel.inotify_remove(self._fd, watch)

    def start(self) -> None:
        """Serve as long as this trio run lasts."""
        if not self._served:
            self._served = True
            trio.lowlevel.spawn_system_task(self._serve)

    async def _serve(self) -> None:
        while True:
            try:
                await trio.lowlevel.wait_readable(self._fd)
                content = os.read(self._fd, 65536)
            except BlockingIOError:
                continue
            except (trio.ClosedResourceError, OSError):
                return
            at = 0
            while at < len(content):
                watch, _, _, length = _EVENT.unpack_from(content, at)
                at += _EVENT.size + length
                if (call := self._calls.get(watch)) is not None:
                    call()

    def close(self) -> None:
        if self._fd >= 0:
            if self._served:
                trio.lowlevel.notify_closing(self._fd)
            os.close(self._fd)
            self._fd = -1
