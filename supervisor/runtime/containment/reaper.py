"""Collecting what has ended: owns SIGCHLD. Reaps orphans that the kernel gave to this process, and never takes the exit
of a leader, which its `Process` collects, or of a child that other code of this process started and waits for."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import trio

from supervisor.launchers.local import LEADERS
from supervisor.runtime.containment import marks

if TYPE_CHECKING:
    from collections.abc import Callable

    from supervisor.runtime.containment.cell import Containment


async def reap(containment: Containment, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Collect on each SIGCHLD, for as long as the daemon lives."""
    with trio.open_signal_receiver(signal.SIGCHLD) as arrivals:
        containment.reap()
        task_status.started()
        async for _ in arrivals:
            containment.reap()


def collect(ending: Callable[[int], None]) -> None:
    """Collect all that has ended; `ending` is told each orphan while it can still be looked at."""
    session = os.getsid(0)
    while (ended := _peek(os.P_ALL, 0)) is not None:
        if not _take(ended, session, ending):
            # Someone else's child stays in front of the queue until they wait for it: go around it, once.
            for pid in marks.children(os.getpid()):
                if _peek(os.P_PID, pid) is not None:
                    _take(pid, session, ending)
            return


def _peek(of: int, pid: int) -> int | None:
    try:
        found = os.waitid(of, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return found.si_pid if found else None


def _take(pid: int, session: int, ending: Callable[[int], None]) -> bool:
    leader = LEADERS.get(pid)
    if leader is not None:
        leader.poll()
        return True
    found = marks.stat(pid)
    # Each run is a session of its own and no process can enter an existing one: an orphan is never of our session.
    if found is not None and found.session == session:
        return False
    ending(pid)
    os.waitpid(pid, os.WNOHANG)
    return True
