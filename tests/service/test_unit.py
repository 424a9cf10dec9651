"""The daemon as a systemd user unit, under a real user manager: what the unit promises of start, death and end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import trio

from tests.house import PATIENCE, end_group, eventually
from tests.service.inside import UNIT, Inside, Service, booted
from tests.systemd import UserManager

TREE = """
[defaults]
kind = "scripted"
stop_grace = "1s"
[agents.lead]
[agents.lead.agents.kid]
task = '''
script:
leave setsid
leave daemon
leave stubborn
wait forever
'''
[agents.other]
"""
LINGERING = """
[agents.a]
kind = "scripted"
stop_grace = "50s"
task = '''
script:
ignore stdin
linger 500ms
say set
wait forever
'''
"""
#: What a service manager means for the daemon alone.
DAEMONS_OWN = (
    b"NOTIFY_SOCKET=",
    b"WATCHDOG_",
    b"INVOCATION_ID=",
    b"JOURNAL_STREAM=",
    b"SYSTEMD_EXEC_PID=",
    b"MANAGERPID=",
)


async def brought_up(inside: Inside, *words: str, drop_in: str = "") -> Service:
    """The unit, started, with the tree in it."""
    await inside.install("--now", *words, drop_in=drop_in)
    service = Service(inside)
    await service.up(TREE)
    await service.alive("lead", "kid", "other")
    await left_behind(service)
    return service


async def left_behind(service: Service) -> None:
    """What kid leaves behind in every run."""
    await eventually(lambda: sum("sleep 1000" in each.argv for each in service.agents()) == 3, PATIENCE)


async def restored(service: Service, before: int, old: set[int]) -> None:
    """A new daemon has the tree as it was, each agent once, with its conversation, and nothing of the old one lives."""
    await service.another(before)
    assert not {process.pid for process in service.inside.processes()} & old
    tree = await service.alive("lead", "kid", "other")
    assert {name: (agent["parent"], agent["run"]) for name, agent in tree.items()} == {
        "lead": (None, 2),
        "kid": ("a1", 2),
        "other": (None, 2),
    }
    leaders = [process.inner for process in service.agents() if "scripted" in process.argv]
    assert sorted(leaders) == sorted(agent["pid"] for agent in tree.values())
    assert service.runs("a2")[-1] == "run 2"


async def test_started_means_that_it_answers_and_stopped_that_all_is_gone(inside: Inside) -> None:
    with trio.fail_after(PATIENCE):
        await inside.install()
        client = Path(inside.python).with_name("supervisorctl")
        started = await inside.run("sh", "-c", f"systemctl --user start {UNIT} && {client} status --json")
        assert '"tier": "cgroup"' in started
        assert "kept by systemd" in await inside.ctl("status")
        service = Service(inside)
        await service.up(TREE)
        await service.alive("lead", "kid", "other")
        told = await inside.show("Type", "StatusText", "ActiveState", "SubState", "Delegate")
        assert (told["ActiveState"], told["SubState"], told["Delegate"]) == ("active", "running", "yes")
        await inside.until(StatusText="3 agents, 1 working; cgroup tier")
        wanted = await service.tree()

        await inside.systemctl("stop", UNIT)
        assert service.agents() == []
        assert (await inside.show("ActiveState", "Result")) == {"ActiveState": "inactive", "Result": "success"}

        await inside.systemctl("start", UNIT)
        tree = await service.alive("lead", "kid", "other")
        assert {name: agent["id"] for name, agent in tree.items()} == {name: one["id"] for name, one in wanted.items()}
        assert service.runs("a1") == ["run 1", "run 2"]


async def test_the_daemon_stands_in_a_leaf_and_its_agents_have_nothing_of_it(inside: Inside) -> None:
    with trio.fail_after(PATIENCE):
        service = await brought_up(inside)
        pid = await service.main_pid()
        places = {process.cgroup: process for process in inside.processes() if UNIT in process.cgroup}
        assert all(place != f"user/app.slice/{UNIT}" for place in places)  # no process between the leaves
        (daemon,) = [process for place, process in places.items() if place.endswith("/daemon")]
        assert daemon.inner == pid
        for agent in service.agents():
            assert not [name for name in DAEMONS_OWN if name in agent.environ]
            assert not {"0", "1", "2"} ^ set(os.listdir(f"/proc/{agent.pid}/fd"))


async def died_and_came_back(inside: Inside) -> None:
    service = await brought_up(inside)
    pid = await service.main_pid()
    old = {process.pid for process in service.agents()}
    assert len(old) == 6
    await inside.run("kill", "-9", str(pid))
    await restored(service, pid, old)
    assert (await inside.show("NRestarts"))["NRestarts"] == "1"


async def test_a_killed_daemon_leaves_nothing_and_comes_back_with_the_tree(inside: Inside) -> None:
    with trio.fail_after(PATIENCE):
        await died_and_came_back(inside)


async def test_the_same_for_a_plain_user_to_whom_only_a_subtree_is_delegated(plain: Inside) -> None:
    with trio.fail_after(PATIENCE):
        await died_and_came_back(plain)


async def test_what_left_the_unit_for_another_cgroup_is_ended_by_its_mark(inside: Inside) -> None:
    with trio.fail_after(PATIENCE):
        service = await brought_up(inside)
        pid = await service.main_pid()
        await inside.run("mkdir", "/sys/fs/cgroup/user/elsewhere")
        escaped = [process for process in service.agents() if "sleep 1000" in process.argv]
        for process in escaped:
            await inside.run("sh", "-c", f"echo {process.inner} >/sys/fs/cgroup/user/elsewhere/cgroup.procs")
        assert {process.cgroup for process in inside.processes() if process.pid == escaped[0].pid} == {"user/elsewhere"}
        await inside.run("kill", "-9", str(pid))
        await restored(service, pid, {process.pid for process in escaped})


async def test_a_daemon_that_is_stuck_is_ended_by_the_watchdog(inside: Inside) -> None:
    with trio.fail_after(PATIENCE):
        service = await brought_up(inside, drop_in="WatchdogSec=3\n")
        pid = await service.main_pid()
        old = {process.pid for process in service.agents()}
        await inside.run("kill", "-STOP", str(pid))
        await eventually(lambda: "Fatal Python error: Aborted" in inside.log, PATIENCE)  # and says where it stood
        await restored(service, pid, old)


async def test_what_cannot_help_is_not_tried_again_and_says_why(inside: Inside) -> None:
    async def refused(drop_in: str, status: str, why: str) -> None:
        await inside.install(drop_in=drop_in)
        done = await inside.attempt("systemctl", "--user", "start", UNIT)
        assert done.code != 0
        told = await inside.show("ActiveState", "ExecMainStatus", "NRestarts", "StatusText")
        assert (told["ActiveState"], told["ExecMainStatus"], told["NRestarts"]) == ("failed", status, "0")
        assert why in told["StatusText"] + inside.log
        await inside.systemctl("reset-failed", UNIT)

    with trio.fail_after(PATIENCE):
        await refused(f"Environment=FLEET_SOCKET=/run/{'x' * 120}/s\n", "78", "Linux takes 107")
        await refused("Environment=XDG_STATE_HOME=/dev/null\n", "78", "/dev/null/fleet-supervisor cannot be made")
        program = Path(inside.python).with_name("supervisord")
        await refused(f"ExecStart=\nExecStart={program} --no-warden --tear cgroup\n", "2", "--tear")


async def test_a_second_daemon_is_not_tried_again_and_names_the_first(inside: Inside) -> None:
    with trio.fail_after(PATIENCE):
        service = Service(inside)
        (service.at / "agents.toml").write_text(TREE)
        assert "started the daemon" in await service.ctl("up")
        first = (await service.answers())["pid"]
        await inside.install()
        done = await inside.attempt("systemctl", "--user", "start", UNIT)
        assert done.code != 0
        told = await inside.show("ExecMainStatus", "NRestarts", "StatusText")
        assert (told["ExecMainStatus"], told["NRestarts"]) == ("75", "0")
        assert f"process {first}" in told["StatusText"]
        assert (await service.answers())["pid"] == first
        await service.alive("lead", "kid", "other")
        await service.ctl("shutdown")
        await eventually(lambda: not service.agents(), PATIENCE)


async def test_a_long_grace_is_not_cut_short_by_the_units_own_timeout(inside: Inside) -> None:
    with trio.fail_after(PATIENCE):
        await inside.install("--now", drop_in="TimeoutStopSec=1\n")
        service = Service(inside)
        await service.up(LINGERING)
        await service.until(lambda tree: tree["a"]["last"] == "set")
        await inside.systemctl("stop", UNIT)
        assert await inside.show("Result", "ExecMainStatus") == {"Result": "success", "ExecMainStatus": "0"}
        (said,) = service.state.glob("*/agents/a1/transcript.jsonl")
        assert '"clean"' in said.read_text()


async def test_after_a_reboot_all_runs_again_and_a_changed_file_is_named(
    user_manager: UserManager, place: Path
) -> None:
    with trio.fail_after(PATIENCE):
        async with booted(user_manager, sys.executable, place) as inside:
            await brought_up(inside)
        end_group(user_manager.group)
        user_manager.group.mkdir()
        project = user_manager.home / "project/agents.toml"
        project.write_text(project.read_text() + "# a thought\n")
        async with booted(user_manager, sys.executable, place) as inside:
            service = Service(inside)
            await service.answers()
            tree = await service.alive("lead", "kid", "other")
            assert {name: agent["run"] for name, agent in tree.items()} == {"lead": 2, "kid": 2, "other": 2}
            assert "has changed since" in await service.ctl("status")
            assert (await inside.show("NRestarts"))["NRestarts"] == "0"
