"""Forks and ends agents whose processes escape, many times over, and ends two hundred agents at once, in each tier:
what it takes, and what the daemon is left with. `bench/cycles.py [ROUNDS]`; needs the tests beside it."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import psutil
import trio

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.e2e.stage import Stage, cgroups_missing, project
from tests.e2e.test_nothing_survives import ESCAPING, HANDS
from tests.fleet import running

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
CROWD = 200


async def cycles(stage: Stage) -> None:
    """As many rounds as are wanted, some at once."""
    left = ROUNDS

    async def hand() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            agent = await stage.fork("escaping", parent="lead")
            await stage.said(agent["id"], "on")
            await stage.fleet.call("disband", agent=agent["id"])

    async with trio.open_nursery() as nursery:
        for _ in range(HANDS):
            nursery.start_soon(hand)


async def measure(tier: str, at: Path) -> None:
    """One tier."""
    async with running(at, tier) as fleet:
        stage = Stage(fleet, at)
        crowd = "\n".join(f'[agents.crowd.agents.n{number}]\nkind = "escaping"' for number in range(CROWD))
        await stage.fleet.up(project(stage.sh("escaping", ESCAPING), "[agents.lead]", grace="5s"))
        await stage.standing("lead")
        daemon = psutil.Process(stage.daemon)
        before, begun, used = daemon.memory_info().rss, time.perf_counter(), sum(daemon.cpu_times()[:2])
        await cycles(stage)
        took, used = time.perf_counter() - begun, sum(daemon.cpu_times()[:2]) - used
        print(
            f"{tier}: {ROUNDS} forks and ends: {took * 1000 / ROUNDS:.1f} ms each, {used * 1000 / ROUNDS:.1f} ms of CPU"
        )
        print(f"{tier}: memory {before / 1e6:.1f} → {daemon.memory_info().rss / 1e6:.1f} MB, {daemon.num_fds()} fds")
        tables = ["[agents.lead]", "[agents.crowd]", crowd]
        await stage.fleet.up(project(stage.sh("escaping", ESCAPING), *tables, grace="5s"))
        tree = await stage.standing(*(f"n{number}" for number in range(CROWD)))
        for agent in tree.values():
            if agent["kind"] == "escaping":
                await stage.said(agent["id"], "on")
        processes, begun, used = len(stage.below()), time.perf_counter(), sum(daemon.cpu_times()[:2])
        await stage.fleet.call("disband", agent="crowd")
        took, used = time.perf_counter() - begun, sum(daemon.cpu_times()[:2]) - used
        print(f"{tier}: {CROWD} agents, {processes} processes ended in {took:.2f} s, {used:.2f} s of CPU")
        print(f"{tier}: the loop was at most {(await stage.fleet.call('status'))['lag_ms']} ms late within a minute")


def main() -> None:
    """Both tiers, each in a place of its own."""
    for tier in ("cgroup", "warden"):
        if tier == "cgroup" and (why := cgroups_missing()):
            print(f"cgroup: {why}")
            continue
        with tempfile.TemporaryDirectory(prefix="fleet-") as place:
            for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
                os.environ[name] = f"{place}/{name[4:9].lower()}"
                Path(os.environ[name]).mkdir(mode=0o700)
            trio.run(measure, tier, Path(place) / "room")


if __name__ == "__main__":
    main()
