"""The cgroup v2 file system as a few verbs: where we are, make, join, kill, wait, remove. Knows nothing of agents.

A daemon's directory is locked (flock) while the daemon lives, so that a later one can tell a dead daemon's directory
from a living one's even across pid namespaces."""

from __future__ import annotations

import fcntl
import os
import re
import select
import time
from contextlib import suppress

from attrs import frozen

#: Directories of daemons begin with this, and nobody else's do.
PREFIX = "fleet-supervisor-"
#: How long a start or a close may wait for what it killed (seconds).
PATIENCE = 2.0


@frozen
class Place:
    """A cgroup: its directory, and its name as in /proc/PID/cgroup."""

    directory: str
    name: str

    def below(self, child: str) -> Place:
        return Place(f"{self.directory}/{child}", f"{self.name.rstrip('/')}/{child}")

    def holds(self, name: str) -> bool:
        """Is the cgroup of that name this one, or inside it?"""
        return name == self.name or name.startswith(self.name.rstrip("/") + "/")


def find(mountinfo: str, cgroup: str) -> Place | None:
    """Where a process stands, from its /proc/PID/mountinfo and /proc/PID/cgroup; None where no v2 mount shows it."""
    name = next((line[3:] for line in cgroup.splitlines() if line.startswith("0::")), "")
    if not name.startswith("/") or name.startswith("/.."):
        return None
    for line in mountinfo.splitlines():
        fields, _, system = line.partition(" - ")
        if system.split(" ")[0] != "cgroup2":
            continue
        root, mount = (_plain(text) for text in fields.split(" ")[3:5])
        shown = Place(mount, root)
        if shown.holds(name):
            return Place((mount + "/" + name[len(root.rstrip("/")) :].lstrip("/")).rstrip("/"), name)
    return None


def _plain(escaped: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), escaped)


def here() -> Place | None:
    """This process's own cgroup."""
    with open("/proc/self/mountinfo") as mounts, open("/proc/self/cgroup") as own:
        return find(mounts.read(), own.read())


def claim(base: Place) -> tuple[Place, int]:
    """A new directory of our own in `base`, and the fd whose lock says that its daemon lives."""
    for attempt in range(100):
        place = base.below(f"{PREFIX}{os.getpid()}-{attempt}")
        with suppress(FileExistsError, FileNotFoundError, BlockingIOError):
            os.mkdir(place.directory)
            lock = _lock(place.directory)
            # Another daemon may have taken it for a dead one's before it was locked.
            if os.path.isdir(place.directory):
                return place, lock
            os.close(lock)
    raise FileExistsError(f"no free name for a cgroup in {base.directory}")


def sweep(base: Place) -> None:
    """End and remove what daemons left in `base` that are dead."""
    for entry in os.listdir(base.directory):
        directory = f"{base.directory}/{entry}"
        if not entry.startswith(PREFIX):
            continue
        with suppress(OSError):  # it lives, or is someone else's, or is gone already
            lock = _lock(directory)
            try:
                kill(directory)
                wait(directory, PATIENCE)
                remove(directory)
            finally:
                os.close(lock)


def _lock(directory: str) -> int:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    return fd


def join(directory: str) -> None:
    """Move this process there."""
    _write(f"{directory}/cgroup.procs", b"0")


def kill(directory: str) -> None:
    """SIGKILL to all in it and below it, whatever it forks meanwhile."""
    _write(f"{directory}/cgroup.kill", b"1")


def _write(path: str, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, content)
    finally:
        os.close(fd)


def populated(directory: str) -> bool:
    """Does anything live in it or below it?"""
    try:
        with open(f"{directory}/cgroup.events", "rb") as events:
            return b"populated 1" in events.read()
    except FileNotFoundError:
        return False


def wait(directory: str, within: float) -> None:
    """Block until nothing lives there or the time is over. Only for start and close, never in between."""
    over = time.monotonic() + within
    with open(f"{directory}/cgroup.events", "rb") as events:
        poll = select.poll()
        poll.register(events, select.POLLPRI)
        while populated(directory) and (left := over - time.monotonic()) > 0:
            events.seek(0)
            events.read()
            if populated(directory):
                poll.poll(min(left, 0.1) * 1000)


def pids(directory: str) -> list[int]:
    """All processes in it and below it; one of another pid namespace has no number here and is left out."""
    found: list[int] = []
    for place, _, _ in os.walk(directory):
        with suppress(OSError), open(f"{place}/cgroup.procs") as procs:
            found.extend(pid for pid in map(int, procs) if pid)
    return found


def remove(directory: str) -> None:
    """With all below it; what is not empty stays."""
    for place, _, _ in os.walk(directory, topdown=False):
        with suppress(OSError):
            os.rmdir(place)
