"""The local launcher: starts the leader of a run as a child of this process, and hands out its stdio and its exit.

Never off the main thread, and never with Python between fork and exec. Nothing else in the daemon may start processes
in sessions of their own: the reaper would take them for orphans."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import trio

from supervisor.launchers import limits, shim
from supervisor.runtime.containment import marks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from supervisor.core.spec import Stdio

#: Leaders whose exit has not been collected, by pid. A leader in here cannot have its number reused.
LEADERS: dict[int, Process] = {}


class Process:
    """The leader of one run.

    `failure` is set with the return code when the program could not be executed after all (see `shim`): then nothing
    of it ran. `ended` is called once, when the exit is known."""

    def __init__(
        self, popen: subprocess.Popen[bytes], pidfd: int, start: int, pipes: _Pipes, program: str | None
    ) -> None:
        self.pid = popen.pid
        self.pgid = popen.pid  # it leads its session; never asked again, the number may be someone else's by then
        self.start = start
        self.stdin = pipes.stdin
        self.stdout = pipes.stdout
        self.returncode: int | None = None
        self.failure: OSError | None = None
        self.ended: Callable[[], None] | None = None
        #: when the exit was collected, on time.monotonic(); what it left behind is seen by any look after that
        self.ended_at = 0.0
        self._popen = popen
        self._pidfd = pidfd
        self._pipes = pipes
        self._program = program  # None: it was executed by fork and exec, which reports errors itself
        self._waiting = trio.Lock()

    def __repr__(self) -> str:
        return f"<Process {self.pid} {'runs' if self.returncode is None else self.returncode}>"

    def stopped(self) -> bool:
        """Whether a signal has stopped it (SIGSTOP, or one of a terminal), so that it does nothing and hears nothing.
        Asked of the kernel, which answers at once; its answer is left there for the next who asks."""
        try:
            told = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False  # it has ended, and its exit was collected
        return self.returncode is None and told is not None

    async def wait(self) -> int:
        """The return code as Popen gives it. Cancelling loses nothing; any number of tasks may wait, and again."""
        async with self._waiting:
            while (code := self.poll()) is None:
                if self._pidfd < 0:
                    raise trio.ClosedResourceError("the process was closed before it ended")
                await trio.lowlevel.wait_readable(self._pidfd)
        return code

    def poll(self) -> int | None:
        """Collect the exit if there is one."""
        if self.returncode is not None:
            return self.returncode
        if self._program is not None:
            peek = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if peek is None:
                return None
            found = marks.stat(self.pid)
            if found is not None and found.comm == shim.NAME and peek.si_code == os.CLD_EXITED:
                self.failure = shim.failure(peek.si_status, self._program)
        self.returncode = self._popen.poll()
        if self.returncode is not None:
            self.ended_at = time.monotonic()
            LEADERS.pop(self.pid, None)
            if self.ended is not None:
                self.ended()
        return self.returncode

    def signal(self, number: int) -> None:
        """Through the pidfd; one that is gone is fine."""
        if self.returncode is None and self._pidfd >= 0:
            try:
                signal.pidfd_send_signal(self._pidfd, number)
            except ProcessLookupError:
                return

    def close(self) -> None:
        """All fds. A process that still runs goes on, and is collected by the reaper."""
        self._pipes.close()
        if self._pidfd >= 0:
            trio.lowlevel.notify_closing(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1


class _Pipes:
    """Both ends of a run's stdin and stdout."""

    def __init__(self, stdio: Stdio) -> None:
        self._theirs = ExitStack()
        with ExitStack() as undo:
            undo.callback(self._theirs.close)
            if stdio == "socket":
                self._sockets(undo)
            else:
                self._fds(undo)
            undo.pop_all()

    def _sockets(self, undo: ExitStack) -> None:
        # A pipe can be opened by anyone of this uid through /proc/PID/fd/1 and be written into; a socket cannot.
        theirs_in, ours_in = (undo.enter_context(end) for end in socket.socketpair())
        self._theirs.callback(theirs_in.close)
        theirs_out, ours_out = (undo.enter_context(end) for end in socket.socketpair())
        self._theirs.callback(theirs_out.close)
        # What a program writes to its own stdin would fill up unread. (Its stdout stays open both ways: event loops
        # take an end of file there for a reader that has gone.)
        ours_in.shutdown(socket.SHUT_RD)
        self.child_in, self.child_out = theirs_in.fileno(), theirs_out.fileno()
        stdin = trio.SocketStream(trio.socket.from_stdlib_socket(ours_in))
        stdout = trio.SocketStream(trio.socket.from_stdlib_socket(ours_out))
        self.stdin: trio.abc.SendStream = stdin
        self.stdout: trio.abc.ReceiveStream = stdout
        self._close = (stdin.socket.close, stdout.socket.close)

    def _fds(self, undo: ExitStack) -> None:
        self.child_in, ours_in = os.pipe()
        self._theirs.callback(os.close, self.child_in)
        undo.callback(os.close, ours_in)
        ours_out, self.child_out = os.pipe()
        self._theirs.callback(os.close, self.child_out)
        undo.callback(os.close, ours_out)
        self.stdin = stdin = trio.lowlevel.FdStream(ours_in)
        self.stdout = stdout = trio.lowlevel.FdStream(ours_out)
        self._close = (stdin.close, stdout.close)

    def release(self) -> None:
        """The child has its ends."""
        self._theirs.close()

    def close(self) -> None:
        self._theirs.close()
        for close in self._close:
            close()


def spawn(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdio: Stdio,
    stderr: int,
    mark: int,
    cgroup: str | None,
) -> Process:
    """Start it in a session of its own with fds 0, 1 and 2 only; `cgroup` is the directory it is to be in from its
    first instruction on. Raises OSError as it comes (a late one is in `Process.failure`), and leaves nothing then."""
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("spawn belongs to the main thread: a death signal follows the thread")
    command = list(argv)
    if cgroup is not None:
        shim.check(argv[0], cwd, env)
        command = shim.command(argv, env, f"{cgroup}/cgroup.procs")
    pipes = _Pipes(stdio)
    with ExitStack() as undo:
        undo.callback(pipes.close)
        with limits.around(mark):
            popen = subprocess.Popen(  # noqa: S603  starting what it is told to is its task
                command,
                executable="/bin/sh" if cgroup is not None else None,
                stdin=pipes.child_in,
                stdout=pipes.child_out,
                stderr=stderr,
                cwd=cwd,
                env=env,
                start_new_session=True,
            )
        pipes.release()  # before the pidfd is opened: it needs one of the fds that this gives back
        process = Process(popen, *_identify(popen), pipes, argv[0] if cgroup is not None else None)
        undo.pop_all()
    LEADERS[process.pid] = process
    return process


def _identify(popen: subprocess.Popen[bytes]) -> tuple[int, int]:
    """pidfd and start time of a child that nobody has waited for."""
    with ExitStack() as undo:
        undo.callback(popen.wait)
        undo.callback(popen.kill)
        pidfd = os.pidfd_open(popen.pid)
        undo.callback(os.close, pidfd)
        found = marks.stat(popen.pid)
        if found is None:
            raise OSError("a child that was not waited for is missing from /proc")
        undo.pop_all()
    return pidfd, found.start
