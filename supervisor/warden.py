"""The warden: the process above the daemon. Whatever the daemon leaves when it dies falls to it, and it kills until
nothing is left, then starts the daemon again. It holds no state and must never import what the daemon is made of.

`supervisord` is this module's `main`. How the daemon is started, and what it must do, stands at `claim`."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import time
from typing import NamedTuple

from supervisor.runtime import signals
from supervisor.runtime.containment import kernel, marks

DAEMON = "supervisor.daemon:run"
#: The environment variable that names the pipe on which the daemon says that it is ready (its fd) and, after a colon,
#: its warden's pid. Whoever starts a daemon without a warden may set it to an fd alone.
READY = "SUPERVISORD_READY_FD"
#: Exit statuses after which the daemon is not started again: it left, was called wrongly, another daemon is there, its
#: configuration is bad.
FINAL = (0, 2, 75, 78)
#: The exit status of a daemon that its disk or its socket failed. Once one was ready this is the machine's trouble,
#: which passes: it is tried again for as long as it takes.
IO_ERROR = 74
#: It cannot be here, and starting it again would not help (sysexits.h: EX_CONFIG).
UNFIT = 78
#: So many starts within so many seconds that never got ready are enough.
STARTS, WINDOW = 5, 60.0
#: The pause before the n-th start within the window is FIRST * 2**(n - 1) seconds, and at most MOST.
FIRST, MOST = 0.05, 5.0
#: What cannot be killed is waited for this long (seconds), then named and left.
PATIENCE = 10.0

_WATCHED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SI_KERNEL = 0x80


def main() -> int:
    """The `supervisord` command: its exit status is the daemon's. Inside an agent there is none: a fleet has one, and
    what an agent started would end with it."""
    if agent := os.environ.get(marks.VARIABLE):
        say(
            f"this is inside agent {agent.rpartition(':')[2]} of a fleet, where no second daemon is started: its own "
            f"keeps it and its children. A person may start one from a shell without {marks.VARIABLE} in it"
        )
        return UNFIT
    return watch(DAEMON, sys.argv[1:])


def watch(target: str, argv: list[str]) -> int:
    """Run `target` (module:function, called with `argv`, returning an exit status) under a warden; with `--no-warden`
    in this process."""
    signals.settle()
    if "--no-warden" in argv:
        return _run(target, [word for word in argv if word != "--no-warden"])
    return _Warden(target, argv).keep()


class Post(NamedTuple):
    """The daemon's side: who its warden is (None without one), and how to say that it is ready."""

    warden: int | None
    fd: int

    def ready(self) -> None:
        """The daemon serves. Say it once."""
        if self.fd >= 0:
            os.write(self.fd, b"\n")
            os.close(self.fd)


def claim() -> Post:
    """For the daemon, first thing, before anything of its environment is handed on.

    Under a warden it is a child of that process, gets SIGTERM when the warden dies, and has a pipe whose fd stands in
    READY: this takes the variable away. A daemon that ends without `ready()` counts as a start that failed."""
    fd, _, warden = os.environ.pop(READY, "").partition(":")
    return Post(int(warden) if warden else None, int(fd) if fd else -1)


def _run(target: str, argv: list[str]) -> int:
    module, _, function = target.partition(":")
    return int(getattr(importlib.import_module(module), function)(argv))


def say(words: str) -> None:
    """A line on stderr. It may be a log on a disk that is full, and that must end nobody: past Python's own stream,
    which would fail once more as the process ends, and change its exit status."""
    with contextlib.suppress(OSError):
        os.write(2, f"supervisord: {words}\n".encode(errors="backslashreplace"))


class _Warden:
    def __init__(self, target: str, argv: list[str]) -> None:
        self._target = target
        self._argv = argv
        self._pid = 0  # the daemon's, 0 while there is none
        self._ready = -1  # our end of its pipe
        self._leaving = False
        self._deaths: list[float] = []
        self._failed: list[float] = []
        self._served = False  # was one ready, ever?
        self._watched = signals.heard(*_WATCHED)

    def keep(self) -> int:
        """Until the daemon is not to be started again; its status. Also returns in the daemon, once that is done."""
        kernel.set_subreaper(True)
        signal.pthread_sigmask(signal.SIG_BLOCK, self._watched)
        while True:
            if self._start() == 0:
                return _run(self._target, self._argv)
            status = self._attend()
            self._empty()
            if self._leaving or status in FINAL:
                return status
            pause = self._judge(status)
            if pause is None:
                return status
            if self._told_while(pause):
                return 0

    def _start(self) -> int:
        """Fork the daemon; 0 in it."""
        warden = os.getpid()
        self._ready, theirs = os.pipe()
        os.set_blocking(self._ready, False)
        sys.stdout.flush()
        sys.stderr.flush()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._ready)
            os.environ[READY] = f"{theirs}:{warden}"
            kernel.die_with_parent(signal.SIGTERM)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, self._watched)
            if os.getppid() != warden:
                os.kill(os.getpid(), signal.SIGTERM)  # it died before we could be told
        else:
            os.close(theirs)
        return self._pid

    def _attend(self) -> int:
        """Pass signals on until the daemon is dead; its status, as a shell would give it."""
        passed = False
        while True:
            told = signal.sigwaitinfo(self._watched)
            if told.si_signo == signal.SIGCHLD:
                status = self._reap()
                if status is not None:
                    code = os.waitstatus_to_exitcode(status)
                    return code if code >= 0 else 128 - code
                continue
            # What a terminal sends goes to its whole foreground group: the daemon has it already.
            if told.si_signo == signal.SIGHUP:
                if told.si_code != _SI_KERNEL:
                    os.kill(self._pid, signal.SIGHUP)
                continue
            self._leaving = True
            if not passed and told.si_code != _SI_KERNEL:
                os.kill(self._pid, told.si_signo)  # our child, not waited for: the number is its own
            passed = True

    def _reap(self) -> int | None:
        """Collect all that ended; the daemon's status if it is among them."""
        found: int | None = None
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return found
            if pid == 0:
                return found
            if pid == self._pid:
                found, self._pid = status, 0

    def _empty(self) -> None:
        """Kill what fell to us until nothing is left."""
        own, over = os.getpid(), time.monotonic() + PATIENCE
        while True:
            self._reap()
            frozen = [each for each, fresh in marks.freeze(lambda: marks.tree(marks.children(own), own)) if fresh]
            if not frozen and not marks.children(own):
                return
            for each in frozen:
                marks.send(each.pid, each.start, signal.SIGKILL)
            if time.monotonic() > over:
                say(f"cannot be killed: {', '.join(f'{each.pid} ({each.comm})' for each in frozen)}")
                return
            signal.sigtimedwait((signal.SIGCHLD,), 0.005)

    def _judge(self, status: int) -> float | None:
        """How long to wait before the next start; None when it was enough."""
        now = time.monotonic()
        try:
            was_ready = os.read(self._ready, 1) != b""
        except BlockingIOError:  # something that could not be killed holds the other end
            was_ready = False
        os.close(self._ready)
        self._deaths = [at for at in (*self._deaths, now) if now - at < WINDOW]
        self._served = self._served or was_ready
        if not was_ready and not (self._served and status == IO_ERROR):
            self._failed = [at for at in (*self._failed, now) if now - at < WINDOW]
            if len(self._failed) >= STARTS:
                say(f"the daemon ended {STARTS} times within {WINDOW:g} s before it was ready, at last with {status}")
                return None
        pause = min(FIRST * 2.0 ** (len(self._deaths) - 1), MOST)
        say(f"the daemon ended with {status}; nothing of it is left, it starts again in {pause:g} s")
        return pause

    def _told_while(self, pause: float) -> bool:
        """Wait; were we told to leave meanwhile?"""
        over = time.monotonic() + pause
        while (left := over - time.monotonic()) > 0:
            told = signal.sigtimedwait(self._watched, left)
            if told is not None and told.si_signo in (signal.SIGTERM, signal.SIGINT):
                return True
        return False


if __name__ == "__main__":
    sys.exit(main())
