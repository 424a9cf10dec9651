"""The daemon: wires containment, projects and the control door together, and leaves in order. No rule lives here."""

from __future__ import annotations

import os
import pwd
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import trio

from supervisor import config
from supervisor.core import facts
from supervisor.core.authority import Agent, Principal
from supervisor.core.refusals import Refusal
from supervisor.core.state import Project
from supervisor.doors import paths, wire
from supervisor.doors.accepting import Accepting
from supervisor.doors.asks import Asks
from supervisor.doors.control import serve
from supervisor.doors.listener import DoorError, TakenError
from supervisor.doors.reads import Reads
from supervisor.doors.service import Call, Service
from supervisor.runtime import processes
from supervisor.runtime.containment import contain
from supervisor.runtime.desk import Desk
from supervisor.runtime.journal import Journal, JournalError
from supervisor.runtime.lag import Lag
from supervisor.runtime.peers import Peers, identity
from supervisor.runtime.projects import Projects
from supervisor.runtime.reaper import Reaper
from supervisor.runtime.tools import lay_out

#: Exit codes (sysexits.h): the disk or the socket failed; another daemon is there.
IO_ERROR, TAKEN = 74, 75


class Daemon:
    """One running daemon."""

    def __init__(self, state: Path, runtime: Path, tier: str) -> None:
        self.state = state
        self.runtime = runtime
        self.started = time.time()
        self.instance = secrets.randbits(30)
        self.lag = Lag()
        self.stopping = trio.Event()
        self.containment = contain(self.instance, tier)  # type: ignore[arg-type]  # argparse holds it to the three
        journal, batches, cut = Journal.open(state / "daemon", "daemon")
        self._desk = Desk(Project("daemon"), journal, lambda _fact: None, lambda: 1)
        self._repaired = [facts.Repaired(cut)] if cut else []
        self.projects: Projects
        self._verbs: dict[str, Any] = {}

    async def run(self) -> None:
        """Serve until told to stop. Raises JournalError when a disk fails."""
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            try:
                async with trio.open_nursery() as nursery:
                    await self._start(nursery)
                    nursery.start_soon(self._listen, signals)
                    await self.stopping.wait()
                    await self.projects.close()
                    self._desk.observe(facts.Closing())
                    nursery.cancel_scope.cancel()
            finally:
                self.containment.close()
            await self.projects.settle()
            await self._desk.drain()
            self._desk.journal.close(time.time())

    async def _start(self, nursery: trio.Nursery) -> None:
        tools = lay_out(self.runtime / "bin")
        self.projects = Projects(self.state, self.containment, self.instance, tools, nursery)
        nursery.start_soon(self._desk.run)
        self._desk.observe(*self._repaired, facts.Opened(str(self.instance), self.containment.tier))
        nursery.start_soon(self.lag.run)
        await nursery.start(reap)
        self._set_verbs()
        await nursery.start(serve, Path(paths.control_socket(str(self.runtime))), self._service())
        for stored in self.projects.stored():
            try:
                self.projects.open(stored)
            except JournalError as error:
                self.projects.fault(stored, error)  # one broken journal is shown; the other projects run
        tell_ready()

    async def _listen(self, signals: AsyncIterator[int]) -> None:
        async for _ in signals:
            self.stopping.set()

    # --- the door

    def _set_verbs(self) -> None:
        personal = config.personal_file(os.environ)
        asks = Asks(self.projects, self.stopping.set)
        self._verbs = asks.table | Reads(self.projects, self._about, personal).table | Accepting(self.projects, personal).table

    def _service(self) -> Service:
        peers = Peers(
            uid=os.geteuid(),
            runs=self.projects.runs,
            daemon=[own for own in (identity(os.getpid()), warden_identity()) if own is not None],
            mark_of=lambda pid: mark_of(pid, self.instance),
            cell_of=self.containment.agent_of,
        )
        return Service(
            resolve=peers.resolve,
            dispatch=self._dispatch,
            on_foreign=self._foreign,
            on_refused=self._refused,
            on_fault=self.projects.fault,
        )

    async def _dispatch(self, call: Call) -> object:
        return await self._verbs[call.verb](call)

    def _foreign(self, owner: Principal, writer: Principal) -> None:
        self._record(owner, "connect", Refusal("nobody", f"{writer} wrote on a connection of {owner}; it was closed"))

    def _refused(self, by: Principal, verb: str, refusal: wire.Refusal) -> None:
        self._record(by, verb, Refusal(**refusal.data))  # type: ignore[arg-type]  # the wire's refusal is the core's

    def _record(self, by: Principal, verb: str, refusal: Refusal) -> None:
        desk = self.projects.rooms[by.project].desk if isinstance(by, Agent) and by.project in self.projects.rooms else self._desk
        desk.refuse(by, verb, refusal)

    def _about(self) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "uid": os.geteuid(),
            "warden": warden_pid(),
            "version": version("fleet-supervisor"),
            "tier": self.containment.tier,
            "uptime": round(time.time() - self.started, 3),
            "lag_ms": self.lag.worst,
            "socket": paths.control_socket(str(self.runtime)),
        }
