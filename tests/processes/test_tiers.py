"""Choosing a tier, and what daemons leave in the cgroup file system."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from supervisor.runtime.containment import cgroupfs, kernel, marks
from supervisor.runtime.containment.contain import contain
from tests.house import cgroups, eventually_sync
from tests.processes.stage import cgroups_missing, elsewhere

ROOT = Path(__file__).parents[2]
needs_cgroups = pytest.mark.skipif("cgroups_missing()")


def test_auto_takes_cgroups_where_they_are_ours() -> None:
    contained = contain(1, "auto")
    try:
        assert contained.tier == ("warden" if cgroups_missing() else "cgroup")
    finally:
        contained.close()


@pytest.mark.parametrize("want", ["auto", "warden"])
def test_every_tier_is_a_subreaper_and_gives_it_back(want: str) -> None:
    kernel.set_subreaper(False)
    try:
        contained = contain(1, "auto" if want == "auto" else "warden")
        assert kernel.is_subreaper()
        contained.close()
        assert not kernel.is_subreaper()
    finally:
        kernel.set_subreaper(True)


@pytest.mark.parametrize("instance", [0, -1, 2**31])
def test_an_instance_that_no_mark_can_hold_is_an_error(instance: int) -> None:
    before = cgroups()
    with pytest.raises(ValueError, match="out of range"):
        contain(instance, "auto")
    assert cgroups() == before


def test_where_one_stands_is_read_from_the_kernels_own_words() -> None:
    hybrid = (
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
        "38 31 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
    )
    assert cgroupfs.find(hybrid, "1:cpu:/x\n0::/\n") == cgroupfs.Place("/sys/fs/cgroup/unified", "/")
    pure = "30 1 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n"
    assert cgroupfs.find(pure, "0::/user.slice/a.service\n") == cgroupfs.Place(
        "/sys/fs/cgroup/user.slice/a.service", "/user.slice/a.service"
    )
    container = "30 1 0:26 /docker/abc /sys/fs/my\\040cgroup rw - cgroup2 cgroup2 rw\n"
    assert cgroupfs.find(container, "0::/docker/abc/x\n") == cgroupfs.Place("/sys/fs/my cgroup/x", "/docker/abc/x")
    assert cgroupfs.find(container, "0::/docker/abcdef\n") is None
    assert cgroupfs.find(pure, "0::/../elsewhere\n") is None
    assert cgroupfs.find("", "0::/\n") is None
    assert cgroupfs.find(pure, "1:cpu:/x\n") is None


#: cgroup.kill alone does not end it.
WITHOUT_FIRST_THREAD = """if True:
    import ctypes, sys, threading, time
    with open(sys.argv[1], "w") as procs:
        procs.write("0")
    threading.Thread(target=time.sleep, args=(1000,)).start()
    ctypes.CDLL(None).pthread_exit(None)
"""


@needs_cgroups
def test_what_a_dead_daemon_left_is_ended_and_removed_and_a_living_ones_is_not() -> None:
    base = elsewhere()
    dead = base.below(f"fleet-supervisor-{os.getpid()}-999")
    os.makedirs(f"{dead.directory}/a1/self")
    left = subprocess.Popen([sys.executable, "-ISc", WITHOUT_FIRST_THREAD, f"{dead.directory}/a1/self/cgroup.procs"])
    try:
        eventually_sync(lambda: (found := marks.stat(left.pid)) and found.state == "Z")
        assert cgroupfs.populated(dead.directory)
        living, lock = cgroupfs.claim(base)
        contain(1, "cgroup").close()
        assert left.wait() == -9
        assert not Path(dead.directory).exists()
        assert Path(living.directory).exists()
        os.close(lock)
        contain(1, "cgroup").close()
        assert not Path(living.directory).exists()
    finally:
        left.kill()
        left.wait()


@needs_cgroups
def test_a_delegated_subtree_of_another_user_is_enough() -> None:
    """As in a unit of the user's service manager: the directory is theirs, nothing above it is."""
    python = shutil.which("python3", path="/usr/bin:/bin")
    if os.geteuid() != 0 or python is None:
        pytest.skip("takes root to delegate, and a Python that others may execute")
    packages = [path for path in sys.path if path.endswith("site-packages")]
    found = os.pathsep.join([str(ROOT), *packages])
    environment = {"PYTHONPATH": found, "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    tried = subprocess.run(
        [python, "-c", "import os; os.setuid(65534); import trio, attrs, supervisor.runtime.containment"],
        env=environment, capture_output=True, text=True, check=False, cwd="/",
    )  # fmt: skip
    if tried.returncode != 0:
        pytest.skip(f"another user's Python cannot import the project: {tried.stderr[-200:]}")
    unit = elsewhere().below(f"fleet-test-unit-{os.getpid()}")
    os.mkdir(unit.directory)
    try:
        for path in (unit.directory, f"{unit.directory}/cgroup.procs", f"{unit.directory}/cgroup.subtree_control"):
            os.chown(path, 65534, 65534)
        ran = subprocess.run(
            [python, "-c", DELEGATED, f"{unit.directory}/cgroup.procs"],
            env=environment, capture_output=True, text=True, check=False, timeout=60, cwd="/",
        )  # fmt: skip
        assert ran.stdout.split() == ["cgroup", "self", "2", "gone", "clean"], ran.stderr
    finally:
        cgroupfs.remove(unit.directory)


DELEGATED = """if True:
    import os, signal, sys
    with open(sys.argv[1], "w") as procs:
        procs.write("0")
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    import trio
    from supervisor.runtime.containment.contain import contain
    from supervisor.runtime.containment.reaper import reap
    from supervisor.runtime.containment import cgroupfs, marks

    async def main():
        unit = cgroupfs.here().directory
        contained = contain(1, "auto")
        print(contained.tier)
        async with trio.open_nursery() as nursery:
            await nursery.start(reap, contained)
            cell = contained.cell("a1", None)
            leave = ["sh", "-c", "setsid sleep 1000 & echo on; wait"]
            leader = cell.spawn(leave, cwd="/", env=os.environ, stdio="socket", stderr=2, run=1)
            assert await leader.stdout.receive_some(10) == b"on\\n"
            print(os.path.basename(marks.cgroup(leader.pid)))
            print(len(cell.members()))
            with trio.fail_after(60):
                await cell.clear(10)
            print("living" if cell.living() else "gone")
            leader.close()
            cell.close()
            nursery.cancel_scope.cancel()
        contained.close()
        print("clean" if not [one for one in os.scandir(unit) if one.is_dir()] else os.listdir(unit))
    trio.run(main)
"""
