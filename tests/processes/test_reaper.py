"""Collecting what ended: orphans leave no zombies, and nobody's exit status is taken away."""

from __future__ import annotations

import os
import subprocess
import sys

import trio

from supervisor.runtime.containment import marks
from supervisor.runtime.containment.sweep import sweep
from tests.house import PATIENCE, eventually
from tests.processes.stage import Stage, alive


async def test_orphans_leave_no_zombies(stage: Stage) -> None:
    leader = stage.run("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do (setsid sh -c 'exit 3' &) ; done; cat")
    await eventually(lambda: marks.argv0(leader.pid) == "sh")
    await leader.stdin.aclose()
    assert await leader.wait() == 0
    await eventually(lambda: not [pid for pid in marks.children(os.getpid()) if marks.marked(pid)])


async def test_a_leaders_status_is_never_taken(stage: Stage) -> None:
    for number in range(30):
        leader = stage.run("sh", "-c", f"(exit 9 &); exit {number}", agent=f"a{number}")
        await trio.lowlevel.checkpoint()
        stage.containment.reap()
        assert await leader.wait() == number


async def test_the_status_of_other_children_is_never_taken(stage: Stage) -> None:
    other = subprocess.Popen([sys.executable, "-ISc", "raise SystemExit(7)"])
    await eventually(lambda: (found := marks.stat(other.pid)) and found.state == "Z")
    # It is in front of the queue now; what ends behind it is collected all the same.
    leader, victims = await stage.victims("double", "exit")
    assert await leader.wait() == 0
    os.kill(victims["double"], 9)
    with trio.fail_after(PATIENCE):
        await stage.cell().emptied()
    await eventually(lambda: marks.stat(victims["double"]) is None)
    assert other.wait() == 7


async def test_what_carries_a_dead_daemons_mark_is_ended(stage: Stage) -> None:
    """The first thing after a daemon died without a warden: here its number is this one's, and nobody else's."""
    leader, victims = await stage.victims("session", "double")
    killed, unkillable = await sweep(stage.containment.instance)
    assert {one.pid for one in killed} == {leader.pid, *victims.values()}
    assert unkillable == ()
    assert not any(map(alive, victims.values()))
    assert await sweep(stage.containment.instance) == ((), ())
