"""A daemon in small, for tests that need one of an unprivileged user: it serves a real door, starts real programs as
agents, names callers by `runtime.peers`, and says on stdout what it saw. Run as a program; its argument is what it is
to do, as JSON.

`usage` ends the caller's run in its books while the process lives on; every other verb answers who asked."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import trio

from supervisor.core.authority import Agent, Operator, Principal
from supervisor.core.refusals import Refusal
from supervisor.doors.control import serve
from supervisor.doors.service import Call, Service
from supervisor.runtime.peers import Identity, Peers, identity

PR_SET_CHILD_SUBREAPER = 36
RLIMIT_LOCKS = 10
MARK = 4711


def mark_of(pid: int) -> str | None:
    """The agent's mark that a process carries."""
    for line in Path(f"/proc/{pid}/limits").read_text().splitlines():
        if line.startswith("Max file locks"):
            return "an agent" if line.split()[3] == str(MARK) else None
    return None


def cell_of(cells: str, pid: int) -> str | None:
    """The agent in whose cgroup a process lies."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        if cells and line.startswith(f"0::{cells}/"):
            return line.rsplit("/", 1)[1]
    return None


def emit(value: object) -> None:
    """One line for the test."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


class Fleet:
    """The books of the small daemon."""

    def __init__(self) -> None:
        self.runs: dict[Identity, Agent] = {}
        self.foreign: list[tuple[str, str]] = []
        self.refused: list[tuple[str, str]] = []

    async def answer(self, call: Call) -> object:
        """Who asked."""
        who = call.principal
        if call.verb == "usage":
            for key in [key for key, agent in self.runs.items() if agent == who]:
                del self.runs[key]
        if isinstance(who, Operator):
            return {"principal": "operator"}
        assert isinstance(who, Agent)
        return {"principal": "agent", "id": who.agent, "run": who.run}

    def on_foreign(self, principal: Principal, writer: Principal) -> None:
        """Goes on record."""
        self.foreign.append((str(principal), str(writer)))

    async def on_refused(self, principal: Principal, verb: str, refusal: Refusal) -> None:
        """Goes on record."""
        self.refused.append((f"{principal} {verb}", refusal.message))

    async def host(self, agent: str, argv: list[str]) -> None:
        """One agent's only run."""
        soft, hard = resource.getrlimit(RLIMIT_LOCKS)
        resource.setrlimit(RLIMIT_LOCKS, (MARK, hard))
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        resource.setrlimit(RLIMIT_LOCKS, (soft, hard))
        me = identity(process.pid)
        assert me is not None
        assert process.stdout is not None
        self.runs[me] = Agent("p-1", agent, 1)
        out = b""
        pidfd = os.pidfd_open(process.pid)
        async with trio.lowlevel.FdStream(os.dup(process.stdout.fileno())) as stream:
            async for chunk in stream:
                out += chunk
        process.stdout.close()
        await trio.lowlevel.wait_readable(pidfd)
        os.close(pidfd)
        self.runs.pop(me, None)
        emit({"agent": agent, "code": process.wait(), "out": out.decode()})


async def main(path: str, agents: dict[str, list[str]], cells: str = "") -> None:
    """Serves until stdin ends."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    fleet = Fleet()
    us = identity(os.getpid())
    assert us is not None
    peers = Peers(os.geteuid(), fleet.runs, {us}, mark_of, partial(cell_of, cells))
    service = Service(peers.resolve, fleet.answer, on_foreign=fleet.on_foreign, on_refused=fleet.on_refused)
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(serve, Path(path), service))
        emit({"ready": os.getpid()})
        for agent, argv in agents.items():
            nursery.start_soon(fleet.host, agent, argv)
        async with trio.lowlevel.FdStream(os.dup(0)) as stdin:
            async for _ in stdin:
                pass
        nursery.cancel_scope.cancel()
    emit({"foreign": fleet.foreign, "refused": fleet.refused, "left": Path(path).name in os.listdir(Path(path).parent)})


if __name__ == "__main__":
    trio.run(partial(main, **json.loads(sys.argv[1])))
