"""Running programs in cells, for tests: start, read a line, see whether a process lives. It judges nothing."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

import trio

from supervisor.core.spec import Stdio
from supervisor.launchers.local import Process
from supervisor.runtime.containment import cgroupfs, marks
from supervisor.runtime.containment.cell import Cell, Containment
from supervisor.runtime.containment.contain import contain
from tests.house import PATIENCE

VICTIMS = str(Path(__file__).with_name("victims.py"))


@functools.cache
def cgroups_missing() -> str:
    """Why this machine has no cgroup tier for us, "" if it has."""
    try:
        contain(1, "cgroup").close()
    except OSError as error:
        return str(error)
    return ""


def alive(pid: int) -> bool:
    """Is there such a process, and is it no zombie?"""
    found = marks.stat(pid)
    return found is not None and found.alive


def there(path: str) -> bool:
    """Is there such a file or directory?"""
    return Path(path).exists()


def elsewhere() -> cgroupfs.Place:
    """The cgroup that this process stands in."""
    found = cgroupfs.here()
    assert found is not None
    return found


class Stage:
    """One containment's cells and runs."""

    def __init__(self, containment: Containment, room: Path) -> None:
        self.containment = containment
        self.room = room
        self._cells: dict[str, Cell] = {}
        self._processes: list[Process] = []
        self._rest: dict[Process, bytes] = {}

    def cell(self, agent: str = "a1", parent: Cell | None = None) -> Cell:
        """The agent's cell."""
        if agent not in self._cells:
            self._cells[agent] = self.containment.cell(agent, parent)
        return self._cells[agent]

    def run(
        self,
        *argv: str,
        agent: str = "a1",
        env: dict[str, str] | None = None,
        stdio: Stdio = "socket",
        cwd: str = "",
        stderr: int = 2,
    ) -> Process:
        """Start a program as the agent's run."""
        cell = self.cell(agent)
        own = {"PATH": os.environ["PATH"], marks.VARIABLE: f"{self.containment.instance}:{agent}"}
        process = cell.spawn(argv, cwd=cwd or str(self.room), env=own | (env or {}), stdio=stdio, stderr=stderr, run=1)
        self._processes.append(process)
        return process

    def python(self, program: str, *words: str, agent: str = "a1") -> Process:
        """Start a Python program."""
        return self.run(sys.executable, "-ISc", program, *words, agent=agent)

    async def victims(
        self, *ways: str, agent: str = "a1", env: dict[str, str] | None = None
    ) -> tuple[Process, dict[str, int]]:
        """Start the agent that leaves processes behind; way → pid."""
        process = self.run(sys.executable, "-IS", VICTIMS, *ways, agent=agent, env=env)
        found: dict[str, int] = {}
        for _ in [way for way in ways if way != "exit"]:
            way, pid = (await self.line(process)).split()
            found[way] = int(pid)
        return process, found

    async def line(self, process: Process) -> str:
        """The next line of its stdout."""
        rest = self._rest.pop(process, b"")
        with trio.fail_after(PATIENCE):
            while b"\n" not in rest:
                chunk = await process.stdout.receive_some(4096)
                assert chunk, f"it ended with {rest!r}"
                rest += chunk
        line, _, self._rest[process] = rest.partition(b"\n")
        return line.decode()

    async def all(self, process: Process) -> str:
        """All that is left of its stdout."""
        rest = self._rest.pop(process, b"")
        with trio.fail_after(PATIENCE):
            while chunk := await process.stdout.receive_some(4096):
                rest += chunk
        return rest.decode()

    async def clear(self) -> None:
        """End all runs and give everything back."""
        for cell in reversed(self._cells.values()):
            await cell.clear(5)
            cell.close()
        for process in self._processes:
            process.close()
