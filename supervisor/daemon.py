"""The daemon: wires containment, projects and the control door together, and leaves in order. No rule lives here."""

from __future__ import annotations

import argparse
import faulthandler
import os
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import trio

from supervisor.config import agents_toml
from supervisor.core import facts
from supervisor.core.authority import Agent, Principal
from supervisor.core.refusals import Refusal, RefusedError
from supervisor.doors import calls, paths
from supervisor.doors.accepting import Accepting
from supervisor.doors.asks import Asks
from supervisor.doors.control import serve
from supervisor.doors.listener import DoorError, MisplacedError, TakenError
from supervisor.doors.reads import Reads
from supervisor.doors.service import Call, Service
from supervisor.launchers.limits import widen
from supervisor.runtime import points, signals
from supervisor.runtime.answer import Answer
from supervisor.runtime.containment import marks
from supervisor.runtime.containment.contain import contain
from supervisor.runtime.containment.reaper import reap
from supervisor.runtime.containment.sweep import sweep
from supervisor.runtime.desk import Desk
from supervisor.runtime.journal import codec
from supervisor.runtime.journal.journal import HeldError, Journal, JournalError
from supervisor.runtime.lag import Lag
from supervisor.runtime.notify import Notify
from supervisor.runtime.peers import Peers, identity
from supervisor.runtime.projects import Projects
from supervisor.runtime.tools import lay_out
from supervisor.warden import IO_ERROR, Post, claim, say

#: Exit codes (sysexits.h), beside IO_ERROR: another daemon is there; what it is told to be it cannot be here, and
#: starting it again would not help.
TAKEN, UNFIT = 75, 78


class UnfitError(Exception):
    """This daemon cannot be what it is told to be, here."""


class Daemon:
    """One running daemon."""

    def __init__(
        self, state: Path, runtime: Path, tier: Literal["auto", "cgroup", "warden"], post: Post, notify: Notify
    ) -> None:
        self.state = state
        self.runtime = runtime
        self._post = post
        self.warden = post.warden
        self.started = time.monotonic()
        self.instance = secrets.randbelow(marks.HIGHEST_INSTANCE) + 1
        self.lag = Lag()
        self.notify = notify
        self.stopping = trio.Event()
        journal, past, cut = Journal.open(state / "daemon", "daemon")
        own = past.project()
        self._desk = Desk(own, journal, lambda _fact: None, lambda: 1)
        # After the lock: a second daemon must not touch what the first one contains.
        try:
            self.containment = contain(self.instance, tier)
        except OSError as error:
            raise UnfitError(f"agents cannot be contained ({tier}): {error}") from error
        self._before = int(own.instance) if own.instance else None
        self._repaired = [facts.Repaired(cut)] if cut else []
        self.projects: Projects
        self._verbs: dict[str, Any] = {}
        self._changing: frozenset[str] = frozenset()

    async def run(self) -> None:
        """Serve until told to stop. Raises JournalError when a disk fails."""
        if self._before is not None:
            # Whatever ended the daemon before us: nothing of its tree may live when ours starts.
            _, unkillable = await sweep(self._before)
            if unkillable:
                raise OSError(f"processes of the daemon before this one cannot be ended: {unkillable}")
        with trio.open_signal_receiver(*signals.heard(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)) as told:
            try:
                async with trio.open_nursery() as nursery:
                    await self._start(nursery)
                    nursery.start_soon(self._listen, told)
                    await self.stopping.wait()
                    self.notify.leaving(self._status())
                    await self.projects.close()
                    self._desk.observe(facts.Closing())
                    nursery.cancel_scope.cancel()
            finally:
                self.containment.close()
            await self.projects.settle()
            await self._desk.drain()
            self._desk.journal.close(time.time())

    async def _start(self, nursery: trio.Nursery) -> None:
        codec.warm()
        tools = lay_out(self.runtime / "bin")
        self.projects = Projects(self.state, self.containment, self.instance, tools, nursery)
        nursery.start_soon(self._desk.run)
        opened = self._desk.observe(*self._repaired, facts.Opened(str(self.instance), self.containment.tier))
        nursery.start_soon(self.lag.run, lambda: self.notify.alive(self._status()))
        await nursery.start(reap, self.containment)
        self._set_verbs()
        # Whatever carries this instance's mark must be found by the next one: not a process before that is on disk.
        await opened.durable.wait()
        for stored in self.projects.stored():
            try:
                self.projects.open(stored)
            except JournalError as error:
                self.projects.fault(stored, error)  # one broken journal is shown; the other projects run
        # Last: whoever is answered finds the projects there.
        await nursery.start(serve, Path(paths.control_socket(str(self.runtime))), self._service())
        self._post.ready()
        self.notify.ready(self._status())

    def _status(self) -> str:
        """One line for people who ask the service manager."""
        rooms = self.projects.rooms.values()
        if self.stopping.is_set():
            return f"leaving; {sum(len(room.house.hosts) for room in rooms)} agents have yet to end"
        states = [node.state for room in rooms for node in room.project.agents.values() if node.live]
        return f"{len(states)} agents, {states.count('working')} working; {self.containment.tier} tier"

    async def _listen(self, told: AsyncIterator[int]) -> None:
        async for _ in told:
            self.stopping.set()

    # --- the door

    def _set_verbs(self) -> None:
        personal = agents_toml.personal_file(os.environ)
        asks = Asks(self.projects, self.stopping.set)
        changing = asks.table | Accepting(self.projects, personal).table
        self._verbs = changing | Reads(self.projects, self._about, personal).table
        self._changing = frozenset(changing)

    def _service(self) -> Service:
        peers = Peers(
            uid=os.geteuid(),
            runs=self.projects.runs,
            daemon=[
                own
                for own in (identity(os.getpid()), identity(self.warden) if self.warden is not None else None)
                if own is not None
            ],
            mark_of=self.containment.mark_of,
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
        """Whatever an answer rests on is on record, be it a no: that of an agent that is not there, or out of reach."""
        try:
            return await self._verbs[call.verb](call)
        except calls.RecordedError:
            raise
        except RefusedError as no:
            # Who only looks, or plans, asks for nothing.
            if call.verb in self._changing and not call.params.get("plan"):
                await self._desk_of(call).refuse(call.principal, call.verb, no.refusal).durable.wait()
            raise

    def _desk_of(self, call: Call) -> Desk:
        """Of the project that a call is about, else the daemon's own."""
        try:
            return calls.find_room(self.projects, call.principal, call.params).desk
        except RefusedError:
            return self._desk

    def _foreign(self, owner: Principal, writer: Principal) -> None:
        self._record(owner, "connect", Refusal("nobody", f"{writer} wrote on a connection of {owner}; it was closed"))

    async def _refused(self, by: Principal, verb: str, refusal: Refusal) -> None:
        await self._record(by, verb, refusal).durable.wait()

    def _record(self, by: Principal, verb: str, refusal: Refusal) -> Answer:
        desk = (
            self.projects.rooms[by.project].desk
            if isinstance(by, Agent) and by.project in self.projects.rooms
            else self._desk
        )
        return desk.refuse(by, verb, refusal)

    def _about(self) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "uid": os.geteuid(),
            "warden": self.warden,
            "systemd": self.notify.asked,
            "version": version("fleet-supervisor"),
            "tier": self.containment.tier,
            "uptime": round(time.monotonic() - self.started, 3),
            "lag_ms": self.lag.worst,
            "socket": paths.control_socket(str(self.runtime)),
        }


def run(argv: Sequence[str], hook: points.Hook | None = None) -> int:
    """The daemon in this process, until it is told to stop; returns its exit code (0; 74: disk or socket; 75: another
    daemon is there; 78: it cannot be here)."""
    points.arm(hook)
    post, notify = claim(), Notify(os.environ)
    faulthandler.enable()  # a watchdog ends a stuck loop with SIGABRT: the log says where it stood
    parser = argparse.ArgumentParser(prog="supervisord", description="The fleet supervisor's daemon.")
    parser.add_argument("--tier", choices=("auto", "cgroup", "warden"), default="auto", help="how agents are contained")
    options = parser.parse_args(argv)
    home = paths.passwd_home(os.geteuid())
    state = Path(paths.state_dir(os.environ, home))
    runtime = Path(paths.runtime_dir(os.environ, os.geteuid(), home))
    code = 0
    try:
        # A thread that reads a large file gives the interpreter back to the loop this often (seconds).
        sys.setswitchinterval(0.0005)
        widen()
        _make(state)
        _make(runtime)
        trio.run(Daemon(state, runtime, options.tier, post, notify).run)
    except* (TakenError, HeldError) as group:
        code = _fail(TAKEN, group, notify)
    except* (UnfitError, MisplacedError) as group:
        code = _fail(UNFIT, group, notify)
    except* (JournalError, DoorError, OSError) as group:
        code = _fail(IO_ERROR, group, notify)
    return code


def _make(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise UnfitError(f"{directory} cannot be made: {error.strerror}") from error


def _fail(code: int, group: BaseExceptionGroup[Exception], notify: Notify) -> int:
    for error in leaves(group):
        say(str(error))
        notify.failed(str(error))
    return code


def leaves(group: BaseExceptionGroup[Exception]) -> list[Exception]:
    """The exceptions themselves, without the groups around them."""
    return [
        leaf
        for error in group.exceptions
        for leaf in (leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    ]
