"""How a journal's next segment begins: step by step, so that a death or a full disk at any of them leaves one whole
journal. It must never take a name from a record, nor remove anything but what can be made again."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from attrs import frozen

from supervisor.core.state import Project
from supervisor.runtime.journal import disk, snapshot
from supervisor.runtime.journal.chain import Carry, Link, seal_carry
from supervisor.runtime.journal.segments import NAME, numbered, snapshot_of, snapshots

#: A first record is written under this name and gets its own when it is whole.
FRESH = "journal.new"


class UnsureError(Exception):
    """The new segment has its name, and nobody can say whether the disk knows it."""


@frozen
class Fresh:
    """The new segment, open: its size, what its first batch continues, and the size of its snapshot."""

    file: int
    size: int
    link: Link
    snapshot: int


def rotate(directory: Path, number: int, state: Project, after: Link) -> Fresh:
    """Begin segment `number` after record `after`, whose state is `state`. On an OSError, or what a state that cannot
    be written raises, all is as it was."""
    current, fresh = directory / NAME, directory / FRESH
    file = -1
    try:
        digest, taken = snapshot.write(snapshot_of(directory, number), state, after)
        carry = Carry(time.time(), state.id, number, after.seq, digest, snapshot.SHAPE, prev=after.hash)
        line, sealed = seal_carry(carry)
        file = os.open(fresh, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        disk.append(file, line)
        os.fsync(file)
        with contextlib.suppress(FileNotFoundError):  # someone took it away: there is nothing to keep
            _name(current, numbered(directory, number - 1))
        disk.sync_directory(directory)  # the old one has both its names on disk before it loses the first
        fresh.rename(current)
    except BaseException:
        if file >= 0:
            os.close(file)
        tidy(directory, number - 1)
        raise
    try:
        disk.sync_directory(directory)
    except OSError as error:
        os.close(file)
        raise UnsureError(f"segment {number} may be on disk, or not: {error.strerror}") from error
    _prune(directory, number)
    return Fresh(file, len(line), Link(after.seq, sealed), taken)


def tidy(directory: Path, segment: int) -> None:
    """Remove what a rotation left that never came to its end; `segment` is the one that is written. What cannot be
    removed disturbs nobody."""
    snap, old = snapshot_of(directory, segment + 1), numbered(directory, segment)
    for left in (directory / FRESH, snap, snapshot.fresh(snap)):
        with contextlib.suppress(OSError):
            left.unlink()
    with contextlib.suppress(OSError):
        if os.path.samefile(directory / NAME, old):
            old.unlink()


def _name(current: Path, old: Path) -> None:
    """A second name for the segment that ends: at no moment is there none."""
    try:
        os.link(current, old)
    except FileExistsError:
        if not os.path.samefile(current, old):
            raise


def _prune(directory: Path, number: int) -> None:
    """Keep the newest snapshot and the one before it: all others can be made again, and never are."""
    for old in snapshots(directory):
        if old < number - 1:
            with contextlib.suppress(OSError):
                snapshot_of(directory, old).unlink()
