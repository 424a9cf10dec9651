"""Limits of memory, processors and processes, kept by the kernel through an agent's cgroup under the unit; and what is
said where it does not keep them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from supervisor.core.spec import Resources
from supervisor.runtime.containment import cgroupfs
from supervisor.runtime.containment.controllers import CONTROLLER, Controllers
from tests.fleet import running
from tests.house import PATIENCE, cgroup_roots, end_group, eventually
from tests.service.inside import UNIT, Inside, Service

LIMITED = 'resources = { memory = "64M", cpu = "50%", processes = 20 }'
EATER = "x = []\nwhile True: x.append(bytearray(1 << 20))"
#: `eater` waits for the first line on its stdin before it eats.
TREE = f"""
[defaults]
kind = "scripted"
stop_grace = "1s"
[kinds.eater]
command = ["/usr/bin/python3", "-ISc", "input()\\n{EATER.replace(chr(10), chr(92) + "n")}"]
protocol = "lines"
[agents.limited]
{LIMITED}
[agents.limited.agents.child]
kind = "eater"
[agents.eater]
kind = "eater"
resources = {{ memory = "48M" }}
[agents.other]
"""


ROOT = min(cgroup_roots(), key=lambda root: len(str(root)), default=None)


def offered() -> set[str]:
    """The controllers that a cgroup below the root has."""
    return set((ROOT / "cgroup.subtree_control").read_text().split()) if ROOT is not None else set()


needs_controllers = pytest.mark.skipif(
    not set(CONTROLLER.values()) <= offered(),
    reason=f"of cgroup v2's controllers there are here: {', '.join(offered()) or 'none'}",
)


async def brought_up(inside: Inside) -> Service:
    await inside.install("--now")
    service = Service(inside)
    await service.up(TREE)
    await service.alive("limited", "child", "eater", "other")
    return service


def files(service: Service, agent: str) -> dict[str, str]:
    """What stands in the files of an agent's cgroup."""
    (place,) = service.inside.manager.group.glob(f"user/app.slice/{UNIT}/fleet-supervisor-*/**/{agent}")
    return {name: (place / name).read_text().strip() for name in ("memory.max", "cpu.max", "pids.max")}


@needs_controllers
async def test_limits_stand_in_the_cgroup_and_change_without_a_restart(inside: Inside) -> None:
    with trio.fail_after(PATIENCE):
        service = await brought_up(inside)
        assert files(service, "a1") == {"memory.max": str(64 << 20), "cpu.max": "50000 100000", "pids.max": "20"}
        assert files(service, "a3") == {"memory.max": str(48 << 20), "cpu.max": "max 100000", "pids.max": "max"}
        before = await service.tree()
        assert (await service.answers())["faults"] == []
        changed = TREE.replace(LIMITED, 'resources = { memory = "96M" }')
        (service.at / "agents.toml").write_text(changed)
        await service.call("reload", file=str(service.at / "agents.toml"), content=changed, path="/usr/bin:/bin")
        wanted = {"memory.max": str(96 << 20), "cpu.max": "max 100000", "pids.max": "max"}
        await eventually(lambda: files(service, "a1") == wanted, PATIENCE)
        assert (await service.tree())["limited"]["pid"] == before["limited"]["pid"]


@needs_controllers
async def test_who_uses_up_its_memory_is_ended_and_named_and_nobody_else(inside: Inside) -> None:
    with trio.fail_after(PATIENCE):
        service = await brought_up(inside)
        daemon = await service.main_pid()
        before = await service.tree()
        for name, agent in (("eater", "a3"), ("child", "a2")):
            await service.call("instruct", agent=name, text="eat")
            tree = await service.until(lambda tree, agent=agent: agent in tree)  # type: ignore[misc]
            ended = tree[agent]["exit"]
            assert (ended["signal"], ended["oom"]) == (9, 1)
        assert (tree["limited"]["pid"], tree["other"]["pid"]) == (before["limited"]["pid"], before["other"]["pid"])
        assert await service.main_pid() == daemon
        assert "used up its memory" in await service.ctl("events", "--json")


@needs_controllers
async def test_more_processes_than_allowed_are_not_forked(inside: Inside) -> None:
    with trio.fail_after(PATIENCE):
        service = await brought_up(inside)
        await service.call(
            "instruct", agent="limited", text="script:\nrun for i in $(seq 50); do sleep 1000 & done; wait"
        )
        await eventually(lambda: len([each for each in service.agents() if "sleep" in each.argv]) > 10, PATIENCE)
        (place,) = inside.manager.group.glob(f"user/app.slice/{UNIT}/fleet-supervisor-*/a1")
        assert int((place / "pids.current").read_text()) <= 20


@needs_controllers
async def test_a_killed_daemon_comes_back_with_limits_though_controllers_were_handed_down(inside: Inside) -> None:
    with trio.fail_after(PATIENCE):
        service = await brought_up(inside)
        before = await service.main_pid()
        await inside.run("kill", "-9", str(before))
        await service.another(before)
        await service.alive("limited", "child", "eater", "other")
        assert files(service, "a1")["memory.max"] == str(64 << 20)
        assert (await inside.show("NRestarts"))["NRestarts"] == "1"


@pytest.mark.skipif(set(CONTROLLER.values()) <= offered(), reason="all limits can be kept here")
async def test_a_limit_that_no_controller_keeps_is_a_fault_and_the_agent_runs(inside: Inside) -> None:
    with trio.fail_after(PATIENCE):
        service = await brought_up(inside)
        (fault,) = (await service.answers())["faults"][:1]
        assert fault["what"].startswith("resources of limited (a1) are not kept: memory: the controller memory is not")
        assert "not kept" in await service.ctl("status")


async def test_without_cgroups_limits_are_a_fault_and_the_agent_runs(tmp_path: Path) -> None:
    with trio.fail_after(PATIENCE):
        async with running(tmp_path / "p", "warden") as fleet:
            await fleet.up(f'[agents.a]\nkind = "scripted"\n{LIMITED}\n[agents.b]\nkind = "scripted"\n')
            await fleet.state_of("a", "standing")
            (fault,) = (await fleet.call("status"))["faults"]
            assert fault["what"] == "resources of a (a1) are not kept: the warden tier has no cgroup to keep them with"


# --- the files, with a controller that nobody uses


@pytest.fixture
def group(place: Path) -> Iterator[cgroupfs.Place]:
    """A cgroup of the test's own below the root."""
    if ROOT is None:
        pytest.skip("no cgroup v2 here")
    found = cgroupfs.Place(str(ROOT), "/").below(f"fleet-tests-{place.name}")
    try:
        Path(found.directory).mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made: {error}")
    try:
        yield found
    finally:
        end_group(Path(found.directory))


@pytest.fixture
def spare(monkeypatch: pytest.MonkeyPatch) -> str:
    """A controller that is there and that nobody uses, in the place of the one for processes."""
    there = set((ROOT / "cgroup.controllers").read_text().split()) if ROOT is not None else set()
    left = sorted((there - offered()) & {"hugetlb", "misc", "rdma"})
    if not left:
        pytest.skip(f"no spare controller in cgroup v2, which has {there or 'none'}")
    monkeypatch.setitem(CONTROLLER, "processes", left[0])
    return left[0]


def handed_down(place: cgroupfs.Place) -> set[str]:
    return set(Path(place.directory, "cgroup.subtree_control").read_text().split())


def test_controllers_are_handed_down_to_an_agent_and_taken_back(group: cgroupfs.Place, spare: str) -> None:
    root = cgroupfs.Place(str(ROOT), "/")
    agent, child = group.below("a1"), group.below("a1").below("a2")
    Path(child.directory, "self").mkdir(parents=True)
    controllers = Controllers(root)
    # The controller is there as far as it goes; of its files only the one for processes is another's.
    assert controllers.limit(child, Resources(processes=5)).endswith("pids.max: No such file or directory")
    assert all(spare in handed_down(place) for place in (root, group, agent, child))
    controllers.give_back()
    assert not any(spare in handed_down(place) for place in (root, group, agent, child))


def test_where_processes_stand_between_the_leaves_it_is_said(group: cgroupfs.Place, spare: str) -> None:
    agent = group.below("a1")
    Path(agent.directory).mkdir()
    controllers = Controllers(cgroupfs.Place(str(ROOT), "/"))
    with subprocess.Popen(["sleep", "1000"]) as standing:
        try:
            Path(group.directory, "cgroup.procs").write_text(str(standing.pid))
            said = controllers.limit(agent, Resources(processes=5))
            assert (
                said == f"processes: processes stand in {group.directory} itself, so that it cannot hand {spare} down"
            )
        finally:
            standing.kill()
            controllers.give_back()


def test_a_controller_that_is_not_there_is_named(group: cgroupfs.Place) -> None:
    agent = group.below("a1")
    Path(agent.directory).mkdir()
    if "memory" in offered():
        pytest.skip("memory is offered here")
    said = Controllers(group).limit(agent, Resources(memory=1 << 30))
    assert said == f"memory: the controller memory is not offered to the cgroup {group.name}"


def test_who_is_not_limited_costs_nothing(group: cgroupfs.Place) -> None:
    controllers = Controllers(group)
    # The directory is not even there.
    assert controllers.limit(group.below("a1"), Resources()) == ""
