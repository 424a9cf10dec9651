"""Run as the first process of a pid namespace with few numbers: agents come and go while strangers take the numbers
that they leave. Prints how many processes there were; fails when a stranger was signalled or something was left."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import trio

from tests.e2e.conftest import start_daemon
from tests.e2e.stage import Stage, project

#: The highest number, and how many of them are given away again and again: the kernel keeps the first 300.
HIGHEST, FREE = 400, 100
CYCLES, HANDS = 24, 3
LEAVES = "(setsid sleep 1000 &)\n(env -i setsid sh -c 'sleep 1000 & exit' &)\nsleep 1000 & echo on\nsleep 1000\n"


async def strangers(over: trio.Event) -> int:
    """Short-lived processes, one after the other, until it is over; how many there were. None may be signalled."""
    count = 0
    while not over.is_set():
        done = await trio.run_process(["sleep", "0.02"], check=False)
        assert done.returncode == 0, f"a stranger was ended by signal {-done.returncode}"
        count += 1
    return count


async def cycles(stage: Stage, count: int) -> None:
    for _ in range(count):
        agent = await stage.fork("leaves")
        await stage.said(agent["id"], "on")
        await stage.fleet.call("disband", agent=agent["id"])


async def main(tier: str, at: Path) -> None:
    over = trio.Event()
    seen: list[int] = []

    async def watch() -> None:
        seen.append(await strangers(over))

    async with start_daemon(tier, at) as stage, trio.open_nursery() as nursery:
        await stage.fleet.up(project(stage.sh("leaves", LEAVES), "[agents.lead]"))
        for _ in range(4):
            nursery.start_soon(watch)
        async with trio.open_nursery() as hands:
            for _ in range(HANDS):
                hands.start_soon(cycles, stage, CYCLES // HANDS)
        over.set()
        await stage.fleet.call("down")
        await stage.empty()
    assert os.getpid() == 1
    print(sum(seen) + CYCLES * 8)


if __name__ == "__main__":
    subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
    Path("/proc/sys/kernel/pid_max").write_text(str(HIGHEST))
    trio.run(main, sys.argv[1], Path(sys.argv[2]))
