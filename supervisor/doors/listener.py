"""A door's socket file: made, told apart from a dead or another's one, watched, and taken away. It removes only a
socket that is its own or that no one answers, and must never read a word of what a caller says."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

import trio
from attrs import frozen

from supervisor.runtime.peers import CREDENTIALS

#: sizeof(sun_path) less its closing NUL.
LONGEST: Final = 107
_BACKLOG: Final = 256
_LOCK_PATIENCE: Final = 5.0
#: From Linux 6.16 on a socket can refuse descriptors: the sender gets EPERM, and we need not close them.
_SO_PASSRIGHTS: Final = 83
#: <sys/inotify.h>: moved from and to, created, deleted; the directory itself deleted, moved.
_EVENTS: Final = 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
#: Seconds between looks: when no event comes, when there are no events to be had, and after a bind that failed.
_RARELY: Final = 60.0
_BLIND: Final = 2.0
_AGAIN: Final = 1.0
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class DoorError(Exception):
    """The socket cannot be had; the message says what to do."""


class MisplacedError(DoorError):
    """Not at this place, however often it is tried."""


class TakenError(DoorError):
    """Another process answers there. `pid` is who listens, 0 if unknown."""

    def __init__(self, message: str, pid: int) -> None:
        super().__init__(message)
        self.pid = pid


@frozen
class Bound:
    """A listening socket and the file that is it. While it is open its inode cannot be another's. `stale`: a dead one's
    file was taken away for it."""

    sock: socket.socket
    path: Path
    file: tuple[int, int]
    stale: bool

    def stands(self) -> bool:
        """Its file is still in its place."""
        return _file(self.path) == self.file

    def close(self) -> None:
        """Stops listening and takes its own file away."""
        with contextlib.suppress(OSError):
            if self.stands():
                self.path.unlink()
        self.sock.close()


async def bind(path: Path) -> Bound:
    """Listens at `path`, in a directory that is ours alone. Raises DoorError; TakenError if another process answers
    there."""
    size = len(os.fsencode(path))
    if size > LONGEST:
        raise MisplacedError(
            f"the socket path {path} has {size} bytes, and Linux takes {LONGEST}: choose a shorter runtime directory"
        )
    await trio.lowlevel.checkpoint()  # whoever deletes it as fast as we bind it holds up no one else
    try:
        prepare(path.parent)
        lock = await _lock(path.parent)
        try:
            stale = _clear(path)
            return _publish(path, stale)
        finally:
            os.close(lock)
    except OSError as problem:
        raise DoorError(f"cannot listen at {path}: {problem.strerror}") from problem


def prepare(directory: Path) -> None:
    """Makes the directory, ours and 0700. One that others were meant to reach is refused, never narrowed."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    about = directory.stat()
    if not stat.S_ISDIR(about.st_mode):
        raise MisplacedError(f"{directory} is no directory")
    if about.st_uid != os.geteuid():
        raise MisplacedError(
            f"{directory} belongs to uid {about.st_uid}, not to us (uid {os.geteuid()}): choose a directory of our own"
        )
    if not about.st_mode & 0o077:
        return
    with os.scandir(directory) as entries:
        meant = about.st_mode & stat.S_ISVTX or any(_shared(entry) for entry in entries)
    if meant:
        raise MisplacedError(
            f"{directory} is open to others and holds what they can reach: choose another, or `chmod 700 {directory}`"
        )
    directory.chmod(0o700)


def answers(path: Path) -> int | None:
    """The pid that listens at a socket file, None if the file is stale. Asked by connecting: only the kernel knows."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC) as probe:
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return None
        except BlockingIOError:
            return 0  # its queue is full: slow, but there
        pid: int = CREDENTIALS.unpack(probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))[0]
        return pid


def _shared(entry: os.DirEntry[str]) -> bool:
    about = entry.stat(follow_symlinks=False)
    return about.st_uid != os.geteuid() or bool(about.st_mode & 0o077)


def _file(path: Path) -> tuple[int, int] | None:
    try:
        about = path.lstat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


async def _lock(directory: Path) -> int:
    """Held while a socket is put in place: two daemons that find a stale file must not remove each other's."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with trio.fail_after(_LOCK_PATIENCE):
            while not _try_lock(fd):  # noqa: ASYNC110 - a lock of another process sets no event
                await trio.sleep(0.01)
    except BaseException as problem:
        os.close(fd)
        if isinstance(problem, trio.TooSlowError):
            raise DoorError(f"another process keeps {directory} locked") from None
        raise
    return fd


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _clear(path: Path) -> bool:
    """Takes a stale socket away, and nothing else; says whether there was one."""
    try:
        about = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(about.st_mode):
        raise MisplacedError(f"{path} is in the way and is no socket: move it")
    pid = answers(path)
    if pid is not None:
        raise TakenError(f"process {pid or 'unknown'} answers at {path}", pid)
    path.unlink()
    return True


def _publish(path: Path, stale: bool) -> Bound:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        # All of it before anyone can connect: a connection takes these from its listener.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, _SO_PASSRIGHTS, 0)
        os.fchmod(sock.fileno(), 0o600)  # what the file gets when it is bound
        sock.bind(os.fspath(path))
        sock.listen(_BACKLOG)
        about = path.lstat()
    except BaseException:
        sock.close()
        raise
    return Bound(sock, path, (about.st_dev, about.st_ino), stale)


async def keep(bound: Bound, fault: Callable[[str], None]) -> Bound:
    """Waits until the file is deleted or replaced and returns a socket bound anew. Another's live socket is left alone,
    and waited for; `fault` is told once of whatever prevents it."""
    told = ""
    while True:
        with Watch(bound.path.parent) as watch:
            while bound.stands():
                await watch.changed()
        try:
            return await bind(bound.path)
        except DoorError as problem:
            if str(problem) != told:
                told = str(problem)
                fault(told)
        await trio.sleep(_AGAIN)


class Watch:
    """Changes in a directory, by inotify; where the kernel has none left, by looking now and then. A rename further up
    shows in no event, so it looks again in any case, rarely."""

    def __init__(self, directory: Path) -> None:
        self._fd: int = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd >= 0 and _LIBC.inotify_add_watch(self._fd, os.fsencode(directory), _EVENTS) < 0:
            self.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def changed(self) -> None:
        """Returns when something may have changed."""
        if self._fd < 0:
            await trio.sleep(_BLIND)
            return
        with trio.move_on_after(_RARELY):
            await trio.lowlevel.wait_readable(self._fd)
        with contextlib.suppress(BlockingIOError):
            while os.read(self._fd, 65536):
                pass

    def close(self) -> None:
        """Gives the descriptor back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
