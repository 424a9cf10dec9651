"""A lock file: one process holds it, its death lets it go, and others learn who it is. Must never delete the file: a
deleted file's lock holds nothing off."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

from supervisor.runtime.journal import disk

#: A free lock may seem taken for a moment, by someone who only looks or who has not yet written its pid.
_LOOKS = 50
_PAUSE = 0.01


class TakenError(Exception):
    """Another process holds the lock: `pid`, or None where it cannot be seen from here."""

    def __init__(self, path: Path, pid: int | None) -> None:
        self.pid = pid
        self.holder = "a process of another namespace" if pid is None else f"process {pid}"
        super().__init__(f"{path} is held by {self.holder}")


def take(path: Path) -> int:
    """Take the lock; it is held until the returned descriptor is closed. Raises TakenError, or OSError."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    pid = None
    for _ in range(_LOOKS):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _holder(lock)
            if pid is not None:
                break
            time.sleep(_PAUSE)
            continue
        with contextlib.suppress(OSError):  # the pid is for people; on a full disk the lock is one all the same
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        return lock
    os.close(lock)
    raise TakenError(path, pid)


def hold(lock: int, path: Path) -> int:
    """A lock that is held already, taken anew where someone removed its file: that one holds nobody off any more."""
    if not disk.is_away(lock, path):
        return lock
    fresh = take(path)
    os.close(lock)
    return fresh


def is_taken(path: Path) -> bool:
    """Does someone hold it? Leaves no file where there is none."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _holder(lock: int) -> int | None:
    """Who the file says holds it, if that is someone who lives: a dead holder's pid stays until the next one writes."""
    said = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
    return int(said) if said.isdigit() and Path("/proc", said).exists() else None
