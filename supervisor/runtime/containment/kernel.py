"""The few kernel calls that the standard library lacks: subreaper, death signal, inotify. Stdlib only, because the
warden uses it too; it decides nothing."""

from __future__ import annotations

import ctypes
import os

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37

IN_MODIFY = 0x2

_libc = ctypes.CDLL(None, use_errno=True)


def _called(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def set_subreaper(on: bool) -> None:
    """Orphans below this process become its children (or no longer do)."""
    _called(_libc.prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0), "PR_SET_CHILD_SUBREAPER")


def is_subreaper() -> bool:
    """Do orphans below this process become its children?"""
    answer = ctypes.c_int()
    _called(_libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0), "PR_GET_CHILD_SUBREAPER")
    return bool(answer.value)


def die_with_parent(signal: int) -> None:
    """This process gets `signal` when the thread that forked it ends. Check getppid() after it."""
    _called(_libc.prctl(_PR_SET_PDEATHSIG, int(signal), 0, 0, 0), "PR_SET_PDEATHSIG")


def inotify_open() -> int:
    """A new non-blocking inotify fd."""
    return _called(_libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK), "inotify_init1")


def inotify_add(fd: int, path: str, mask: int) -> int:
    """Watch `path`; the number of the watch."""
    return _called(_libc.inotify_add_watch(fd, os.fsencode(path), mask), f"inotify_add_watch {path}")


def inotify_remove(fd: int, watch: int) -> None:
    """No longer watch; a watch that is gone already is fine."""
    _libc.inotify_rm_watch(fd, watch)
