"""Nothing that an agent starts outlives its run, however it was started: the same promises in both tiers."""

from __future__ import annotations

import errno
import os
import signal
import sys
from functools import partial
from pathlib import Path

import pytest
import trio

from supervisor.runtime.containment import cgroupfs, marks
from supervisor.runtime.containment.cell import Member
from supervisor.runtime.containment.cgroup import CgroupCell
from tests.house import PATIENCE, eventually
from tests.processes.stage import Stage, alive, elsewhere, there

WAYS = ("child", "grandchild", "session", "double", "deaf")


def _strays(stage: Stage, agent: str) -> list[Member]:
    return [one for one in stage.cell(agent).members() if one.stray]


async def test_every_way_of_leaving_a_process_behind_is_seen_and_ended(stage: Stage) -> None:
    leader, victims = await stage.victims(*WAYS)
    cell = stage.cell()
    members = {member.pid: member for member in cell.members()}
    assert {leader.pid, *victims.values()} <= members.keys()
    assert {pid for pid, member in members.items() if member.stray} == {victims["double"]}
    assert members[victims["session"]].argv0 == "sleep"
    killed, unkillable = await cell.clear(PATIENCE)
    assert unkillable == ()
    assert not cell.living()
    assert not any(alive(pid) for pid in victims.values())
    assert {one.pid for one in killed} >= set(victims.values())
    assert leader.pid not in {one.pid for one in killed}, "how the leader ended is told by its exit"
    assert {one.how for one in killed} == {"KILL"}
    assert await leader.wait() == -signal.SIGKILL


async def test_a_group_kill_alone_is_not_enough(stage: Stage) -> None:
    leader, victims = await stage.victims(*WAYS)
    os.killpg(leader.pgid, signal.SIGKILL)
    await leader.wait()
    left = {victims["session"], victims["double"]}
    # One more was in the group than told of itself: the shell between.
    await eventually(lambda: {member.pid for member in stage.cell().members()} == left)
    assert not any(alive(victims[way]) for way in ("child", "grandchild", "deaf"))
    assert stage.cell().living()
    killed, _ = await stage.cell().clear(PATIENCE)
    assert {one.pid for one in killed} == left
    assert not any(map(alive, left))


async def test_a_fork_storm_ends(stage: Stage) -> None:
    leader, _ = await stage.victims("storm")
    with trio.fail_after(PATIENCE):
        _, unkillable = await stage.cell().clear(PATIENCE)
    assert unkillable == ()
    assert await leader.wait() == -signal.SIGKILL
    assert not [pid for pid in marks.children(os.getpid()) if marks.marked(pid) and alive(pid)]


async def test_a_stopped_leader_dies(stage: Stage) -> None:
    leader = stage.run("sleep", "1000")
    leader.signal(signal.SIGSTOP)
    await eventually(lambda: (found := marks.stat(leader.pid)) and found.state == "T")
    _, unkillable = await stage.cell().clear(PATIENCE)
    assert unkillable == ()
    assert await leader.wait() == -signal.SIGKILL


async def test_one_that_moved_itself_to_another_cgroup_is_found_reported_and_ended(stage: Stage) -> None:
    try:
        place = elsewhere().below(f"fleet-test-elsewhere-{os.getpid()}")
        os.mkdir(place.directory)
    except (AssertionError, OSError) as why:
        pytest.skip(f"no cgroup to move to: {why}")
    try:
        _, victims = await stage.victims("cgroup", "child", env={"ELSEWHERE": f"{place.directory}/cgroup.procs"})
        escaped = {member.pid for member in stage.cell().members() if member.escaped}
        assert escaped == ({victims["cgroup"]} if stage.containment.tier == "cgroup" else set())
        killed, unkillable = await stage.cell().clear(PATIENCE)
        assert unkillable == ()
        assert not any(map(alive, victims.values()))
        assert {one.pid for one in killed if one.escaped} == escaped
    finally:
        os.rmdir(place.directory)


async def test_what_escaped_after_its_leader_ended_keeps_the_cell_from_being_empty(stage: Stage) -> None:
    try:
        place = elsewhere().below(f"fleet-test-elsewhere-{os.getpid()}")
        os.mkdir(place.directory)
    except (AssertionError, OSError) as why:
        pytest.skip(f"no cgroup to move to: {why}")
    try:
        leader, victims = await stage.victims("cgroup", "exit", env={"ELSEWHERE": f"{place.directory}/cgroup.procs"})
        assert await leader.wait() == 0
        assert stage.cell().living()
        killed, _ = await stage.cell().clear(PATIENCE)
        assert [one.pid for one in killed] == [victims["cgroup"]]
    finally:
        os.rmdir(place.directory)


async def test_emptied_returns_when_the_last_process_ends_by_itself(stage: Stage) -> None:
    leader, victims = await stage.victims("double", "exit")
    assert await leader.wait() == 0
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.cell().emptied)
            await trio.testing.wait_all_tasks_blocked()
            os.kill(victims["double"], signal.SIGTERM)
    assert not stage.cell().living()


async def test_a_zombie_is_not_alive(stage: Stage) -> None:
    leader = stage.python("import os, time; pid = os.fork() or os._exit(0); print(pid, flush=True); time.sleep(1000)")
    pid = int(await stage.line(leader))
    await eventually(lambda: (found := marks.stat(pid)) and found.state == "Z")
    assert [member.pid for member in stage.cell().members()] == [leader.pid]


async def test_a_process_whose_first_thread_ended_is_alive(stage: Stage) -> None:
    program = """if True:
        import ctypes, threading, time
        threading.Thread(target=lambda: (print("on", flush=True), time.sleep(1000))).start()
        ctypes.CDLL(None).pthread_exit(None)
    """
    leader = stage.python(program)
    await stage.line(leader)
    await eventually(lambda: (found := marks.stat(leader.pid)) and found.state == "Z")
    assert stage.cell().living()
    assert [member.pid for member in stage.cell().members()] == [leader.pid]


async def test_a_signal_reaches_each_process_once(stage: Stage) -> None:
    await stage.victims("child", "session", "double")
    assert stage.cell().signal(signal.SIGURG) == 4
    assert stage.cell().signal(signal.SIGURG) == 0
    assert stage.cell().signal(signal.SIGWINCH) == 4


async def test_the_next_run_waits_for_the_end_of_the_one_before(stage: Stage) -> None:
    leader, victims = await stage.victims("double", "exit")
    await leader.wait()
    with pytest.raises(OSError, match="still lives") as refused:
        stage.run("true")
    assert refused.value.errno == errno.EBUSY
    await stage.cell().clear(PATIENCE)
    assert not alive(victims["double"])
    again = stage.run("true")
    assert await again.wait() == 0


async def test_a_childs_processes_are_not_its_parents(stage: Stage) -> None:
    parent = stage.cell("a1")
    child = stage.cell("a2", parent)
    stage.run("sleep", "1000", agent="a1")
    below = stage.run("sleep", "1000", agent="a2")
    assert [member.pid for member in child.members()] == [below.pid]
    await parent.clear(PATIENCE)
    assert not parent.living()
    assert child.living()
    assert alive(below.pid)


async def test_cells_are_directories_inside_their_parents_and_go_with_them(stage: Stage) -> None:
    parent = stage.cell("a1")
    if not isinstance(parent, CgroupCell):
        pytest.skip("this tier has no directories")
    child = stage.cell("a2", parent)
    assert isinstance(child, CgroupCell)
    assert child.place.directory == f"{parent.place.directory}/a2"
    process = stage.run("sleep", "1000", agent="a2")
    await eventually(lambda: cgroupfs.pids(f"{child.place.directory}/self") == [process.pid])
    assert stage.containment.agent_of(process.pid) == "a2"
    assert stage.containment.agent_of(os.getpid()) is None
    await child.clear(PATIENCE)
    child.close()
    assert not there(child.place.directory)
    parent.close()
    assert not there(parent.place.directory)


async def test_a_mark_names_the_agent_through_everything(stage: Stage) -> None:
    _, victims = await stage.victims("double")
    assert stage.containment.mark_of(victims["double"]) == "a1"
    assert stage.containment.mark_of(os.getpid()) is None
    await eventually(lambda: marks.argv0(victims["double"]) == "sleep")
    assert marks.named(victims["double"]) is None
    assert stage.containment.mark_of(victims["double"]) == "a1"


async def test_an_orphan_without_a_mark_is_known_by_its_session_or_environment(stage: Stage) -> None:
    unmark = "import resource; resource.setrlimit(10, (-1, -1)); "
    by_session = stage.python(unmark + "import os; os.fork() or (os.fork() and os._exit(0)); input()", agent="a1")
    by_environment = stage.python(
        unmark + "import os; os.fork() or (os.setsid(), os.fork() and os._exit(0)); input()", agent="a2"
    )
    for agent, leader in (("a1", by_session), ("a2", by_environment)):
        await eventually(partial(_strays, stage, agent))
        leader.signal(signal.SIGKILL)
        await leader.wait()
        assert stage.cell(agent).living()
        killed, unkillable = await stage.cell(agent).clear(PATIENCE)
        assert len(killed) == 1
        assert unkillable == ()


async def test_an_orphan_that_shows_nothing_is_told_and_ends_with_the_containment(stage: Stage) -> None:
    leader = stage.python(
        "import os, resource; resource.setrlimit(10, (-1, -1)); "
        "os.execvp('env', ['env', '-i', 'setsid', '-f', 'sh', '-c', 'echo $$; exec sleep 1000'])"
    )
    pid = int(await stage.line(leader))
    await leader.wait()
    if stage.containment.tier == "cgroup":
        assert stage.cell().living(), "its cgroup tells"
        assert stage.containment.unclaimed() == ()
    else:
        assert stage.containment.unclaimed() == (pid,)
        stage.containment.close()
    await stage.cell().clear(PATIENCE)
    await eventually(lambda: not alive(pid))


async def test_what_cannot_be_killed_is_reported_and_the_rest_ends(stage: Stage) -> None:
    freezer = Path("/sys/fs/cgroup/freezer")
    if not os.access(freezer / "cgroup.procs", os.W_OK):
        pytest.skip("no v1 freezer to make a process that SIGKILL does not end")
    _, victims = await stage.victims("child", "session")
    ice = freezer / f"fleet-test-ice-{os.getpid()}"
    ice.mkdir()
    try:
        (ice / "cgroup.procs").write_text(str(victims["child"]))
        (ice / "freezer.state").write_text("FROZEN")
        await eventually(lambda: (ice / "freezer.state").read_text() == "FROZEN\n")
        killed, unkillable = await stage.cell().clear(0.5)
        assert unkillable == (victims["child"],)
        assert not alive(victims["session"])
        assert stage.cell().living()
        (ice / "freezer.state").write_text("THAWED")
        with trio.fail_after(PATIENCE):
            await stage.cell().emptied()
        assert {one.pid for one in killed} >= {victims["session"]}
    finally:
        (ice / "freezer.state").write_text("THAWED")
        await eventually(lambda: (ice / "cgroup.procs").read_text() == "")
        ice.rmdir()


async def test_two_hundred_left_behind_are_ended_at_once(stage: Stage) -> None:
    leader = stage.python(
        "import os\n"
        "for _ in range(200): os.fork() or (os.setsid(), os.execvp('sleep', ['sleep', '1000']))\n"
        "print('on', flush=True)"
    )
    await stage.line(leader)
    await leader.wait()
    killed, unkillable = await stage.cell().clear(PATIENCE)
    assert len(killed) == 200
    assert unkillable == ()


def test_a_number_that_is_someone_elses_by_now_is_not_signalled() -> None:
    own = marks.stat(os.getpid())
    assert own is not None
    arrived: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _frame: arrived.append(number))
    try:
        assert not marks.send(os.getpid(), own.start - 1, signal.SIGUSR1)
        assert arrived == []
        assert marks.send(os.getpid(), own.start, signal.SIGUSR1)
        assert arrived == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_process_that_is_gone_is_an_answer() -> None:
    pid = os.posix_spawn(sys.executable, [sys.executable, "-ISc", ""], {})
    os.waitpid(pid, 0)
    assert marks.stat(pid) is None
    assert marks.children(pid) == []
    assert marks.argv0(pid) == ""
    assert marks.marked(pid) is None
    assert marks.named(pid) is None
    assert marks.cgroup(pid) is None
    assert not marks.send(pid, 1, 0)


def test_a_stranger_under_a_members_number_is_not_taken_for_it() -> None:
    """A process counts only while its parent is the one that listed it."""
    assert list(marks.tree([os.getpid()], parent=1 if os.getppid() != 1 else 2)) == []
    assert next(iter(marks.tree([os.getpid()], parent=os.getppid()))).pid == os.getpid()
