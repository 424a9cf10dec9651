"""What the kernel says of a process: start time, parent, session, state, and the marks that an agent's processes carry.

A process that is gone is an answer (None, nothing), never an exception; a lack of file descriptors is raised, so that
nobody takes "could not look" for "is gone". A signal goes through a pidfd whose start time was checked. Stdlib only,
because the warden uses it too."""

from __future__ import annotations

import os
import resource
import signal
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

#: RLIMIT_LOCKS: ignored by the kernel since 2.4.25, inherited by every child, untouched by `env -i`, setsid and exec.
LOCKS = 10
#: The variable in an agent's environment: `<instance>:<agent>`.
VARIABLE = "FLEET_AGENT"
#: An instance's number fits above the run's number in a signed 64 bit limit.
HIGHEST_INSTANCE = 2**31 - 1

#: How often a round of stopping is repeated while it still finds new processes.
ROUNDS = 100
#: The last thread of a process that is a zombie in /proc; a leader thread that ended before others looks like one too.
_LONE = 1


class Stat(NamedTuple):
    """One line of /proc/PID/stat. `start` is in clock ticks since boot; with `pid` it is the process's identity."""

    pid: int
    comm: str
    state: str
    ppid: int
    session: int
    threads: int
    start: int

    @property
    def alive(self) -> bool:
        """Not a zombie: kill(pid, 0) would say yes to those too."""
        return self.state not in "ZX" or self.threads > _LONE


def _read(path: str) -> bytes | None:
    """The file's content; None when its process is gone or is not ours to read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    try:
        content = os.read(fd, 4096)
        while content and (more := os.read(fd, 65536)):
            content += more
    except (ProcessLookupError, PermissionError):
        return None
    finally:
        os.close(fd)
    return content


def stat(pid: int) -> Stat | None:
    """None when there is no such process."""
    line = _read(f"/proc/{pid}/stat")
    if not line:
        return None
    # The name is free text: it may hold blanks and brackets, so the fields are counted from its last bracket.
    head, _, tail = line.rpartition(b")")
    fields = tail.split()
    comm = head.partition(b"(")[2].decode(errors="replace")
    state = fields[0].decode()
    return Stat(pid, comm, state, int(fields[1]), int(fields[3]), int(fields[17]), int(fields[19]))


#: Clock ticks a second, in which the kernel counts processor time.
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu(pid: int) -> float:
    """Seconds of processor time that a process has used, with all that it has waited for; 0 where there is none."""
    fields = (_read(f"/proc/{pid}/stat") or b"").rpartition(b")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


def children(pid: int) -> list[int]:
    """Children of all its threads, zombies included."""
    found: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except (FileNotFoundError, ProcessLookupError):
        return found
    for task in tasks:
        found.extend(map(int, (_read(f"/proc/{pid}/task/{task}/children") or b"").split()))
    return found


def tree(roots: Iterable[int], parent: int) -> Iterator[Stat]:
    """What lives at and below these children of `parent`, parents first.

    A process's children are read before its stat, and it counts only while its parent is the one that listed it: a
    number that was given to a stranger in between is dropped, with all below it. One whose parent ended in between is
    dropped as well; it has become a child of its subreaper and is found there."""
    todo = [(pid, parent) for pid in roots]
    todo.reverse()
    seen: set[int] = set()
    while todo:
        pid, above = todo.pop()
        below = children(pid)
        found = stat(pid)
        if pid in seen or found is None or found.ppid != above or not found.alive:
            continue
        seen.add(pid)
        yield found
        todo.extend((child, pid) for child in reversed(below))


def argv0(pid: int) -> str:
    """The first word of its command line; "" when it has none."""
    return (_read(f"/proc/{pid}/cmdline") or b"").partition(b"\0")[0].decode(errors="replace")


def cgroup(pid: int) -> str | None:
    """Its cgroup in the v2 hierarchy, as /proc names it."""
    for line in (_read(f"/proc/{pid}/cgroup") or b"").splitlines():
        if line.startswith(b"0::"):
            return os.fsdecode(line[3:])
    return None


def compose(instance: int, number: int) -> int:
    """The mark of one run: a soft RLIMIT_LOCKS that no one has by chance."""
    if not 0 < instance <= HIGHEST_INSTANCE or not 0 < number < 2**32:
        raise ValueError(f"instance {instance} or run {number} is out of range")
    return instance << 32 | number


def marked(pid: int) -> tuple[int, int] | None:
    """(instance, number) of the mark it carries. A zombie still carries its own."""
    try:
        soft = resource.prlimit(pid, LOCKS)[0]
    except (ProcessLookupError, PermissionError):
        return None
    instance, number = soft >> 32, soft & (2**32 - 1)
    return (instance, number) if 0 < instance <= HIGHEST_INSTANCE and number else None


def named(pid: int) -> tuple[int, str] | None:
    """(instance, agent) as its environment says."""
    prefix = f"{VARIABLE}=".encode()
    for entry in (_read(f"/proc/{pid}/environ") or b"").split(b"\0"):
        if entry.startswith(prefix):
            instance, colon, agent = entry[len(prefix) :].decode(errors="replace").partition(":")
            return (int(instance), agent) if colon and instance.isdecimal() else None
    return None


def send(pid: int, start: int, number: int) -> bool:
    """Signal exactly this process; False when it is gone or is not ours to signal."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        # The pidfd holds whoever has the number now; only then is it asked who that is.
        found = stat(pid)
        if found is None or found.start != start:
            return False
        signal.pidfd_send_signal(fd, number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(fd)
    return True


def freeze(look: Callable[[], Iterable[Stat]]) -> Iterator[tuple[Stat, bool]]:
    """Stop all that `look` finds, at first sight, again until a round finds nothing new: what is stopped cannot fork.

    Yields each process of each round, and whether it is new."""
    frozen: set[tuple[int, int]] = set()
    for _ in range(ROUNDS):
        grown = False
        for found in look():
            who = found.pid, found.start
            fresh = who not in frozen
            if fresh:
                send(*who, signal.SIGSTOP)
                frozen.add(who)
                grown = True
            yield found, fresh
        if not grown:
            return
