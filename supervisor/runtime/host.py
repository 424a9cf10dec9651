"""The trio task that owns one agent through all its runs, in its parent host's nursery: a child cannot outlive its
parent. It decides nothing: facts tell it what to do, and it reports facts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import trio

from supervisor.core.facts import Answered, Expired, Fact, Input, Interrupted, Silent, Starting, TurnStarted, Unstarted
from supervisor.core.spec import Spec
from supervisor.core.state import Node
from supervisor.runtime import points
from supervisor.runtime.containment.cell import Cell
from supervisor.runtime.containment.ladder import KILL_WITHIN, Clock
from supervisor.runtime.run import Run
from supervisor.runtime.silence import Silence

if TYPE_CHECKING:
    from supervisor.runtime.house import House


class Host:
    """One agent's task. The methods below are acts: they start, cancel, set or send, and never wait."""

    def __init__(self, house: House, node: Node, parent: Host | None, before: trio.Event | None) -> None:
        self.house = house
        self.agent = node.id
        self.parent = parent
        self.children: set[Host] = set()
        self.done = trio.Event()
        self.scope = trio.CancelScope()
        self.clock: Clock | None = None
        self.cell: Cell | None = None
        self.run: Run | None = None
        self.tall = 0
        self._before = before
        self._newborn: list[Host] = []
        self._nursery: trio.Nursery | None = None
        self._waiting: deque[Starting] = deque()
        self._start = trio.Event()
        self._run_scope = trio.CancelScope()
        self.silence = Silence(self)
        self._unwanted = 0  # runs up to this number are to end
        self._born = trio.current_time() - node.lasted  # when its wall time began, less what it stood still
        self._stood = trio.current_time()  # since when it stands by without a process
        self.childless = trio.Event()
        if parent is not None:
            parent.children.add(self)

    def __repr__(self) -> str:
        return f"<Host of {self.agent}, {self.run or 'no run'}>"

    @property
    def node(self) -> Node:
        """The agent's state."""
        return self.house.desk.project.agents[self.agent]

    # --- acts

    def adopt(self, child: Host) -> None:
        """Start a child's host in this one's nursery."""
        if self._nursery is None:
            # Born in the batch that this host starts with: it begins as soon as the nursery is there.
            self._newborn.append(child)
        else:
            self._nursery.start_soon(child.live, name=f"host of {child.agent}")

    def start(self, fact: Starting) -> None:
        """Begin a run as soon as none is alive."""
        self._waiting.append(fact)
        self._start.set()

    def rerun(self, run: int) -> None:
        """End this run, even if it is yet to begin; the children stay."""
        self._unwanted = run
        self._end_of(run)

    def _end_of(self, run: int) -> None:
        if self.run is not None and self.run.number == run:
            self.clock = self.clock or Clock(trio.current_time(), self.node.spec.stop_grace, 1)
            self._run_scope.cancel()

    def hand(self, inputs: tuple[Input, ...], words: str) -> None:
        """Give texts to the running program."""
        if self.run is not None:
            self.run.hand(inputs, words)
            self.silence.listen()

    def told(self, fact: Interrupted | Answered | TurnStarted | Silent) -> None:
        """What is about the run that is there. A program that does one task and ends has had the end of its stdin: to
        cut its turn is to end its process."""
        run = self.run
        if run is None or run.number != fact.run:
            return
        match fact:
            case Interrupted():
                run.interrupt()
                if run.once:
                    self._end_of(fact.run)
            case Answered():
                run.answer(fact.prompt, allow=fact.allow, text=fact.text)
            case Silent():
                self._end_of(fact.run)
        self.silence.listen()

    def kept(self, spec: Spec) -> None:
        """The agent is kept in another way from now on."""
        if self.cell is not None:
            self.cell.limit(spec.resources)
        self.silence.listen()

    def close(self) -> None:
        """Leave: the branch ends, deepest first, on one clock. What is ending already, on a clock of its own, may not
        take longer than that."""
        self.measure()
        self.clock = Clock(trio.current_time(), self.node.spec.stop_grace, self.tall + 1)
        self.scope.cancel()
        for host in self.branch():
            if host.run is not None:
                host.run.hurry(self.clock.until(host.tall))

    def after(self, delay: float, call: Callable[[], None]) -> None:
        """Call back after so many seconds, unless the host has left by then."""
        if self._nursery is not None:
            self._nursery.start_soon(_ring, delay, call)

    def watch_wall(self) -> None:
        """Report the end of its wall time when it comes, whatever was granted meanwhile."""
        wall = self.node.grant.wall
        if wall is not None:
            self.after(max(0.0, self._born + wall - trio.current_time()), self._strike)

    def _strike(self) -> None:
        wall = self.node.grant.wall
        if wall is not None and trio.current_time() >= self._born + wall:
            self._observe(Expired(self.agent))

    # --- its place

    def branch(self) -> Iterator[Host]:
        """This host and all below it."""
        yield self
        for child in self.children:
            yield from child.branch()

    def measure(self) -> int:
        """How many levels of hosts there are below this one; remembered, for the slices of a clock."""
        self.tall = max((child.measure() + 1 for child in self.children), default=0)
        return self.tall

    def closing(self) -> bool:
        """Whether this host or one above it was told to leave."""
        at: Host | None = self
        while at is not None:
            if at.scope.cancel_called:
                return True
            at = at.parent
        return False

    def place(self) -> Cell:
        """Its cell, inside its parent's. Raises OSError where there can be none."""
        if self.cell is None:
            self.cell = self.house.places.cell(self.agent, self.parent.place() if self.parent else None)
        return self.cell

    # --- its life

    async def live(self) -> None:
        """The task. A fault of its own ends its agent and is reported; it never reaches its siblings."""
        try:
            if self._before is not None:
                with trio.CancelScope(shield=True):
                    await self._before.wait()
            with self.scope:
                async with trio.open_nursery() as self._nursery:
                    for child in self._newborn:
                        self._nursery.start_soon(child.live, name=f"host of {child.agent}")
                    self.watch_wall()
                    await self._runs()
        except Exception as error:  # noqa: BLE001  # whatever it was, the other agents go on and `status` shows it
            self.house.fault(f"host of {self.agent}", error)
        finally:
            self._leave()

    def _leave(self) -> None:
        """Nothing is alive any more: settle what was still to come, and let the parent go on."""
        for fact in self._waiting:
            self._unstarted(fact, "left before it was started")
        if self.cell is not None:
            self.house.places.leave(self.cell, self.house.desk.project)
        if self.parent is not None:
            self.parent.children.discard(self)
            if not self.parent.children:
                self.parent.childless.set()
        self.house.left(self)
        points.reach("left")
        self.done.set()

    async def _runs(self) -> None:
        while True:
            await trio.lowlevel.checkpoint()  # told to leave before it began: nothing is spawned
            if self._waiting:
                try:
                    await self._one(self._waiting[0])
                except Exception as error:  # noqa: BLE001  # it ends this run; the children and the next run go on
                    await self._broken(self._waiting[0], error)
                self._waiting.popleft()
            else:
                await self._start.wait()
                self._start = trio.Event()

    async def _one(self, fact: Starting) -> None:
        self.clock, self._run_scope = None, trio.CancelScope()
        login = self.house.credential(self.node)
        await self.house.logins.starts.take(self.agent, fact.run, login)
        try:
            async with self.house.spawning:
                cell = self.place()
                if not self._awaited(fact):
                    return
                if self.house.parks.holds(self.node, login):
                    self._observe(Unstarted(self.agent, fact.run, "its login takes no more for now", login))
                    return
                if fact.run <= self._unwanted:
                    self._unstarted(fact, "restarted before it began")
                    return
                self.run = self.house.spawn(self.node, cell, fact, self.after)
                if self.node.talk.once:
                    self.run.stood = trio.current_time() - self._stood
        except OSError as error:
            self._unstarted(fact, self.house.unspawned(error, self.node))
        finally:
            if self.run is None:
                self.house.logins.starts.free(self.agent, fact.run)
        if self.run is not None:
            await self._watch(self.run)

    async def _watch(self, run: Run) -> None:
        """A run from its first word to its exit record."""
        try:
            async with trio.open_nursery() as nursery:
                for task in (run.read, run.read_stderr, run.write):
                    nursery.start_soon(task)
                try:
                    with self._run_scope:
                        run.open()
                        await run.left(self.node.spec.stop_grace)
                finally:
                    with trio.CancelScope(shield=True):
                        await self._end(run)
        finally:
            self.house.ended(run)
            self.run, self._stood = None, trio.current_time()

    async def _broken(self, fact: Starting, error: Exception) -> None:
        """A fault of ours: the run ends whatever its state, and what follows is the core's."""
        self.house.fault(f"run {fact.run} of {self.agent}", error)
        if self.cell is not None:
            with trio.CancelScope(shield=True):
                await self.cell.clear(KILL_WITHIN)
        self._unstarted(fact, f"a fault of the supervisor ended it: {type(error).__name__}: {error}")

    def _awaited(self, fact: Starting) -> bool:
        """Whether the core still waits for this run."""
        node = self.house.desk.project.agents.get(self.agent)
        return node is not None and node.alive and node.run == fact.run

    def _unstarted(self, fact: Starting, why: str) -> None:
        if self._awaited(fact):
            self._observe(Unstarted(self.agent, fact.run, why))

    async def _end(self, run: Run) -> None:
        """The children first, unless only the run ends; then the run, within its slice of the branch's clock."""
        while self.closing() and self.children:
            await self.childless.wait()
            self.childless = trio.Event()
        clock = self._clock()
        await run.finish(until=clock.until(self.tall) if clock is not None else None)

    def _clock(self) -> Clock | None:
        """The clock of the topmost host that leaves, else one's own."""
        found = self.clock
        at: Host | None = self
        while at is not None:
            if at.scope.cancel_called:
                found = at.clock or found
            at = at.parent
        return found

    def _observe(self, fact: Fact) -> None:
        self.house.desk.observe(fact)


async def _ring(delay: float, call: Callable[[], None]) -> None:
    await trio.sleep(delay)
    call()
