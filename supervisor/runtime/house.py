"""One project's hosts: spawns runs and carries out durable facts. It holds no rule: each fact names its act."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import trio

from supervisor.core import facts, view, words
from supervisor.core.authority import Agent
from supervisor.core.facts import Fact, Starting
from supervisor.core.state import Node, Project
from supervisor.runtime import points, pricing, seating
from supervisor.runtime.containment.cell import Cell, Containment
from supervisor.runtime.desk import Desk
from supervisor.runtime.heard import Heard
from supervisor.runtime.host import Host
from supervisor.runtime.logins import Logins
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

    @property
    def project(self) -> Project:
        """Its state."""
        return self.desk.project

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
            case facts.Stood():
                self._stand(fact)
            case facts.Handed():
                self._hand(fact)
            case facts.Leaving():
                host = self.hosts.get(fact.agent)
                if host is not None and not host.closing():
                    host.close()
            case facts.Rerun():
                if (host := self.hosts.get(fact.agent)) is not None:
                    host.rerun(fact.run)
            case facts.Interrupted() | facts.Answered() | facts.TurnStarted() | facts.Silent():
                if (host := self.hosts.get(fact.agent)) is not None:
                    host.told(fact)
            case facts.BackedOff():
                self._back_off(fact)
            case facts.Exited() | facts.Unstarted():
                self.logins.starts.free(fact.agent, fact.run)
            case facts.Ready() | facts.Parked() | facts.Tripped() | facts.Mended() | facts.Opened():
                self.parks.act(fact)
            case facts.Respecified():
                if (host := self.hosts.get(fact.agent)) is not None:
                    host.kept(fact.spec)
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
        host = self.settle_in(node)
        if host is None:
            self.desk.observe(facts.Unstarted(fact.agent, fact.run, "its parent has left"))
        else:
            host.start(fact)

    def _stand(self, fact: facts.Stood) -> None:
        """Its host is there without a run, so that others may be started under it."""
        node = self.desk.project.agents.get(fact.agent)
        if node is not None and node.stands and not self.closing:
            self.settle_in(node)

    def settle_in(self, node: Node) -> Host | None:
        """The agent's host, a new one where it has none; None where its parent has left."""
        host = self.hosts.get(node.id)
        if host is not None and not host.closing():
            return host
        parent = self.hosts.get(node.parent) if node.parent is not None else None
        if node.parent is not None and (parent is None or parent.closing()):
            return None
        new = Host(self, node, parent, host.done if host is not None else None)
        self.hosts[node.id] = new
        if parent is not None:
            parent.adopt(new)
        else:
            self._nursery.start_soon(new.live, name=f"host of {new.agent}")
        return new

    def _hand(self, fact: facts.Handed) -> None:
        host, node = self.hosts.get(fact.agent), self.desk.project.agents.get(fact.agent)
        if host is not None and node is not None and host.run is not None and host.run.number == fact.run:
            inputs = tuple(item for item in node.handed if item.id in fact.inputs)
            host.run.pulse.spoken_to(turn=fact.turn)
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
        project, home = self.desk.project, self.home(node.id)
        # All that can fail comes before the process is there.
        made = seating.prepare(
            project, node, fact, home, instance=self.instance, tools=self._tools, key=self.logins.key
        )
        talk = made.program.converse(made.seat)
        printed = self.printed(node.id)
        stderr = Stderr(printed.stderr)
        cell.limit(node.spec.resources)
        points.reach("spawning")
        try:
            process = cell.spawn(
                made.launch.argv,
                cwd=node.spec.directory or str(home),
                env=made.environment,
                stdio=made.kind.stdio,
                stderr=stderr.fd,
                run=fact.run,
            )
        except BaseException:
            stderr.close()
            raise
        points.reach("spawned")
        self.runs[process.pid, process.start] = Agent(project.id, node.id, fact.run)
        self.desk.observe(made.started(process.pid, process.start))
        where = f"{node.name} ({node.id})"
        heard = Heard(
            self.desk,
            node.id,
            later,
            lambda what: self.fault(where, what),
            pricing.estimator(made.program, lambda: node.model),
            zone(made.environment.get("TZ", "")),
        )
        return Run(
            node.id, fact.run, process, cell, made.program, talk, printed.stdout, stderr, heard, once=made.kind.once
        )

    def credential(self, node: Node) -> str:
        """The login that the agent's program would have; "" where that cannot be told, or only once it is tried."""
        try:
            return seating.login(self.desk.project, node, tools=self._tools, key=self.logins.key)
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

    def signs(self, node: Node) -> view.Plain:
        """What is seen of an agent's run, with ages."""
        host = self.hosts.get(node.id)
        if host is None or host.run is None:
            return view.unseen(node)
        return host.run.pulse.shown(node) | {"wedged": host.run.process.stopped()}

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
