"""What containment is to a host: one cell per agent, in which its runs live and from which nothing gets away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import trio

    from supervisor.core.facts import Killed
    from supervisor.core.spec import Resources, Stdio
    from supervisor.launchers.local import Process

Tier = Literal["cgroup", "warden"]


@frozen
class Member:
    """A living process of a run. `stray`: outside the ancestry of the run's leader; `escaped`: outside its cgroup."""

    pid: int
    start: int
    argv0: str
    state: str
    stray: bool
    escaped: bool


class Cell(Protocol):
    """The place of one agent, for all its runs."""

    agent: str
    #: why not all that the agent is limited to is kept; "" if it is
    unkept: str

    def limit(self, resources: Resources) -> None:
        """Keep the agent and all below it within these, from now on."""

    def spawn(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], stdio: Stdio, stderr: int, run: int
    ) -> Process:
        """Start the leader of a run. OSError as it comes; EBUSY while something of the run before lives."""

    def members(self) -> tuple[Member, ...]:
        """All that lives of the current run, its leader included."""

    def living(self) -> bool:
        """Does anything of the run live? Cheap, and never wrongly no."""

    def signal(self, number: int) -> int:
        """Signal each member that did not get this signal in this run yet, SIGTERM with SIGCONT behind it; how many.
        What has come up since below a process that got it is that one's way of ending, and is left alone until it
        is gone."""

    async def clear(self, within: float) -> tuple[tuple[Killed, ...], tuple[int, ...]]:
        """SIGKILL again and again until nothing lives or the time is over: (killed, unkillable). The leader is in
        neither while it can be killed; its exit says how it ended."""

    def oom(self) -> int:
        """How many processes of the current run the kernel ended for want of memory, as far as it counts them."""

    def change(self) -> trio.Event:
        """The event of the next end of a member: take it before you look, so that none between is missed."""

    async def changed(self, change: trio.Event) -> None:
        """That event, or a second went by."""

    async def emptied(self) -> None:
        """Nothing of the run lives."""

    def close(self) -> None:
        """The agent is gone, or its daemon leaves."""


class Containment(Protocol):
    """All cells of this daemon."""

    tier: Tier
    instance: int

    def cell(self, agent: str, parent: Cell | None) -> Cell:
        """The place of an agent, inside its parent's."""

    def reap(self) -> None:
        """Collect what has ended, and wake whoever waits for it."""

    def agent_of(self, pid: int) -> str | None:
        """The agent in whose cgroup this process stands. It may contradict an ancestry, never name a caller."""

    def mark_of(self, pid: int) -> str | None:
        """The agent whose mark this process carries; "?" for one that has left."""

    def unclaimed(self) -> tuple[int, ...]:
        """Adopted processes that carry no sign of whose they are. They end with the containment."""

    def close(self) -> None:
        """End what is left and give everything back."""
