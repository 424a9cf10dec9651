"""A door is bound by one, told apart from a dead or foreign one, bound again when its file is lost, and leaves
nothing behind."""

# ruff: noqa: ASYNC240 - what stands in the file system is what is tested

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from supervisor.core.authority import Operator
from supervisor.doors import listener, wire
from supervisor.doors.control import serve
from supervisor.doors.listener import Bound, DoorError, TakenError, bind
from supervisor.doors.service import Call, Service
from supervisor.runtime.peers import Peers
from tests.house import PATIENCE, eventually

_LISTENS = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
if sys.argv[2] == "listen": s.listen()
print("bound", flush=True)
sys.stdin.read()
"""


@asynccontextmanager
async def other(path: Path, how: str = "listen") -> AsyncIterator[subprocess.Popen[bytes]]:
    """Another process with a socket at the path."""
    argv = [sys.executable, "-I", "-c", _LISTENS, str(path), how]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        await trio.to_thread.run_sync(process.stdout.readline, abandon_on_cancel=True)
        yield process
        process.kill()


def _call(path: Path) -> bytes:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(20)
        caller.connect(str(path))
        caller.sendall(wire.request(1, "status"))
        return caller.recv(65536)


async def _reaches(path: Path) -> bool:
    try:
        return b"pong" in await trio.to_thread.run_sync(_call, path, abandon_on_cancel=True)
    except OSError:
        return False


async def _until_reached(path: Path) -> None:
    reached: Callable[[], bool | Awaitable[bool]] = partial(_reaches, path)
    await eventually(reached, 20)


class Served:
    """A door being served, and the faults that were told."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    async def dispatch(self, call: Call) -> object:
        assert call.principal == Operator()
        return "pong"


@asynccontextmanager
async def served(path: Path) -> AsyncIterator[Served]:
    state = Served()
    peers = Peers(os.geteuid(), {}, set())
    service = Service(peers.resolve, state.dispatch, on_fault=lambda _sort, words: state.faults.append(words))
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(serve, path, service))
            yield state
            nursery.cancel_scope.cancel()


@pytest.fixture
def door(tmp_path: Path) -> Path:
    return tmp_path / "run" / "control"


async def _bound(path: Path) -> Bound:
    with trio.fail_after(PATIENCE):
        return await bind(path)


# --- the directory


async def test_a_door_is_ours_alone(door: Path) -> None:
    before = os.umask(0)
    try:
        with closing(await _bound(door)):
            assert door.stat().st_mode & 0o777 == 0o600
            assert door.parent.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)
    assert list(door.parent.iterdir()) == []


async def test_an_open_directory_of_ours_is_closed(door: Path) -> None:
    door.parent.mkdir()
    (door.parent / "project").mkdir(mode=0o700)
    door.parent.chmod(0o755)
    with closing(await _bound(door)):
        assert door.parent.stat().st_mode & 0o777 == 0o700


async def test_a_directory_that_others_were_meant_to_reach_is_refused_and_left_alone(door: Path) -> None:
    door.parent.mkdir()
    (door.parent / "readme").touch(0o644)
    door.parent.chmod(0o755)
    with pytest.raises(DoorError, match="chmod 700"):
        await _bound(door)
    assert door.parent.stat().st_mode & 0o777 == 0o755


async def test_a_sticky_directory_is_refused_and_left_alone(door: Path) -> None:
    door.parent.mkdir()
    door.parent.chmod(0o1777)
    with pytest.raises(DoorError):
        await _bound(door)
    assert door.parent.stat().st_mode & 0o7777 == 0o1777


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
async def test_a_directory_of_another_user_is_refused(door: Path) -> None:
    door.parent.mkdir(mode=0o700)
    os.chown(door.parent, 65534, -1)
    with pytest.raises(DoorError, match="uid 65534"):
        await _bound(door)


async def test_a_path_that_is_too_long_names_the_limit(tmp_path: Path) -> None:
    path = tmp_path / ("x" * (107 - len(os.fsencode(tmp_path)) - 1 - 2)) / "s"
    assert len(os.fsencode(path)) == 107
    (await _bound(path)).close()
    with pytest.raises(DoorError, match="has 108 bytes, and Linux takes 107"):
        await _bound(path.with_name("st"))


# --- who is there already


async def test_a_stale_socket_is_replaced_and_said_to_be_stale(door: Path) -> None:
    door.parent.mkdir(mode=0o700)
    async with other(door):
        pass
    assert door.is_socket()
    async with served(door) as state:
        assert await _reaches(door)
        assert "stale" in state.faults[0]


async def test_a_live_socket_is_refused_with_its_pid_and_left_alone(door: Path) -> None:
    door.parent.mkdir(mode=0o700)
    async with other(door) as process:
        with pytest.raises(TakenError, match=str(process.pid)) as caught:
            await _bound(door)
        assert caught.value.pid == process.pid
        assert listener.answers(door) == process.pid


@pytest.mark.parametrize("what", ["file", "directory", "link", "datagram socket"])
async def test_what_is_no_stale_door_is_never_removed(door: Path, what: str) -> None:
    door.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagram:
        match what:
            case "file":
                door.touch()
            case "directory":
                door.mkdir()
            case "link":
                door.symlink_to("/nowhere")
            case _:
                datagram.bind(str(door))
        before = door.lstat()
        with pytest.raises(DoorError):
            await _bound(door)
        assert door.lstat() == before


async def test_of_two_that_start_at_once_over_a_stale_socket_one_wins(door: Path) -> None:
    door.parent.mkdir(mode=0o700)
    async with other(door):
        pass
    won: list[Bound] = []
    lost: list[TakenError] = []

    async def start() -> None:
        try:
            won.append(await _bound(door))
        except TakenError as problem:
            lost.append(problem)

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(start)
    assert (len(won), len(lost)) == (1, 7)
    assert won[0].stands()
    won[0].close()


async def test_a_locked_directory_is_an_error_not_a_hang(door: Path, autojump_clock: trio.testing.MockClock) -> None:
    assert autojump_clock
    (await bind(door)).close()
    fd = os.open(door.parent, os.O_RDONLY)
    try:
        assert listener._try_lock(fd)
        with pytest.raises(DoorError, match="locked"):
            await bind(door)
    finally:
        os.close(fd)


# --- while it is served


async def test_a_deleted_socket_comes_back(door: Path) -> None:
    async with served(door) as state:
        for _ in range(3):
            door.unlink()
            await _until_reached(door)
        assert door.stat().st_mode & 0o777 == 0o600
        assert len(state.faults) == 3
    assert not door.exists()


async def test_a_deleted_directory_comes_back(door: Path) -> None:
    async with served(door):
        door.unlink()
        door.parent.rmdir()
        await _until_reached(door)
        assert door.parent.stat().st_mode & 0o777 == 0o700


async def test_a_socket_moved_away_is_bound_again_and_its_connections_live_on(door: Path) -> None:
    async with served(door):
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(20)
            caller.connect(str(door))
            door.rename(door.with_name("elsewhere"))
            await _until_reached(door)
            caller.sendall(wire.request(1, "status"))
            assert b"pong" in await trio.to_thread.run_sync(caller.recv, 65536, abandon_on_cancel=True)
        door.with_name("elsewhere").unlink()


async def test_who_waits_in_the_queue_of_a_deleted_socket_is_answered(door: Path) -> None:
    async with served(door):
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(20)
            # Connected and lost within one step of the loop: accepted by the socket that is about to go.
            caller.connect(str(door))
            door.unlink()
            caller.sendall(wire.request(1, "status"))
            assert b"pong" in await trio.to_thread.run_sync(caller.recv, 65536, abandon_on_cancel=True)


async def test_another_daemons_live_socket_in_our_place_is_left_alone_until_it_goes(door: Path) -> None:
    async with served(door) as state:
        # In one step, so that the place is taken before it is seen to be free.
        theirs = socket.socket(socket.AF_UNIX)
        theirs.bind(str(door.with_name("theirs")))
        theirs.listen()
        door.with_name("theirs").rename(door)
        there = door.lstat().st_ino
        await eventually(lambda: any("answers at" in fault for fault in state.faults), 20)
        assert door.lstat().st_ino == there
        theirs.close()
        await _until_reached(door)
        assert sum("answers at" in fault for fault in state.faults) == 1


async def test_on_its_end_a_door_removes_its_own_socket_only(door: Path) -> None:
    bound = await _bound(door)
    door.unlink()
    with socket.socket(socket.AF_UNIX) as theirs:
        theirs.bind(str(door))
        bound.close()
        assert door.is_socket()


async def test_without_inotify_a_lost_socket_is_still_found(door: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_EVENTS", 0)  # no event asked for: the kernel refuses the watch
    monkeypatch.setattr(listener, "_BLIND", 0.01)
    async with served(door):
        door.unlink()
        await _until_reached(door)


async def test_a_served_door_leaves_no_descriptor_behind(door: Path) -> None:
    async with served(door):  # what trio and the resolver open once
        await _until_reached(door)
    before = len(os.listdir("/proc/self/fd"))
    async with served(door):
        door.unlink()
        await _until_reached(door)
    assert len(os.listdir("/proc/self/fd")) == before
