"""A writer that dies, or whose disk fails, at a chosen call to the system in the middle of a rotation:
`python -m tests.journal.steps DIRECTORY HOW`. For each call it makes a copy of `DIRECTORY/base` under the call's
number, with `told` in it: the records that were durable, and how it ended."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path
from typing import Any

from supervisor.runtime.journal.journal import Journal, JournalError
from tests.journal.life import PROJECT, batches, take

#: What a rotation and the writes around it ask of the system.
CALLS = ("open", "write", "fsync", "fdatasync", "link", "rename", "unlink", "listdir", "close", "ftruncate")
#: What a full disk refuses.
NEED_ROOM = ("open", "write", "fsync", "fdatasync", "link", "rename")
#: How many records the writer adds.
ADDED = 4


class Armed:
    """Counts the calls; at `point`, dies before the call (`kill`), in the middle of a write (`half`), or lets the disk
    refuse that call (`once`) or all from then on (`full`)."""

    def __init__(self, how: str, point: int) -> None:
        self.how = how
        self.point = point
        self.seen = 0

    def wrap(self, name: str) -> None:
        """Put it before a function of `os`."""
        real: Callable[..., Any] = getattr(os, name)

        def call(*args: Any, **named: Any) -> Any:
            if self.how in ("once", "full"):
                if name in NEED_ROOM:
                    self.seen += 1
                    if self.seen == self.point or (self.how == "full" and self.seen > self.point):
                        raise OSError(errno.ENOSPC, "no space left on device")
                return real(*args, **named)
            self.seen += 1
            if self.seen == self.point:
                if self.how == "half" and name == "write":
                    real(args[0], bytes(args[1])[: len(args[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **named)

        setattr(os, name, call)


def write(directory: Path, how: str, point: int) -> bool:
    """The writer: one batch that fills the segment, the rotation, and more batches. Returns whether the point came."""
    tell = os.open(directory / "told", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    say = os.write
    journal, past, _ = Journal.open(directory, PROJECT, (directory / "journal.jsonl").stat().st_size + 1)
    project = past.project()
    armed = Armed(how, point)
    for name in CALLS:
        armed.wrap(name)
    for told in islice(batches(), journal.seq, journal.seq + ADDED):
        try:
            take(journal, project, told)
        except JournalError:
            say(tell, b"failed %d\n" % journal.durable)
            break
        say(tell, b"%d%b\n" % (journal.durable, b" put off" if journal.trouble else b""))
    return armed.seen >= point


def main(directory: Path, how: str) -> None:
    """All points, each in a process of its own, until one is beyond the last."""
    for point in count(1):
        room = directory / str(point)
        shutil.copytree(directory / "base", room)
        writer = os.fork()
        if writer == 0:
            os._exit(0 if write(room, how, point) else 77)
        _, status = os.waitpid(writer, 0)
        if os.waitstatus_to_exitcode(status) == 77:
            shutil.rmtree(room)
            return
        if os.waitstatus_to_exitcode(status) not in (0, -signal.SIGKILL):
            raise SystemExit(f"point {point}: {status}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
