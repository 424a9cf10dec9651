"""Containment by cgroups: one directory per agent inside its parent's, processes in its `self` leaf, and one write that
kills all of it. The daemon is a subreaper here too: what moves itself to another cgroup is found by its ancestry."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from attrs import evolve

from supervisor.core.spec import Resources
from supervisor.runtime.containment import cgroupfs, controllers, marks
from supervisor.runtime.containment.inotify import Watch
from supervisor.runtime.containment.subreaper import Identity, Seen, Subreaper, SubreaperCell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import trio

    from supervisor.core.facts import Killed
    from supervisor.core.spec import Stdio
    from supervisor.launchers.local import Process
    from supervisor.runtime.containment.cell import Cell, Tier
    from supervisor.runtime.containment.cgroupfs import Place

#: Where the daemon itself stands, and where an agent's own processes do.
DAEMON, OWN = "daemon", "self"


class Cgroups(Subreaper):
    """All cells of this daemon, in a directory of the cgroup it was started in. OSError where that is not ours."""

    tier: Tier = "cgroup"

    def __init__(self, instance: int, base: Place) -> None:
        cgroupfs.sweep(base)
        self._base = base
        self.controllers = controllers.Controllers(base)
        self.top, self._lock = cgroupfs.claim(base)
        try:
            self.leaf = self.top.below(DAEMON)
            os.mkdir(self.leaf.directory)
            os.stat(f"{self.leaf.directory}/cgroup.kill")  # it came with Linux 5.14
            # A cgroup with processes in it cannot hand controllers down, so the daemon stands in a leaf.
            cgroupfs.join(self.leaf.directory)
            self.watch = Watch()
            super().__init__(instance)
        except (OSError, ValueError):
            self._leave()
            raise

    def cell(self, agent: str, parent: Cell | None) -> Cell:
        return CgroupCell(self, agent, parent.place if isinstance(parent, CgroupCell) else self.top)

    def agent_of(self, pid: int) -> str | None:
        name = marks.cgroup(pid) or ""
        if not self.top.holds(name) or self.leaf.holds(name):
            return None
        inner = name[len(self.top.name) :].strip("/").split("/")
        # An agent may make cgroups of its own in its `self`; the agent's name stands before that.
        return (inner[: inner.index(OWN)] if OWN in inner else inner)[-1]

    def unclaimed(self) -> tuple[int, ...]:
        return tuple(pid for pid in super().unclaimed() if self.agent_of(pid) is None)

    def close(self) -> None:
        super().close()
        self.watch.close()
        self._leave()

    def _leave(self) -> None:
        with suppress(OSError):
            for entry in os.scandir(self.top.directory):
                if entry.is_dir() and entry.name != DAEMON:
                    cgroupfs.end(self.top.below(entry.name))
                    cgroupfs.remove(entry.path)
        self.controllers.give_back()  # before the daemon goes back: no process stands where controllers are handed down
        with suppress(OSError):
            cgroupfs.join(self._base.directory)
        cgroupfs.remove(self.top.directory)
        os.close(self._lock)


class CgroupCell(SubreaperCell):
    """One agent's directory."""

    _group: Cgroups

    def __init__(self, group: Cgroups, agent: str, above: Place) -> None:
        super().__init__(group, agent)
        self.place = above.below(agent)
        self._own = self.place.below(OWN)
        self.cgroup = self._own.directory
        os.makedirs(self.cgroup, exist_ok=True)
        self._events = group.watch.add(f"{self.cgroup}/cgroup.events", self.nudge)
        self._limits = Resources()
        self._oom = 0

    def limit(self, resources: Resources) -> None:
        if resources != self._limits:
            self._limits = resources
            self.unkept = self._group.controllers.limit(self.place, resources)

    def spawn(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], stdio: Stdio, stderr: int, run: int
    ) -> Process:
        self._oom = controllers.oom(self.place, self._own)
        return super().spawn(argv, cwd=cwd, env=env, stdio=stdio, stderr=stderr, run=run)

    def oom(self) -> int:
        return controllers.oom(self.place, self._own) - self._oom

    def living(self) -> bool:
        return super().living() or cgroupfs.populated(self._own.directory)

    async def changed(self, change: trio.Event) -> None:
        self._group.watch.start()
        await super().changed(change)

    def close(self) -> None:
        super().close()
        self._group.watch.remove(self._events)
        self._group.controllers.forget(self.place)
        cgroupfs.remove(self.place.directory)

    def _look(self, since: float) -> Iterator[Seen]:
        inside = set(cgroupfs.pids(self._own.directory))
        met: set[int] = set()
        for seen in super()._look(since):
            met.add(seen.stat.pid)
            yield seen if seen.stat.pid in inside else evolve(seen, escaped=self._escaped(seen))
        for pid in inside - met:
            stat = marks.stat(pid)
            # Asked again after its start time was read: the number may be a stranger's by now.
            if stat is not None and stat.alive and self._own.holds(marks.cgroup(pid) or ""):
                yield Seen(stat, stray=True)

    def _escaped(self, seen: Seen) -> bool:
        name = marks.cgroup(seen.stat.pid)
        if name is None or self._own.holds(name):
            return False
        # A leader comes from the daemon's own leaf, and is there for its first moment.
        return not (seen.leader and name == self._group.leaf.name)

    async def _strike(self, killed: dict[Identity, Killed], *, again: bool) -> None:
        if not again:
            self._name(killed, self._look(0.0))
        cgroupfs.kill(self._own.directory)
        if again:
            await super()._strike(killed, again=True)  # what is outside
