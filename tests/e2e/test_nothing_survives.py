"""Many agents, many times over: processes, descriptors, sockets, files and cgroups are what they were at the start."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import trio
from attrs import frozen

from tests.e2e.stage import Stage, open_fds, project, terminated
from tests.house import cgroups, eventually, slowed

#: How often an agent is started and ended; `bench/cycles.py` does more.
CYCLES = int(os.environ.get("FLEET_CYCLES", "500"))
#: So many at once.
HANDS = 6
#: A fork, a stop: it leaves a child, one in its own session, and one that daemonised itself with a cleared environment.
ESCAPING = """(setsid sleep 1000 &)
(env -i setsid sh -c 'sleep 1000 & exit' &)
sleep 1000 & echo on
sleep 1000
"""
#: The agents of each level of the branch that is ended: 200 in all.
LEVELS = (1, 4, 15, 60, 120)
GRACE = 3.0
STILL = 0.5
#: What every third of them is.
DEAF = "trap '' TERM\necho on\nwhile :; do sleep 1000; done\n"


@frozen
class Counted:
    """All that a daemon has, by what it is."""

    processes: list[int]
    fds: list[str]
    cgroups: list[str]
    files: list[str]

    @classmethod
    def of(cls, stage: Stage) -> Counted:
        """As of now."""
        inside = [str(path) for group in cgroups() for path in group.rglob("*") if path.is_dir()]
        return cls(
            sorted(process.pid for process in stage.below()),
            sorted(what.partition("[")[0] if "socket" in what else what for what in open_fds(stage.daemon).values()),
            sorted(path for path in inside if f"-{stage.daemon}-" in path),
            sorted(str(path) for at in ("TMPDIR", "XDG_RUNTIME_DIR") for path in Path(os.environ[at]).rglob("*")),
        )

    @classmethod
    async def settled(cls, stage: Stage) -> Counted:
        """As of when nothing has come or gone for `STILL` seconds: a client that has hung up is gone a moment later."""
        seen: list[Counted] = []
        since = trio.current_time()

        def again() -> bool:
            nonlocal since
            seen.append(cls.of(stage))
            if seen[-1] != seen[len(seen) - 2]:
                since = trio.current_time()
            return trio.current_time() - since > STILL

        await eventually(again)
        return seen[-1]


async def test_agents_that_come_and_go_with_escaping_descendants_leave_nothing(alone: Stage) -> None:
    stage = alone
    await stage.fleet.up(project(stage.sh("escaping", ESCAPING), "[agents.lead]", grace="5s"))
    await stage.standing("lead")
    before = await Counted.settled(stage)

    async def cycle(count: int) -> None:
        for _ in range(count):
            agent = await stage.fork("escaping", parent="lead")
            await stage.said(agent["id"], "on")
            await stage.fleet.call("disband", agent=agent["id"])

    with trio.fail_after(60 + CYCLES):
        async with trio.open_nursery() as nursery:
            for _ in range(HANDS):
                nursery.start_soon(cycle, CYCLES // HANDS)
    assert await Counted.settled(stage) == before


def branch() -> tuple[str, list[str]]:
    """The tables of the branch, and its agents' names; every third is deaf."""
    tables, level, names = [], [("top", "agents.top")], ["top"]
    for size in LEVELS[1:]:
        below = []
        for number in range(size):
            parent = level[number % len(level)][1]
            names.append(f"n{len(names)}")
            below.append((names[-1], f"{parent}.agents.{names[-1]}"))
        tables += level
        level = below
    tables += level
    kinds = {name: "deaf" if number % 3 == 0 else "sleep" for number, name in enumerate(names)}
    return "\n".join(f'[{path}]\nkind = "{kinds[name]}"' for name, path in tables), names


async def test_a_branch_of_two_hundred_ends_within_its_grace_and_a_second(stage: Stage) -> None:
    tables, names = branch()
    beside = "\n".join(f"[agents.beside.agents.b{number}]" for number in range(5))
    await stage.fleet.up(project(stage.sh("deaf", DEAF), tables, "[agents.beside]", beside, grace=f"{GRACE:g}s"))
    tree = await stage.standing(*names, "beside", *(f"b{number}" for number in range(5)))
    deaf = [tree[name] for name in names if tree[name]["kind"] == "deaf"]
    assert len(names) == 200
    assert len(deaf) == 67
    for agent in deaf:
        await stage.said(agent["id"], "on")
    beside_before = {name: agent["pid"] for name, agent in tree.items() if name.startswith("b")}
    with trio.fail_after(GRACE + slowed()):
        ended = await stage.fleet.call("disband", agent="top")
    assert {agent["state"] for agent in ended["ended"]} == {"gone"}
    assert all(terminated(tree[name]["pid"]) for name in names)
    after = await stage.fleet.tree()
    assert {name: agent["pid"] for name, agent in after.items() if name.startswith("b")} == beside_before
    assert {process.pid for process in stage.below()} == set(beside_before.values())
    killed = {after[agent["id"]]["exit"]["signal"] for agent in deaf if agent["id"] in after}
    assert killed == {signal.SIGKILL}
