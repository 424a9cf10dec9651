"""The test house itself: what it must see, it sees."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import trio

from tests.house import Inventory, below, cgroup_roots, eventually, eventually_sync

ESCAPE = "import os, time; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); time.sleep(600)"


@pytest.fixture
def inventory(tmp_path: Path) -> Inventory:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Inventory(scratch)


def test_what_tests_start_hears_every_signal() -> None:
    shown = subprocess.run(["grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"], capture_output=True, check=True)
    masks = [int(line.split()[1], 16) for line in shown.stdout.splitlines()]
    # `make` ignores two that are the C library's own, and that no program may ask for.
    assert [number for number in signal.valid_signals() for mask in masks if mask >> number - 1 & 1] == []


def test_so_it_does_where_the_tests_run_in_the_background_of_a_shell() -> None:
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    one = f"{__file__}::{test_what_tests_start_hears_every_signal.__name__}"
    done = subprocess.run(
        ["sh", "-c", "trap '' HUP INT QUIT TERM; exec \"$@\"", "sh", *tests, one],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_a_clean_test_leaves_nothing(inventory: Inventory) -> None:
    subprocess.run(["true"], check=True)
    assert inventory.leftovers() == []


def test_a_daemonised_descendant_is_seen_named_and_ended(inventory: Inventory) -> None:
    subprocess.run([sys.executable, "-c", ESCAPE], env={}, check=True)
    (left,) = inventory.leftovers()
    assert "time.sleep(600)" in left
    assert inventory.leftovers() == []


def test_an_orphan_that_ended_by_itself_is_buried(inventory: Inventory) -> None:
    before = below(os.getpid())
    subprocess.run(["sh", "-c", "(sh -c 'exit 3' &)"], check=True)
    assert inventory.leftovers() == []
    assert below(os.getpid()) == before


def test_what_was_there_before_the_test_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sh", "-c", "read line; sleep 600 & read line; kill $!"], stdin=subprocess.PIPE) as older:
        try:
            assert older.stdin
            inventory = Inventory(tmp_path)
            older.stdin.write(b"start\n")
            older.stdin.flush()
            eventually_sync(lambda: any("sleep" in each.argv for each in below(older.pid)))
            assert inventory.leftovers() == []
            assert older.poll() is None
        finally:
            older.communicate(b"end\n")


def test_descriptors_sockets_and_files_are_seen(inventory: Inventory, tmp_path: Path) -> None:
    one, other = socket.socketpair()
    with one, other, (tmp_path / "open").open("wb") as opened, (tmp_path / "scratch" / "file").open("wb"):
        left = inventory.leftovers()
        assert any(f"fd {one.fileno()} (socket:" in each for each in left)
        assert any(f"fd {opened.fileno()} ({tmp_path}/open)" in each for each in left)
        assert any(each == f"file {tmp_path}/scratch/file" for each in left)


def test_the_cgroup_of_a_dead_daemon_is_seen_and_removed(inventory: Inventory) -> None:
    roots = [root for root in cgroup_roots() if os.access(root, os.W_OK)]
    if not roots:
        pytest.skip("no cgroup v2 hierarchy that this user may write to")
    group = roots[0] / f"fleet-supervisor-{os.getpid()}-house"
    (group / "a1" / "self").mkdir(parents=True)
    opened = os.open(group, os.O_RDONLY)
    fcntl.flock(opened, fcntl.LOCK_EX)
    assert not any(left.startswith("cgroup") for left in inventory.leftovers()), "a living daemon's is its own"
    os.close(opened)
    assert inventory.leftovers() == [f"cgroup {group}"]
    assert not group.exists()


def test_a_test_has_a_place_of_its_own(place: Path) -> None:
    assert Path(tempfile.gettempdir()).parent == place
    assert Path(os.environ["XDG_STATE_HOME"]).is_relative_to(place)
    assert Path.home().parent == place


async def test_eventually_waits_for_a_condition_and_names_what_never_came(nursery: trio.Nursery) -> None:
    met = trio.Event()
    nursery.start_soon(_set_soon, met)
    assert await eventually(met.is_set)
    with pytest.raises(AssertionError, match="the moon"):
        await eventually(lambda: None, within=0.01, what="the moon")


async def _set_soon(event: trio.Event) -> None:
    await trio.lowlevel.checkpoint()
    event.set()
