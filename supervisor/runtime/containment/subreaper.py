"""Containment without cgroups (the warden tier): the daemon is a child subreaper, so whatever an agent leaves behind
becomes the daemon's child and is found there. Under it stands a warden that does the same for the daemon."""

from __future__ import annotations

import errno
import os
import signal
import time
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

import trio
from attrs import astuple, frozen

from supervisor.core.facts import Killed
from supervisor.launchers import local
from supervisor.runtime import turn
from supervisor.runtime.containment import kernel, marks
from supervisor.runtime.containment.adopted import Adopted
from supervisor.runtime.containment.cell import Cell, Member, Tier
from supervisor.runtime.containment.reaper import collect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from supervisor.core.spec import Resources, Stdio
    from supervisor.launchers.local import Process
    from supervisor.runtime.containment.marks import Stat

#: Who waits for an event looks again after this long without one (seconds).
SLOW = 1.0
#: Pauses between two strikes of a kill: what was killed needs a moment to be gone.
SHORTEST, LONGEST = 0.005, 0.1
#: How many processes of one kill are named in the record; a fork storm has more than anyone will read.
NAMED = 256
#: How long a strike may hold the loop before others get a turn (seconds).
TURN = 0.01

Identity = tuple[int, int]


@frozen
class Seen:
    """A living process, as one look found it."""

    stat: Stat
    stray: bool
    leader: bool = False
    escaped: bool = False

    @property
    def who(self) -> Identity:
        return self.stat.pid, self.stat.start

    def member(self) -> Member:
        """With its name, which is one more file to read."""
        name = marks.argv0(self.stat.pid) or self.stat.comm
        return Member(self.stat.pid, self.stat.start, name, self.stat.state, self.stray, self.escaped)


class Subreaper:
    """All cells of this daemon; see `cell.Containment`."""

    tier: Tier = "warden"

    def __init__(self, instance: int) -> None:
        self.instance = instance
        self.adopted = Adopted(instance)
        self._number = 0
        self._was = kernel.is_subreaper()
        kernel.set_subreaper(True)

    def cell(self, agent: str, parent: Cell | None) -> Cell:
        del parent  # it makes no difference where there are no directories
        return SubreaperCell(self, agent)

    def number(self) -> int:
        """A number for the next run's mark, never reused in this instance."""
        self._number += 1
        return self._number

    def reap(self) -> None:
        collect(self.adopted.ending)

    def agent_of(self, pid: int) -> str | None:
        del pid
        return None

    def mark_of(self, pid: int) -> str | None:
        mark = marks.marked(pid)
        if mark is None or mark[0] != self.instance:
            return None
        owner = self.adopted.numbers.get(mark[1])
        return owner.agent if owner is not None else "?"

    def unclaimed(self) -> tuple[int, ...]:
        return self.adopted.unclaimed()

    def close(self) -> None:
        def orphans() -> Iterator[Stat]:
            self.adopted.look()
            yield from marks.tree(self.adopted.orphans(), os.getpid())

        for found in {found for found, fresh in marks.freeze(orphans) if fresh}:
            marks.send(found.pid, found.start, signal.SIGKILL)
        self.reap()
        kernel.set_subreaper(self._was)


class SubreaperCell:
    """One agent's place; see `cell.Cell`."""

    def __init__(self, group: Subreaper, agent: str) -> None:
        self.agent = agent
        self.run = 0
        self.unkept = ""
        self.cgroup: str | None = None  # the directory its processes start in
        self._group = group
        self._process: Process | None = None
        self._number = 0
        self._told: dict[int, set[Identity]] = {}
        self._noted: set[int] = set()
        self._change = trio.Event()
        group.adopted.agents[agent] = self

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.agent} run {self.run}>"

    def limit(self, resources: Resources) -> None:
        limited = any(value is not None for value in astuple(resources))
        self.unkept = f"the {self._group.tier} tier has no cgroup to keep them with" if limited else ""

    # --- one run after the other

    def spawn(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], stdio: Stdio, stderr: int, run: int
    ) -> Process:
        if self.living():
            raise OSError(errno.EBUSY, f"something of run {self.run} still lives", self.agent)
        self._forget()
        number = self._group.number()
        process = local.spawn(
            argv,
            cwd=cwd,
            env=env,
            stdio=stdio,
            stderr=stderr,
            mark=marks.compose(self._group.instance, number),
            cgroup=self.cgroup,
        )
        process.ended = self.nudge
        self.run, self._process, self._number, self._told = run, process, number, {}
        self._group.adopted.numbers[number] = self
        self._group.adopted.sessions[process.pid] = self
        return process

    def close(self) -> None:
        self._forget()
        if self._group.adopted.agents.get(self.agent) is self:
            del self._group.adopted.agents[self.agent]

    def _forget(self) -> None:
        adopted = self._group.adopted
        adopted.numbers.pop(self._number, None)
        for pid in self._noted:
            adopted.seen.pop(pid, None)
        self._noted.clear()
        if self._process is not None and adopted.sessions.get(self._process.pid) is self:
            del adopted.sessions[self._process.pid]

    # --- looking

    def living(self) -> bool:
        if self._process is None:
            return False
        if self._process.poll() is None:
            return True
        # Without a leader every process of the run has a living ancestor among our orphans, and is one where its own
        # parents are gone: when there is none now, there never will be.
        return bool(self._group.adopted.of(self, self._process.ended_at))

    def members(self) -> tuple[Member, ...]:
        return tuple(seen.member() for seen in self._look(0.0))

    def _look(self, since: float) -> Iterator[Seen]:
        """Leader, descendants, orphans and theirs, parents first; orphans as of `since` or a moment ago."""
        own = os.getpid()
        adopted = self._group.adopted
        if self._process is not None and self._process.poll() is None:
            for stat in marks.tree([self._process.pid], own):
                adopted.seen[stat.pid] = stat.start, self
                self._noted.add(stat.pid)
                yield Seen(stat, stray=False, leader=stat.pid == self._process.pid)
        for stat in marks.tree(adopted.of(self, since), own):
            yield Seen(stat, stray=True)

    def oom(self) -> int:
        return 0

    # --- waiting

    def nudge(self) -> None:
        """One of the run's processes ended."""
        self._change.set()
        self._change = trio.Event()

    def change(self) -> trio.Event:
        return self._change

    async def changed(self, change: trio.Event) -> None:
        with trio.move_on_after(SLOW):
            await change.wait()

    async def emptied(self) -> None:
        await trio.lowlevel.checkpoint()
        while True:
            change = self.change()
            if not self._lives():
                return
            await self.changed(change)

    def _lives(self) -> bool:
        try:
            return self.living()
        except OSError:
            return True  # no fd left to look with: not knowing is not empty

    # --- ending

    def signal(self, number: int) -> int:
        told = self._told.setdefault(number, set())
        before = frozenset(told)
        covered: set[int] = set()
        count = 0
        for seen in self._look(0.0):
            if seen.who in before or seen.stat.ppid in covered:
                covered.add(seen.stat.pid)
            elif seen.who not in told:
                told.add(seen.who)
                count += marks.send(*seen.who, number)
                if number == signal.SIGTERM:
                    marks.send(*seen.who, signal.SIGCONT)  # a stopped process gets to its SIGTERM
        return count

    async def clear(self, within: float) -> tuple[tuple[Killed, ...], tuple[int, ...]]:
        over = trio.current_time() + within
        killed: dict[Identity, Killed] = {}
        pause = SHORTEST
        await trio.lowlevel.checkpoint()
        while self._lives():
            with suppress(OSError):  # no fd left to look with; others may give some back
                async with turn.mine():
                    await self._strike(killed, again=pause > SHORTEST)
            left = over - trio.current_time()
            with trio.move_on_after(max(min(pause, left), SHORTEST)):
                await self.emptied()
                break
            if left <= 0:
                return tuple(killed.values()), tuple(seen.stat.pid for seen in self._look(time.monotonic()))
            pause = min(pause * 2, LONGEST)
        return tuple(killed.values()), ()

    async def _strike(self, killed: dict[Identity, Killed], *, again: bool) -> None:
        """Stop all of it, so that nothing forks or gets away, then kill what was stopped."""
        struck: dict[Identity, Seen] = {}
        seen: dict[int, Seen] = {}

        def look() -> Iterator[Stat]:
            # What forks and ends all the time is only found by a look of now; all else by one that others share.
            for found in self._look(time.monotonic() if again else 0.0):
                seen[found.stat.pid] = found
                yield found.stat

        turn = time.monotonic()
        for stat, fresh in marks.freeze(look):
            if fresh:
                struck[stat.pid, stat.start] = seen[stat.pid]
            if time.monotonic() - turn > TURN:
                await trio.lowlevel.checkpoint()
                turn = time.monotonic()
        self._name(killed, struck.values())
        for who in struck:
            marks.send(*who, signal.SIGKILL)

    def _name(self, killed: dict[Identity, Killed], found: Iterable[Seen]) -> None:
        for seen in islice(found, NAMED):
            if not seen.leader and len(killed) < NAMED:
                member = seen.member()
                killed[seen.who] = Killed(member.pid, member.argv0, "KILL", member.escaped)
