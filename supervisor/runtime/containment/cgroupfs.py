"""The cgroup v2 file system as a few verbs: where we are, make, join, kill, wait, remove. Knows nothing of agents.

A daemon's directory is locked (flock) while the daemon lives, so that a later one can tell a dead daemon's directory
from a living one's even across pid namespaces."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import time
from contextlib import suppress

from attrs import frozen

from supervisor.runtime.containment import marks

#: A daemon's directory: the pid that it had in its own pid namespace, and a number that makes it free.
_NAME = "fleet-supervisor-{}-{}"
_OURS = re.compile(r"fleet-supervisor-\d+-\d+")
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
        place = base.below(_NAME.format(os.getpid(), attempt))
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
        if not _OURS.fullmatch(entry):
            continue
        place = base.below(entry)
        with suppress(OSError):  # it lives, or is someone else's, or is gone already
            lock = _lock(place.directory)
            try:
                end(place)
                remove(place.directory)
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
    """SIGKILL to all in it and below it, whatever it forks meanwhile (but see `_kill_each`)."""
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


def end(place: Place) -> None:
    """Kill what lives there and block until it is gone, or PATIENCE is over. For start and close, never in between."""
    over = time.monotonic() + PATIENCE
    kill(place.directory)
    with open(f"{place.directory}/cgroup.events", "rb") as events:
        poll = select.poll()
        poll.register(events, select.POLLPRI)
        while b"populated 1" in events.read() and (left := over - time.monotonic()) > 0:
            if not poll.poll(min(left, 0.05) * 1000):
                _kill_each(place)
            events.seek(0)


def _kill_each(place: Place) -> None:
    # cgroup.kill signals a process's first thread; where that has ended and others go on, nothing happens (Linux 6.18).
    kill(place.directory)
    for pid in pids(place.directory):
        found = marks.stat(pid)
        if found is not None and place.holds(marks.cgroup(pid) or ""):
            marks.send(pid, found.start, signal.SIGKILL)


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
