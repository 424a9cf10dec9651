"""Ending a run: politely, then SIGTERM once each, then SIGKILL; a grace is a maximum; what was ended is named."""

from __future__ import annotations

import signal

import pytest
import trio

from supervisor.runtime.containment import marks
from supervisor.runtime.containment.ladder import Clock, end
from tests.house import PATIENCE, eventually
from tests.processes.stage import Stage, alive

FAR = 1000.0
#: Counts its SIGTERMs on stdout and does not end by them.
DEAF = """if True:
    import os, signal
    signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"TERM\\n"))
    os.write(1, b"on\\n")
    while True:
        signal.pause()
"""
COMING_AND_GOING = """if True:
    import os, signal, time
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.setsid()
        while True:
            if os.fork() == 0:
                if os.fork() == 0:
                    time.sleep(0.03)
                os._exit(0)
            os.wait()
            time.sleep(0.01)
"""


def soon(seconds: float = 0.3) -> float:
    return trio.current_time() + seconds


def far() -> float:
    return trio.current_time() + FAR


async def test_what_an_agent_left_that_ended_by_itself_is_named(stage: Stage) -> None:
    leader, victims = await stage.victims("child", "double", "exit")
    assert await leader.wait() == 0
    with trio.fail_after(PATIENCE):
        killed, unkillable = await end(leader, stage.cell(), polite=None, until=far())
    assert {(one.pid, one.argv0, one.how) for one in killed} == {(pid, "sleep", "TERM") for pid in victims.values()}
    assert unkillable == ()
    assert not any(map(alive, victims.values()))


async def test_the_deaf_are_killed_when_the_time_is_over(stage: Stage) -> None:
    leader, victims = await stage.victims("deaf", "exit")
    await leader.wait()
    with trio.fail_after(PATIENCE):
        killed, _ = await end(leader, stage.cell(), polite=None, until=soon())
    assert [(one.pid, one.how) for one in killed] == [(victims["deaf"], "KILL")]


async def test_everyone_gets_one_sigterm(stage: Stage) -> None:
    leader = stage.python(DEAF)
    assert await stage.line(leader) == "on"
    with trio.fail_after(PATIENCE):
        killed, _ = await end(leader, stage.cell(), polite=None, until=soon(1.5))
    assert await stage.all(leader) == "TERM\n"
    assert killed == ()
    assert await leader.wait() == -signal.SIGKILL


async def test_everyone_gets_one_sigterm_while_others_come_and_go(stage: Stage) -> None:
    """Orphans that end one after the other look at the run again and again; nobody is told twice for that."""
    leader = stage.python(COMING_AND_GOING + DEAF)
    assert await stage.line(leader) == "on"
    with trio.fail_after(PATIENCE):
        await end(leader, stage.cell(), polite=None, until=soon(1.5))
    assert await stage.all(leader) == "TERM\n"


async def test_a_clean_up_of_a_second_and_a_half_is_finished_with_its_helpers(stage: Stage) -> None:
    clean_up = "trap 'sleep 1.5 && echo cleaned; exit 3' TERM"
    leader = stage.run("sh", "-c", f"{clean_up}; echo on; while :; do sleep 0.01; done")
    assert await stage.line(leader) == "on"
    with trio.fail_after(PATIENCE):
        killed, _ = await end(leader, stage.cell(), polite=None, until=far())
    assert await stage.all(leader) == "cleaned\n"
    assert await leader.wait() == 3
    assert killed == ()


async def test_what_comes_up_after_the_sigterm_gets_one_of_its_own(stage: Stage) -> None:
    program = """if True:
        import os, signal
        def leave(*_):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if os.fork() == 0:
                os.setsid()
                os.execvp("sleep", ["sleep", "1000"])
            os._exit(0)
        signal.signal(signal.SIGTERM, leave)
        os.write(1, b"on\\n")
        signal.pause()
    """
    leader = stage.python(program)
    await stage.line(leader)
    with trio.fail_after(PATIENCE):
        killed, _ = await end(leader, stage.cell(), polite=None, until=far())
    # Named only if its leader had ended by then; without a SIGTERM it would have lasted until far().
    assert {one.how for one in killed} <= {"TERM"}
    assert not stage.cell().living()
    assert await leader.wait() == 0


async def test_a_stopped_leader_gets_to_its_sigterm(stage: Stage) -> None:
    leader = stage.run("sh", "-c", "trap 'exit 5' TERM; echo on; while :; do sleep 0.01; done")
    await stage.line(leader)
    leader.signal(signal.SIGSTOP)
    await eventually(lambda: (found := marks.stat(leader.pid)) and found.state == "T")
    with trio.fail_after(PATIENCE):
        await end(leader, stage.cell(), polite=None, until=far())
    assert await leader.wait() == 5


async def test_a_grandchild_that_holds_stdout_is_ended_too(stage: Stage) -> None:
    wait = "while read name </proc/$!/comm; [ $name != sleep ]; do :; done"
    leader = stage.run("sh", "-c", f"sleep 1000 & {wait}; echo on")
    assert await stage.line(leader) == "on"
    await leader.wait()
    with trio.fail_after(PATIENCE):
        killed, _ = await end(leader, stage.cell(), polite=None, until=far())
    assert [one.argv0 for one in killed] == ["sleep"]
    assert await stage.all(leader) == ""


async def test_the_polite_way_alone_is_enough_for_the_polite(stage: Stage) -> None:
    leader = stage.run("sh", "-c", "trap 'echo TERM' TERM; cat >/dev/null; echo bye")
    with trio.fail_after(PATIENCE):
        await end(leader, stage.cell(), polite=leader.stdin.aclose, until=far())
    assert await stage.all(leader) == "bye\n"
    assert await leader.wait() == 0


@pytest.mark.parametrize("polite", [trio.sleep_forever, None], ids=["hangs", "fails"])
async def test_a_polite_way_that_gets_nowhere_is_passed_by(stage: Stage, polite: object) -> None:
    async def fails() -> None:
        raise trio.BrokenResourceError

    leader = stage.run("sleep", "1000")
    with trio.fail_after(PATIENCE):
        await end(leader, stage.cell(), polite=trio.sleep_forever if polite else fails, until=soon())
    assert await leader.wait() == -signal.SIGTERM


async def test_after_the_time_is_over_there_is_only_sigkill(stage: Stage) -> None:
    leader = stage.python(DEAF)
    await stage.line(leader)
    with trio.fail_after(PATIENCE):
        await end(leader, stage.cell(), polite=None, until=trio.current_time() - 1)
    assert await stage.all(leader) == ""
    assert await leader.wait() == -signal.SIGKILL


async def test_an_end_of_nothing_is_nothing(stage: Stage) -> None:
    assert await end(None, stage.cell(), polite=None, until=far()) == ((), ())


def test_a_branch_has_one_grace_and_its_deepest_level_goes_first() -> None:
    clock = Clock(begun=100.0, grace=10.0, levels=5)
    assert [clock.until(height) for height in range(6)] == [102, 104, 106, 108, 110, 110]
    assert Clock(0.0, 10.0, 0).until(0) == 10
