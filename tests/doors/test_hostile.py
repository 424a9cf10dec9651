"""A door is held up by no caller, whatever it sends, keeps, or does not read; and takes no bytes for another's."""

from __future__ import annotations

import array
import json
import os
import resource
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from attrs import evolve

from supervisor.core.authority import Agent, Nobody, Principal
from supervisor.doors import wire
from supervisor.doors.connection import receive
from supervisor.doors.control import serve
from supervisor.doors.service import Limits
from supervisor.runtime.peers import identity
from tests.doors.daemon import SMALL, Client, Daemon, client, daemon, number_of
from tests.house import PATIENCE, eventually


async def _pour(caller: Client, data: bytes) -> None:
    """Sends until the daemon hangs up."""
    try:
        while True:
            await caller.send(data)
    except trio.BrokenResourceError:
        pass


def _all_descriptors() -> list[int]:
    """Takes every descriptor that is left."""
    taken = []
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        return taken


async def _let_in(state: Daemon) -> bool:
    """Whether a new caller is let in."""
    async with client(state) as caller:
        try:
            return isinstance(await caller.ask("status"), wire.Result)
        except trio.BrokenResourceError:
            return False


# --- who is slow or hostile


async def test_callers_that_say_nothing_read_nothing_or_stop_halfway_delay_no_one(tmp_path: Path) -> None:
    async with daemon(tmp_path, evolve(SMALL, stall=30.0)) as state:
        idle = [await trio.open_unix_socket(str(state.path)) for _ in range(20)]
        for stream in idle[:10]:
            await stream.send_all(b'{"jsonrpc":')
        deaf = idle[10]
        await deaf.send_all(wire.request(1, "up", {"path": "2000000"}))
        async with client(state) as caller:
            for _ in range(20):
                assert number_of(await caller.ask("status"), "asked") == ""
        for stream in idle:
            await stream.aclose()


async def test_one_answer_larger_than_the_backlog_reaches_who_reads(tmp_path: Path) -> None:
    async with daemon(tmp_path, evolve(SMALL, stall=30.0)) as state, client(state) as caller:
        reply = await caller.ask("up", path="3000000")
        assert isinstance(reply, wire.Result)
        assert reply.value == "x" * 3_000_000


async def test_an_answer_that_is_not_read_is_dropped_after_a_while(tmp_path: Path) -> None:
    async with daemon(tmp_path, SMALL) as state, client(state) as caller:
        await caller.send(wire.request(1, "up", {"path": "3000000"}))
        await eventually(lambda: state.faults == [("dropped", "operator does not read its answers")])
        assert await caller.hung_up()


async def test_who_asks_and_never_reads_is_dropped(tmp_path: Path) -> None:
    async with daemon(tmp_path, SMALL) as state, client(state) as caller:
        await _pour(caller, wire.request(1, "up", {"path": "10000"}))
        assert ("dropped", "operator does not read its answers") in state.faults


async def test_more_requests_than_a_connection_may_have_open_are_refused_at_once(tmp_path: Path) -> None:
    async with daemon(tmp_path, evolve(SMALL, queue=4)) as state, client(state) as caller:
        await caller.send(wire.request(0, "tree"))
        await eventually(lambda: state.begun)
        await caller.send(*(wire.request(number, "status") for number in range(1, 8)))
        for number in (5, 6, 7):
            reply = await caller.reply()
            assert isinstance(reply, wire.Failure)
            assert (reply.id, reply.error.code) == (number, wire.BUSY)
        state.release.set()
        assert [(await caller.reply()).id for _ in range(5)] == [0, 1, 2, 3, 4]  # type: ignore[union-attr]  # answers, no notifications


async def test_a_line_without_end_costs_one_error_and_no_memory(tmp_path: Path) -> None:
    async with daemon(tmp_path) as state, client(state) as caller, client(state) as other:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        chunk = b"x" * (1 << 20)
        for _ in range(200):
            await caller.send(chunk)
            assert number_of(await other.ask("status"), "asked") == ""
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        await caller.send(b"\n", wire.request(2, "status"))
        error = await caller.error()
        assert (error.code, "1048576" in error.message) == (wire.INVALID, True)
        assert isinstance(await caller.reply(), wire.Result)
        assert grown < 32 * 1024, "KiB"
        assert len(state.faults) == 1


@pytest.mark.parametrize("flood", [b"\n", b"{}\n", b"[]\n\xff\n", b"[" * 4000 + b"\n"])
async def test_a_flood_of_garbage_delays_no_one(tmp_path: Path, flood: bytes) -> None:
    async with daemon(tmp_path) as state, client(state) as other:
        async with client(state) as caller, trio.open_nursery() as nursery:
            nursery.start_soon(_pour, caller, flood * (65536 // len(flood)))
            for number in range(50):
                assert number_of(await other.ask("status", number), "asked") == ""
            nursery.cancel_scope.cancel()
        assert isinstance(await other.ask("status"), wire.Result)


async def test_one_callers_connections_are_bounded_and_leave_room_for_others(tmp_path: Path) -> None:
    async with daemon(tmp_path, evolve(SMALL, each=3)) as state:
        me = identity(os.getpid())
        assert me is not None
        state.runs[me] = Agent("p-1", "a1", 1)
        held = [await trio.open_unix_socket(str(state.path)) for _ in range(3)]
        async with client(state) as caller:
            assert (await caller.error()).code == wire.BUSY
            assert await caller.hung_up()
        state.runs.clear()
        async with client(state) as caller:
            assert isinstance(await caller.ask("status"), wire.Result)
        for stream in held:
            await stream.aclose()
        state.runs[me] = Agent("p-1", "a1", 1)
        # The closed ones are forgotten as the door notices.
        let_in: Callable[[], bool | Awaitable[bool]] = partial(_let_in, state)
        await eventually(let_in)


async def test_all_agents_together_leave_room_for_the_operator(tmp_path: Path) -> None:
    async with daemon(tmp_path, evolve(SMALL, each=3, others=4)) as state:
        me = identity(os.getpid())
        assert me is not None
        held = []
        for number in range(4):
            state.runs[me] = Agent("p-1", f"a{number}", 1)
            held.append(await trio.open_unix_socket(str(state.path)))
            await Client(held[-1]).ask("status")
        state.runs[me] = Agent("p-1", "a9", 1)
        async with client(state) as caller:
            assert (await caller.error()).code == wire.BUSY
        state.runs.clear()
        async with client(state) as caller:
            assert isinstance(await caller.ask("status"), wire.Result)
        for stream in held:
            await stream.aclose()


async def test_out_of_descriptors_the_door_waits_and_recovers(tmp_path: Path) -> None:
    async with daemon(tmp_path) as state, client(state) as caller:
        await caller.ask("status")
        waiting = socket.socket(socket.AF_UNIX)
        waiting.setblocking(False)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(int(fd) for fd in os.listdir("/proc/self/fd")), hard))
        taken = _all_descriptors()
        try:
            waiting.connect(str(state.path))
            await eventually(lambda: any(sort == "accept" for sort, _ in state.faults))
            # Nobody can be named now, and the refusal says why.
            await caller.send(wire.request(1, "status"))
            assert "Too many open files" in (await caller.error()).message
        finally:
            for fd in taken:
                os.close(fd)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert isinstance(await caller.ask("status"), wire.Result)
        with trio.socket.from_stdlib_socket(waiting) as late:
            await late.send(wire.request(1, "status"))
            assert json.loads(await late.recv(4096))["id"] == 1


# --- descriptors and credentials


async def test_descriptors_that_are_sent_along_are_never_kept() -> None:
    """On a bare pair: from Linux 6.16 on a door's own sockets do not even let them in."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    with theirs, trio.socket.from_stdlib_socket(ours) as sock:
        before = sorted(os.listdir("/proc/self/fd"))
        for count in (1, 10, 253):
            fds = array.array("i", [0] * count)
            theirs.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
            got = await receive(sock)
            assert (got.data, got.pid, got.uid) == (b"x", os.getpid(), os.getuid())
        assert sorted(os.listdir("/proc/self/fd")) == before


async def test_a_door_is_given_no_descriptors(tmp_path: Path) -> None:
    async with daemon(tmp_path) as state, client(state) as caller:
        await caller.ask("status")
        before = len(os.listdir("/proc/self/fd"))
        fds = array.array("i", [0] * 20)
        try:
            await caller.stream.socket.sendmsg(
                [wire.request(1, "status")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]
            )
        except PermissionError:
            await caller.send(wire.request(1, "status"))
        assert isinstance(await caller.reply(), wire.Result)
        assert len(os.listdir("/proc/self/fd")) == before


async def test_what_no_one_is_said_to_have_written_closes_the_connection(tmp_path: Path) -> None:
    """A read without the kernel's word on its writer is a foreign one."""
    foreign: list[Principal] = []
    state = Daemon(tmp_path / "control", Limits())
    service = evolve(state.service, on_foreign=lambda _who, writer: foreign.append(writer))

    def resolve(sock: socket.socket) -> Any:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
        return state.service.resolve(sock)

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(serve, state.path, evolve(service, resolve=resolve)))
            async with client(state) as caller:
                await caller.send(wire.request(1, "status"))
                assert await caller.hung_up()
            nursery.cancel_scope.cancel()
    assert len(foreign) == 1
    assert isinstance(foreign[0], Nobody)
    assert state.begun == []


async def test_a_caller_that_cannot_be_named_ends_no_door(tmp_path: Path) -> None:
    state = Daemon(tmp_path / "control", Limits())
    faults: list[str] = []
    callers = iter((ZeroDivisionError, None))

    def resolve(sock: socket.socket) -> Any:
        problem = next(callers)
        if problem is not None:
            raise problem
        return state.service.resolve(sock)

    service = evolve(state.service, resolve=resolve, on_fault=lambda sort, _words: faults.append(sort))
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(serve, state.path, service))
            async with client(state) as caller:
                assert await caller.hung_up()
            async with client(state) as caller:
                assert isinstance(await caller.ask("status"), wire.Result)
            nursery.cancel_scope.cancel()
    assert faults == ["internal"]
