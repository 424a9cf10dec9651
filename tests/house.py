"""What every test stands on: waiting for a condition, and seeing what a test left behind. Must never wait for a
fixed time where something can be waited for."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import inspect
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar, overload

import trio
from attrs import field, frozen

T = TypeVar("T")
#: How long a test waits for what must come, in seconds: tells what hangs from what a busy machine does late.
PATIENCE = 60.0
#: How long what a test has ended may take to be gone, in seconds.
GRACE = 10.0
#: Between two looks at a condition, in seconds.
STEP = 0.005
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_CGROUPS = "fleet-supervisor-*"


@overload
async def eventually(condition: Callable[[], Coroutine[Any, Any, T]], within: float = ..., what: str = ...) -> T: ...
@overload
async def eventually(condition: Callable[[], T], within: float = ..., what: str = ...) -> T: ...
async def eventually(condition: Callable[[], Any], within: float = PATIENCE, what: str = "") -> Any:
    """Wait until `condition()` (which may be async) is true and give what it gave."""
    got: object = None
    with trio.move_on_after(within):
        while True:
            got = condition()
            if inspect.isawaitable(got):
                got = await got
            if got:
                return got
            await trio.sleep(STEP)
    raise AssertionError(f"not within {within} s: {what or inspect.getsource(condition).strip()} (last: {got!r})")


def eventually_sync(condition: Callable[[], T], within: float = PATIENCE, what: str = "") -> T:
    """The same where there is no trio."""
    end, tick = time.monotonic() + within, threading.Event()
    while not (got := condition()):
        if time.monotonic() > end:
            raise AssertionError(
                f"not within {within} s: {what or inspect.getsource(condition).strip()} (last: {got!r})"
            )
        tick.wait(STEP)
    return got


async def over(process: subprocess.Popen[Any]) -> int:
    """Wait for the end of a child; its status. A thread that waits for it could not be given up."""
    if process.poll() is None:
        watch = os.pidfd_open(process.pid)
        try:
            await trio.lowlevel.wait_readable(watch)
        finally:
            os.close(watch)
    return process.wait()


def slowed() -> float:
    """By how much others slow this machine down: what is promised of time is about us, not about them."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def adopt_orphans() -> None:
    """Whatever escapes from below this process falls to it, and is seen."""
    if ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


@frozen
class Seen:
    """A process: a number alone may be another's tomorrow."""

    pid: int
    start: int
    state: str = field(eq=False)
    argv: str = field(eq=False)

    def __str__(self) -> str:
        return f"process {self.pid} ({self.argv})"


def seen(pid: int) -> Seen | None:
    """The process with this number, if there is one."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        argv = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    name, rest = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
    return Seen(pid, int(rest[19]), rest[0], argv.replace(b"\0", b" ").decode(errors="replace").strip()[:200] or name)


def below(pid: int, but: frozenset[Seen] = frozenset()) -> list[Seen]:
    """Every process below `pid`, zombies included; `but` and what is below these is left out."""
    found: list[Seen] = []
    for task in _listed(Path(f"/proc/{pid}/task")):
        try:
            children = Path(f"/proc/{pid}/task/{task}/children").read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in map(seen, map(int, children)):
            if child is not None and child not in but:
                found += [child, *below(child.pid, but)]
    return found


def _listed(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except (FileNotFoundError, ProcessLookupError):
        return []


def gone(processes: list[Seen], within: float) -> list[Seen]:
    """Wait for the end of all; those that still live are given back."""
    end = time.monotonic() + within
    left = []
    for process in processes:
        try:
            watch = os.pidfd_open(process.pid)
        except ProcessLookupError:
            continue
        try:
            if seen(process.pid) == process:
                poll = select.poll()
                poll.register(watch, select.POLLIN)
                if not poll.poll(max(0, end - time.monotonic()) * 1000):
                    left.append(process)
        finally:
            os.close(watch)
    return left


def fds() -> dict[int, str]:
    """The open descriptors of this process and what they are."""
    found = {}
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            found[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:
            continue  # the one that listed the directory
    return found


def cgroup_roots() -> list[Path]:
    """Where a daemon of ours could put cgroup directories: this process' own place first, and the hierarchy's root."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        if right.startswith("cgroup2 "):
            mount = Path(left.split()[4])
            own = [place for place in Path("/proc/self/cgroup").read_text().splitlines() if place.startswith("0::/")]
            return list(dict.fromkeys([*(mount / place[4:] for place in own), mount]))
    return []


def move_apart(name: str) -> Path | None:
    """Go into a cgroup of our own below the one that we are in, so that daemons of tests beside us do not take those of
    ours for dead ones of theirs. None where cgroups are not ours to make."""
    for root in cgroup_roots()[:1]:
        place = root / name
        with contextlib.suppress(OSError):
            place.mkdir()
            (place / "cgroup.procs").write_text("0")
            return place
    return None


def move_back(place: Path) -> None:
    """Leave that cgroup for the one above, and remove it."""
    (place.parent / "cgroup.procs").write_text("0")
    end_group(place)


def cgroups() -> set[Path]:
    """The cgroup directories of all daemons on this machine."""
    return {found for root in cgroup_roots() for found in root.glob(_CGROUPS)}


class Inventory:
    """What there was before a test, and what it left."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._processes = frozenset(below(os.getpid()))
        self._fds = fds()
        self._cgroups = cgroups()

    def leftovers(self) -> list[str]:
        """Everything that the test left, by name. What still lives is ended, so that the next test starts clean."""
        found = [*self._left_processes(), *self._left_fds()]
        found += [f"file {path}" for path in sorted(self._scratch.iterdir())]
        return found + self._left_cgroups()

    def _left_processes(self) -> list[str]:
        end = time.monotonic() + GRACE
        while (living := self._living()) and time.monotonic() < end:
            gone(living, end - time.monotonic())
        named = [str(process) for process in living]
        while living:
            for process in living:
                _kill(process)
            gone(living, GRACE)
            living = self._living()
        self._reap()
        return named

    def _living(self) -> list[Seen]:
        """Those alive now. One seen dying may just have handed its children to us: look until two looks agree."""
        before, now = None, below(os.getpid(), self._processes)
        while now != before:
            before, now = now, below(os.getpid(), self._processes)
        return [process for process in now if process.state not in "ZX"]

    def _reap(self) -> None:
        """Orphans that ended by themselves fell to us; nobody else buries them. One of many threads is shown as a
        zombie when its first thread has ended, and can be buried only when all have."""
        zombies = [process for process in below(os.getpid(), self._processes) if process.state == "Z"]
        gone(zombies, GRACE)
        for process in zombies:
            try:
                os.waitpid(process.pid, os.WNOHANG)
            except ChildProcessError:
                continue  # not ours but a living process', or buried meanwhile

    def _left_cgroups(self) -> list[str]:
        with contextlib.suppress(AssertionError):  # a daemon may be about to remove it
            eventually_sync(lambda: not self._abandoned(), within=GRACE)
        left = self._abandoned()
        for group in left:
            end_group(group)
        return [f"cgroup {group}" for group in left]

    def _abandoned(self) -> list[Path]:
        return [group for group in sorted(cgroups() - self._cgroups) if _abandoned(group)]

    def _left_fds(self) -> list[str]:
        if fds() != self._fds:
            gc.collect()  # what only a cycle holds is not a leak
        return [f"fd {fd} ({what})" for fd, what in sorted(fds().items()) if self._fds.get(fd) != what]


def _kill(process: Seen) -> None:
    try:
        watch = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if seen(process.pid) == process:
            signal.pidfd_send_signal(watch, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(watch)


def _abandoned(group: Path) -> bool:
    """A daemon holds a lock on its directory while it lives: one that is held belongs to someone beside the tests."""
    try:
        opened = os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(opened)
    return True


def end_group(group: Path) -> None:
    """End what lives in a cgroup of the tests and remove it, with all below it."""

    def removed() -> bool:
        for directory, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):  # something in it is still dying
                os.rmdir(directory)
        return not group.exists()

    with contextlib.suppress(FileNotFoundError):
        (group / "cgroup.kill").write_text("1")
    eventually_sync(removed, what=f"{group} is removed")
