"""Many agents, many times over: processes, descriptors, sockets, files and cgroups are what they were at the start."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import trio

from tests.e2e.stage import PATIENCE, SLEEP, Stage, open_fds, project, terminated
from tests.house import cgroups, eventually

#: How often an agent is started and ended; `bench/cycles.py` does more.
CYCLES = int(os.environ.get("FLEET_CYCLES", "120"))
#: So many at once.
HANDS = 6
#: A fork, a stop: it leaves a child, one in its own session, and one that daemonised itself with a cleared environment.
ESCAPING = """(setsid sleep 1000 &)
(env -i setsid sh -c 'sleep 1000 & exit' &)
sleep 1000 & echo on
sleep 1000
"""
LEVELS, BRANCH = 5, 200


class Counted:
    """All that a daemon has, by what it is."""

    def __init__(self, stage: Stage) -> None:
        self.processes = [process.pid for process in stage.below()]
        self.fds = sorted(open_fds(stage.daemon).values())
        self.cgroups = sorted(
            str(path) for group in cgroups() for path in group.rglob("*") if path.is_dir() and str(stage.daemon) in str(path)
        )
        self.files = sorted(os.listdir(os.environ["TMPDIR"])), sorted(
            str(path) for path in Path(os.environ["XDG_RUNTIME_DIR"]).rglob("*")
        )


async def test_agents_that_come_and_go_with_escaping_descendants_leave_nothing(alone: Stage) -> None:
    stage = alone
    await stage.fleet.up(project(stage.sh("escaping", ESCAPING), "[agents.lead]", limits="agents = 100000\n", grace="5s"))
    await stage.standing("lead")
    agent = await stage.fork("escaping", parent="lead")  # what is only made once is made now
    await stage.fleet.call("disband", agent=agent["id"])
    before = Counted(stage)

    async def cycle(count: int) -> None:
        for _ in range(count):
            agent = await stage.fork("escaping", parent="lead")
            await stage.said(agent["id"], "on")
            await stage.fleet.call("disband", agent=agent["id"])

    with trio.fail_after(60 + CYCLES):
        async with trio.open_nursery() as nursery:
            for _ in range(HANDS):
                nursery.start_soon(cycle, CYCLES // HANDS)
    gc.collect()
    after = Counted(stage)
    assert after.processes == before.processes
    assert after.cgroups == before.cgroups
    assert after.files == before.files
    assert after.fds == before.fds
