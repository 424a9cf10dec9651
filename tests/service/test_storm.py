"""The daemon is killed again and again, at random moments, while agents are forked, disbanded, instructed, and print:
each time the tree is what was wanted, and no process lives that is not of it."""

from __future__ import annotations

import random
import secrets
from statistics import median
from typing import Any

import trio
from attrs import Factory, define

from tests.house import PATIENCE, slowed
from tests.service.inside import Inside, Process, Service

KILLS = 20
#: Within so many seconds the tree is back, on a machine that is not busy with other things: so it is here for most of
#: the kills, for others may take the machine at any moment.
PROMISE = 3.0
#: Between two looks at a tree that comes back, in seconds.
PAUSE = 0.05
#: So many forked agents or more, and at most twice as many.
CROWD = 6
UP = ("standing", "working", "waiting")
#: How a call ends when the daemon does.
CUT = (OSError, EOFError)

TREE = """
[limits]
forks_per_minute = 1000000
[defaults]
kind = "scripted"
stop_grace = "1s"
[agents.lead]
[agents.lead.agents.loud]
[agents.forker]
[agents.forker.agents.deep.agents.deeper]
"""
LOUD = "script:\nrepeat 1000:\nflood 200k\nspend input=10 output=1\nend"
#: Its children have one task and leave something behind in it.
FORKER = """script:
leave setsid
leave daemon
repeat 1000:
fork k$run-$n --kind scripted --max-tasks 1:
leave setsid
leave stubborn
done
end
end"""
FORKED = "script:\nleave nohup\nflood 50k"
INSTRUCTED = "script:\nleave daemon\nflood 20k\nwait 50ms"


@define
class Wanted:
    """Names that must be in the tree, those that must not, and those whose answer was cut off: these may or may not."""

    names: set[str] = Factory(lambda: {"lead", "loud", "forker", "deep", "deeper"})
    gone: set[str] = Factory(set)
    unknown: set[str] = Factory(set)
    count: int = 0

    async def fork(self, service: Service) -> None:
        self.count += 1
        name = f"w{self.count}"
        self.unknown.add(name)
        await service.call("fork", kind="scripted", name=name, parent="lead", task=FORKED)
        self.unknown.discard(name)
        self.names.add(name)

    async def disband(self, service: Service, name: str) -> None:
        self.names.discard(name)
        self.unknown.add(name)
        await service.call("disband", agent=name)
        self.unknown.discard(name)
        self.gone.add(name)

    def settle(self, tree: dict[str, dict[str, Any]]) -> None:
        """What was unknown is what it has become."""
        living = {name for name in self.unknown if name in tree}
        self.names |= living
        self.gone |= self.unknown - living
        self.unknown.clear()


async def work(service: Service, wanted: Wanted, chance: random.Random, killed: trio.Event) -> None:
    """Fork, disband and instruct until the daemon is gone: what is asked of the next one is nobody's wish."""
    try:
        while not killed.is_set():
            crowd = sorted(name for name in wanted.names if name.startswith("w"))
            if len(crowd) < CROWD or (len(crowd) < 2 * CROWD and chance.random() < 0.5):
                await wanted.fork(service)
            else:
                await wanted.disband(service, chance.choice(crowd))
            await service.call("instruct", agent="deeper", text=INSTRUCTED)
    except CUT:
        return


async def busy(service: Service) -> None:
    """What prints and forks by itself is at it."""
    for name, script in (("loud", LOUD), ("forker", FORKER)):
        await service.call("instruct", agent=name, text=script)
    await service.until(lambda tree: all(tree[name]["state"] == "working" for name in ("loud", "forker")))


def amiss(processes: list[Process], tree: dict[str, dict[str, Any]], wanted: Wanted) -> str:
    """What is not as it should be; "" if nothing. `processes` lived before and after the tree was looked at, and are
    not of the machinery around the daemon. (The forker's children may come and go: a task on its way is handed
    again.)"""
    living = {name: agent for name, agent in tree.items() if agent["state"] != "gone"}
    if wrong := (wanted.names - living.keys()) | (wanted.gone & living.keys()):
        return f"missing, or there and not wanted: {sorted(wrong)}"
    if down := {name: living[name]["state"] for name in wanted.names if living[name]["state"] not in UP}:
        return f"not up: {down}"
    daemons = [process.cgroup.removesuffix("/daemon") for process in processes if process.cgroup.endswith("/daemon")]
    if len(daemons) != 1:
        return f"daemons: {daemons}"
    places = {f"/{agent['id']}/self" for agent in living.values()} | {f"{daemons[0]}/daemon"}
    if strangers := [process for process in processes if not _stands_in(process, daemons[0], places)]:
        return f"strangers: {strangers}"
    leaders = {process.inner: process.cgroup for process in processes if "scripted/__main__" in process.argv}
    shown = {agent["pid"]: agent["id"] for agent in living.values()}
    if twice := [place for pid, place in leaders.items() if f"/{shown.get(pid)}/self" not in place]:
        return f"runs that the tree does not have: {twice}"
    if dead := [name for name in wanted.names if living[name]["pid"] not in leaders]:
        return f"up, and no process: {dead}"
    return ""


def _stands_in(process: Process, daemon: str, places: set[str]) -> bool:
    return process.cgroup.startswith(daemon) and any(process.cgroup.endswith(place) for place in places)


async def back(service: Service, before: int, ours: set[int], wanted: Wanted) -> float:
    """Another daemon has the wanted tree, whole and alone: how long that took (seconds), had nobody slowed it down."""
    why, inside, begun = "", service.inside, trio.current_time()
    with trio.move_on_after(PATIENCE):
        while True:
            earlier = {process.pid for process in inside.processes()}
            try:
                pid, tree = (await service.call("status"))["pid"], await service.tree()
            except CUT as error:
                why = f"no daemon answers: {error!r}"
            else:
                stayed = [process for process in inside.processes() if process.pid in earlier - ours]
                why = amiss(stayed, tree, wanted) if pid != before else "it is the old daemon"
                if not why:
                    wanted.settle(tree)
                    return (trio.current_time() - begun) / slowed()
            await trio.sleep(PAUSE)
    raise AssertionError(f"not back within {PATIENCE} s: {why}\n{inside.log[-3000:]}")


async def test_twenty_kills_at_random_moments_under_load(inside: Inside) -> None:
    seed = secrets.randbits(32)
    print(f"the moments are those of seed {seed}")
    chance = random.Random(seed)  # noqa: S311  moments, no secrets
    wanted = Wanted()
    ours = {process.pid for process in inside.processes()}
    with trio.fail_after(PATIENCE):
        await inside.install("--now")
        service = Service(inside)
        await service.up(TREE)
        await service.alive(*wanted.names)
    took: list[float] = []
    for _ in range(KILLS):
        with trio.fail_after(PATIENCE):
            await busy(service)
            before, killed = (await service.call("status"))["pid"], trio.Event()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(work, service, wanted, chance, killed)
                nursery.start_soon(work, service, wanted, chance, killed)
                await trio.sleep(chance.uniform(0.0, 0.6))
                await inside.run("kill", "-9", str(before))
                killed.set()
        took.append(await back(service, before, ours, wanted))
    assert median(took) < PROMISE, took
    assert (await inside.show("NRestarts"))["NRestarts"] == str(KILLS)
    assert "broken" not in await service.ctl("verify")
