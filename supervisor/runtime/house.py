"""One project's hosts: spawns runs and carries out durable facts. It holds no rule: each fact names its act."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import trio

from supervisor.core import facts, rights, words
from supervisor.core.authority import Agent
from supervisor.core.facts import Fact, Starting
from supervisor.core.spec import KindSpec
from supervisor.core.state import Node
from supervisor.kinds.kind import Launch, Seat
from supervisor.kinds.table import KINDS
from supervisor.runtime import environment, points
from supervisor.runtime.containment.cell import Cell, Containment
from supervisor.runtime.desk import Desk
from supervisor.runtime.heard import Heard
from supervisor.runtime.host import Host
from supervisor.runtime.logins import Logins, credential
from supervisor.runtime.parks import Parks
from supervisor.runtime.places import Places
from supervisor.runtime.run import Run
from supervisor.runtime.stderr import Stderr
from supervisor.runtime.transcript import Transcript
from supervisor.runtime.zone import zone

#: What an agent printed, in its home.
TRANSCRIPT = "transcript.jsonl"


class Printed:
    """The two transcripts of an agent."""

    def __init__(self, home: Path) -> None:
        self.stdout = Transcript(home / TRANSCRIPT)
        self.stderr = Transcript(home / "stderr.log")

    def close(self) -> None:
        """Let the files go; those who follow come to the end."""
        self.stdout.close()
        self.stderr.close()


class House:
    """The hosts of one project. `desk` is set once, before anything happens."""

    desk: Desk

    def __init__(
        self,
        directory: Path,
        instance: int,
        containment: Containment,
        tools: str,
        nursery: trio.Nursery,
        fault: Callable[[str, BaseException | str], None],
        runs: dict[tuple[int, int], Agent],
        logins: Logins,
    ) -> None:
        self.directory = directory
        self.instance = instance
        self.places = Places(containment)
        self.hosts: dict[str, Host] = {}
        self.fault = fault
        self._printed: dict[str, Printed] = {}
        #: one spawn in a turn of the loop: a fleet that starts does not hold up who asks for its status
        self.spawning = trio.Lock()
        self.logins = logins
        self.parks = Parks(self)
        self.closing = False
        self._empty = trio.Event()
        #: the leaders of all living runs, by (pid, start): what names a caller
        self.runs = runs
        self._tools = tools
        self._nursery = nursery

    # --- acts

    def act(self, fact: Fact) -> None:
        """Carry out one durable fact; facts that ask for nothing are passed over. A fault is shown and goes no further:
        whoever calls this acts for all agents."""
        try:
            self._act(fact)
        except Exception as error:  # noqa: BLE001  # as said
            self.fault(f"{type(fact).__name__} of {getattr(fact, 'agent', self.directory.name)}", error)

    def _act(self, fact: Fact) -> None:
        match fact:
            case facts.Starting():
                self._start(fact)
            case facts.Handed():
                self._hand(fact)
            case facts.Leaving():
                host = self.hosts.get(fact.agent)
                if host is not None and not host.closing():
                    host.close()
            case facts.Rerun():
                if (host := self.hosts.get(fact.agent)) is not None:
                    host.rerun(fact.run)
            case facts.Interrupted():
                if (host := self.hosts.get(fact.agent)) is not None:
                    host.interrupt()
            case facts.BackedOff():
                self._back_off(fact)
            case facts.Exited() | facts.Unstarted():
                self.logins.starts.free(fact.agent, fact.run)
            case facts.Ready() | facts.Parked() | facts.Tripped() | facts.Mended() | facts.Opened():
                self.parks.act(fact)
            case facts.Respecified():
                if (host := self.hosts.get(fact.agent)) is not None and host.cell is not None:
                    host.cell.limit(fact.spec.resources)
            case facts.Granted():
                if (host := self.hosts.get(fact.agent)) is not None:
                    host.watch_wall()
            case _:
                pass

    def _start(self, fact: Starting) -> None:
        node = self.desk.project.agents.get(fact.agent)
        if node is None or node.run != fact.run:
            return
        if self.closing:
            self.desk.observe(facts.Unstarted(fact.agent, fact.run, "the daemon leaves"))
            return
        host = self.hosts.get(fact.agent)
        if host is not None and not host.closing():
            host.start(fact)
        elif not self.settle_in(node, fact):
            self.desk.observe(facts.Unstarted(fact.agent, fact.run, "its parent has left"))

    def settle_in(self, node: Node, fact: Starting | None = None) -> bool:
        """A new host for the agent, which begins with this run or waits for one; False where its parent has left."""
        parent = self.hosts.get(node.parent) if node.parent is not None else None
        if node.parent is not None and (parent is None or parent.closing()):
            return False
        before = self.hosts.get(node.id)
        new = Host(self, node, parent, before.done if before is not None else None)
        if fact is not None:
            new.start(fact)
        self.hosts[node.id] = new
        if parent is not None:
            parent.adopt(new)
        else:
            self._nursery.start_soon(new.live, name=f"host of {new.agent}")
        return True

    def _hand(self, fact: facts.Handed) -> None:
        host, node = self.hosts.get(fact.agent), self.desk.project.agents.get(fact.agent)
        if host is not None and node is not None and host.run is not None and host.run.number == fact.run:
            inputs = tuple(item for item in node.handed if item.id in fact.inputs)
            host.hand(inputs, self._introduction(node) if fact.introduce else "")

    def _introduction(self, node: Node) -> str:
        told = words.introduction(self.desk.project, node)
        if not node.talk.abandoned:
            return told
        return f"{told}\n{words.continuation(node, str(self.home(node.id) / TRANSCRIPT))}"

    def _back_off(self, fact: facts.BackedOff) -> None:
        host, node = self.hosts.get(fact.agent), self.desk.project.agents.get(fact.agent)
        if host is not None and node is not None:
            due = facts.Due(fact.agent, node.run)
            host.after(fact.delay, lambda: self._observe(due))

    # --- runs

    def spawn(self, node: Node, cell: Cell, fact: Starting, later: Callable[[float, Callable[[], None]], None]) -> Run:
        """Start a run's process. Raises OSError with everything undone."""
        self.places.check(node.name)
        project, spec = self.desk.project, node.spec
        kind = self._kind(spec.kind)
        home = self.home(node.id)
        tools = rights.effective(project, node, "tools")
        seat = Seat(
            node.id,
            fact.run,
            node.name,
            node.session,
            fact.resume,
            str(home),
            spec,
            tools if isinstance(tools, tuple) else None,
        )
        program = KINDS[kind.protocol]
        # All that can fail comes before the process is there.
        launch, talk = program.launch(kind, seat), program.converse(seat)
        env = self._environment(node, launch)
        printed = self.printed(node.id)
        stderr = Stderr(printed.stderr)
        cell.limit(spec.resources)
        points.reach("spawning")
        try:
            process = cell.spawn(
                launch.argv,
                cwd=spec.directory or str(home),
                env=env,
                stdio=kind.stdio,
                stderr=stderr.fd,
                run=fact.run,
            )
        except BaseException:
            stderr.close()
            raise
        points.reach("spawned")
        self.runs[process.pid, process.start] = Agent(project.id, node.id, fact.run)
        login = credential(self.logins.key, program, env)
        self.desk.observe(facts.Started(node.id, fact.run, process.pid, process.start, login))
        where = f"{node.name} ({node.id})"
        heard = Heard(self.desk, node.id, later, lambda what: self.fault(where, what), zone(env.get("TZ", "")))
        return Run(node.id, fact.run, process, cell, program, talk, printed.stdout, stderr, heard)

    def _kind(self, name: str) -> KindSpec:
        fleet = self.desk.project.fleet
        kind = next((kind for kind in fleet.kinds if kind.name == name), None) if fleet is not None else None
        if kind is None or kind.protocol not in KINDS:
            raise FileNotFoundError(f"the kind {name!r} is not declared any more")
        return kind

    def _environment(self, node: Node, launch: Launch) -> dict[str, str]:
        project = self.desk.project
        allowed = rights.effective(project, node, "env")
        given = dict(launch.env) | dict(node.spec.env)
        if node.spec.env_file:
            given |= environment.read_file(node.spec.env_file)
        built = environment.build(
            os.environ, allowed if isinstance(allowed, tuple) else None, given, project.path, self._tools
        )
        built["FLEET_AGENT"] = f"{self.instance}:{node.id}"
        return built

    def credential(self, node: Node) -> str:
        """The login that the agent's program would have; "" where that cannot be told, or only once it is tried."""
        try:
            program = KINDS[self._kind(node.spec.kind).protocol]
            return credential(self.logins.key, program, self._environment(node, Launch(())))
        except OSError:
            return ""

    def home(self, agent: str) -> Path:
        """The agent's own directory, made where it is missing."""
        home = self.directory / "agents" / agent
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        return home

    def printed(self, agent: str) -> Printed:
        """What the agent prints, while it has a host; its files are kept after it is gone."""
        if agent not in self._printed:
            self._printed[agent] = Printed(self.home(agent))
        return self._printed[agent]

    def unkept(self) -> list[tuple[str, str]]:
        """Whose output the disk does not take, and why."""
        return [
            (agent, f"{kept.fault}; {kept.lost} bytes of its output are lost")
            for agent, printed in self._printed.items()
            for kept in (printed.stdout, printed.stderr)
            if kept.fault
        ]

    def ended(self, run: Run) -> None:
        """A run is over: its process names nobody any more."""
        self.runs.pop((run.process.pid, run.process.start), None)

    def unspawned(self, error: OSError, node: Node) -> str:
        """Why a run could not be spawned, for people."""
        what = error.filename or node.spec.kind
        return f"{what}: {error.strerror or error}"

    # --- ends

    def _observe(self, fact: Fact) -> None:
        self.desk.observe(fact)

    def left(self, host: Host) -> None:
        """A host is done."""
        if self.hosts.get(host.agent) is host:
            del self.hosts[host.agent]
            if (printed := self._printed.pop(host.agent, None)) is not None:
                printed.close()
        if self.closing and not self.hosts:
            self._empty.set()

    async def close(self) -> None:
        """End every run in order; what is wanted stays wanted. What was decided before this and is to start only now,
        does not."""
        self.closing = True
        for host in list(self.hosts.values()):
            if host.parent is None and not host.closing():
                host.close()
        if self.hosts:
            await self._empty.wait()
