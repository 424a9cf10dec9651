"""A door answers every caller in order and is held up by none: halves, floods, endless lines, silence, deafness,
hang-ups."""

from __future__ import annotations

import array
import json
import os
import resource
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from attrs import evolve

from supervisor.core.authority import Agent, Nobody, Principal
from supervisor.core.refusals import Refusal, refuse
from supervisor.doors import wire
from supervisor.doors.connection import receive
from supervisor.doors.control import serve
from supervisor.doors.service import Call, Limits, Service
from supervisor.runtime.peers import Peers, identity

LARGE = Limits()
SMALL = Limits(outbox=64 * 1024, stall=0.2)


class Daemon:
    """A real door whose verbs do what these tests need: `status` answers, `tree` waits until released, `logs` follows,
    `usage` fails, `whoami` is refused, `config` answers what is no JSON, `up` answers what it was sent."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.path = path
        self.runs: dict[tuple[int, int], Agent] = {}
        self.service = Service(
            Peers(os.geteuid(), self.runs, set()).resolve,
            self.dispatch,
            limits,
            on_refused=self._refused,
            on_fault=lambda sort, words: self.faults.append((sort, words)),
        )
        self.faults: list[tuple[str, str]] = []
        self.refused: list[tuple[Principal, str, Refusal]] = []
        self.begun: list[str] = []
        self.cancelled: list[str] = []
        self.release = trio.Event()
        self.follow: Callable[[Call], Awaitable[object]] = self._sleep

    def _refused(self, principal: Principal, verb: str, refusal: Refusal) -> None:
        self.refused.append((principal, verb, refusal))

    async def _sleep(self, _call: Call) -> object:
        return await trio.sleep_forever()

    async def dispatch(self, call: Call) -> object:
        self.begun.append(call.verb)
        try:
            return await self._do(call)
        except trio.Cancelled:
            self.cancelled.append(call.verb)
            raise

    async def _do(self, call: Call) -> object:
        match call.verb:
            case "status":
                return {"asked": call.params.get("project", "")}
            case "tree":
                await self.release.wait()
                return "released"
            case "logs":
                return await self.follow(call)
            case "usage":
                raise ZeroDivisionError
            case "whoami":
                raise refuse("budget", "too much", field="tokens", asked=5, held=3, ask="lead")
            case "stop":
                raise wire.TimedOut("lead has not ended within 5s")
            case "config":
                return {"never": object()}
            case _:
                return "x" * int(str(call.params["path"]))


class Client:
    """A caller on the daemon's own loop."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._splitter = wire.Splitter(64 << 20)
        self._lines: list[bytes | None] = []

    async def send(self, *lines: bytes) -> None:
        await self.stream.send_all(b"".join(lines))

    async def ask(self, method: str, ident: int | str = 1, **params: object) -> wire.Reply:
        await self.send(wire.request(ident, method, params))
        return await self.reply()

    async def reply(self) -> wire.Reply:
        while not self._lines:
            got = await self.stream.receive_some(65536)
            assert got, "the daemon hung up"
            self._lines += self._splitter.feed(got)
        line = self._lines.pop(0)
        assert line is not None
        return wire.reply(line)

    async def error(self) -> wire.WireError:
        reply = await self.reply()
        assert isinstance(reply, wire.Failure)
        return reply.error

    async def hung_up(self) -> bool:
        """Reads to the end; whether there is one."""
        try:
            while await self.stream.receive_some(1 << 20):
                pass
        except trio.BrokenResourceError:
            pass
        return True


@asynccontextmanager
async def daemon(tmp_path: Path, limits: Limits = LARGE) -> AsyncIterator[Daemon]:
    state = Daemon(tmp_path / "run" / "control", limits)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(serve, state.path, state.service))
            yield state
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def client(state: Daemon) -> AsyncIterator[Client]:
    async with await trio.open_unix_socket(str(state.path)) as stream:
        yield Client(stream)


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


async def _until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 - what the daemon did sets no event
        await trio.sleep(0.01)


async def _served(state: Daemon) -> bool:
    """Whether a new caller is let in."""
    async with client(state) as caller:
        try:
            return isinstance(await caller.ask("status"), wire.Result)
        except trio.BrokenResourceError:
            return False


def _number(value: object, key: str) -> Any:
    assert isinstance(value, wire.Result)
    assert isinstance(value.value, dict)
    return value.value[key]


# --- requests and their answers


async def test_a_request_in_pieces_and_requests_in_one_piece_are_the_same(tmp_path: Path) -> None:
    async with daemon(tmp_path) as state, client(state) as caller:
        for byte in wire.request(1, "status", {"project": "\u00fc"}):
            await caller.send(bytes((byte,)))
        assert await caller.reply() == wire.Result(1, {"asked": "\u00fc"})
        await caller.send(*(wire.request(number, "status", {"project": str(number)}) for number in range(50)))
        assert [await caller.reply() for _ in range(50)] == [
            wire.Result(number, {"asked": str(number)}) for number in range(50)
        ]


async def test_answers_come_in_the_order_of_the_lines_errors_included(tmp_path: Path) -> None:
    async with daemon(tmp_path) as state, client(state) as caller:
        await caller.send(
            wire.request(1, "tree"),
            b"nonsense\n",
            wire.request(2, "shell"),
            wire.request(3, "status", {"projekt": "x"}),
        )
        await _until(lambda: state.begun)
        state.release.set()
        assert await caller.reply() == wire.Result(1, "released")
        assert [(await caller.error()).code for _ in range(3)] == [wire.PARSE, wire.UNKNOWN, wire.PARAMS]


async def test_a_half_request_is_never_acted_on(tmp_path: Path) -> None:
    async with daemon(tmp_path) as state:
        async with client(state) as caller:
            await caller.send(wire.request(1, "status")[:-1])
            await caller.stream.send_eof()
            assert await caller.hung_up()
        assert state.begun == []


@pytest.mark.parametrize("verb", ["run", "shell", "exec", "eval", "a.b.__class__"])
async def test_no_door_runs_anything(tmp_path: Path, verb: str) -> None:
    async with daemon(tmp_path) as state, client(state) as caller:
        reply = await caller.ask(verb)
        assert isinstance(reply, wire.Failure)
        assert reply.error.code == wire.UNKNOWN
        assert state.begun == []


async def test_refusals_timeouts_and_bugs_reach_the_caller_as_what_they_are(tmp_path: Path) -> None:
    async with daemon(tmp_path) as state, client(state) as caller:
        refused = await caller.ask("whoami")
        assert isinstance(refused, wire.Failure)
        assert refused.error.code == wire.REFUSED
        assert refused.error.data == {
            "code": "budget", "message": "too much", "field": "tokens",
            "asked": 5, "held": 3, "used": None, "reserved": None, "ask": "lead",
        }  # fmt: skip
        codes = []
        for verb, params in (("stop", {"agent": "lead", "timeout": 5}), ("usage", {}), ("config", {})):
            reply = await caller.ask(verb, **params)  # type: ignore[arg-type]  # a table of calls
            assert isinstance(reply, wire.Failure)
            codes.append(reply.error.code)
        assert codes == [wire.TIMED_OUT, wire.INTERNAL, wire.INTERNAL]
        assert [sort for sort, _ in state.faults] == ["internal", "internal"]
        assert _number(await caller.ask("status"), "asked") == ""


async def test_a_refusal_at_the_door_is_on_record(tmp_path: Path) -> None:
    async with daemon(tmp_path) as state:
        me = identity(os.getpid())
        assert me is not None
        state.runs[me] = Agent("p-1", "a1", 1)
        async with client(state) as caller:
            reply = await caller.ask("shutdown")
            assert isinstance(reply, wire.Failure)
            assert reply.error.data is not None
            assert reply.error.data["code"] == "authority"
            state.runs.clear()
            reply = await caller.ask("status")
            assert isinstance(reply, wire.Failure)
            assert reply.error.data is not None
            assert (reply.error.data["code"], reply.error.data["asked"]) == ("nobody", "status")
        assert [(str(who), verb, no.code) for who, verb, no in state.refused] == [
            ("a1", "shutdown", "authority"),
            ("nobody", "status", "nobody"),
        ]
        assert state.begun == []


# --- leaving


async def test_a_request_is_cancelled_when_its_caller_hangs_up(tmp_path: Path) -> None:
    async with daemon(tmp_path) as state:
        async with client(state) as caller:
            await caller.send(wire.request(1, "tree"))
            await _until(lambda: state.begun)
        await _until(lambda: state.cancelled == ["tree"])


async def test_who_only_ends_its_writing_still_gets_its_answers(tmp_path: Path) -> None:
    async with daemon(tmp_path) as state, client(state) as caller:
        await caller.send(wire.request(1, "tree"), wire.request(2, "status"))
        await caller.stream.send_eof()
        await _until(lambda: state.begun)
        state.release.set()
        assert await caller.reply() == wire.Result(1, "released")
        assert isinstance(await caller.reply(), wire.Result)
        assert await caller.hung_up()


async def test_who_ended_its_writing_and_hangs_up_later_is_noticed(tmp_path: Path) -> None:
    async with daemon(tmp_path) as state:
        async with client(state) as caller:
            await caller.send(wire.request(1, "tree"))
            await caller.stream.send_eof()
            await _until(lambda: state.begun)
        await _until(lambda: state.cancelled == ["tree"])


# --- following


async def test_a_follower_gets_every_line_and_then_the_answer(tmp_path: Path) -> None:
    async def follow(call: Call) -> object:
        for number in range(5000):
            call.notify({"line": number})
            await call.drained()
        return {"lines": []}

    async with daemon(tmp_path, SMALL) as state, client(state) as caller:
        state.follow = follow
        await caller.send(wire.request(7, "logs", {"agent": "lead", "follow": True}))
        for number in range(5000):
            assert await caller.reply() == wire.Notification("logs", {"line": number})
        assert await caller.reply() == wire.Result(7, {"lines": []})


async def test_a_follower_that_does_not_read_is_dropped_and_its_call_cancelled(tmp_path: Path) -> None:
    async def follow(call: Call) -> object:
        while True:
            call.notify({"line": "x" * 1000})
            await trio.lowlevel.checkpoint()

    # At once, not after a while: the backlog is what is bounded.
    async with daemon(tmp_path, evolve(SMALL, stall=3600.0)) as state, client(state) as caller:
        state.follow = follow
        await caller.send(wire.request(1, "logs", {"agent": "lead", "follow": True}))
        await _until(lambda: state.cancelled == ["logs"])
        assert state.faults == [("dropped", "operator does not read its answers")]
        assert await caller.hung_up()


async def test_what_is_asked_behind_a_follow_is_refused_not_kept_waiting(tmp_path: Path) -> None:
    follow = wire.request(1, "logs", {"agent": "lead", "follow": True})
    async with daemon(tmp_path) as state, client(state) as caller:
        await caller.send(follow, wire.request(2, "status"))
        assert (await caller.error()).code == wire.BUSY
        await caller.send(wire.request(3, "status"))
        assert (await caller.error()).code == wire.BUSY
        assert state.begun == ["logs"]


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
                assert _number(await caller.ask("status"), "asked") == ""
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
        await _until(lambda: state.faults == [("dropped", "operator does not read its answers")])
        assert await caller.hung_up()


async def test_who_asks_and_never_reads_is_dropped(tmp_path: Path) -> None:
    async with daemon(tmp_path, SMALL) as state, client(state) as caller:
        await _pour(caller, wire.request(1, "up", {"path": "10000"}))
        assert ("dropped", "operator does not read its answers") in state.faults


async def test_more_requests_than_a_connection_may_have_open_are_refused_at_once(tmp_path: Path) -> None:
    async with daemon(tmp_path, evolve(SMALL, queue=4)) as state, client(state) as caller:
        await caller.send(wire.request(0, "tree"))
        await _until(lambda: state.begun)
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
            assert _number(await other.ask("status"), "asked") == ""
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
                assert _number(await other.ask("status", number), "asked") == ""
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
        while not await _served(state):
            await trio.lowlevel.checkpoint()


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
            await _until(lambda: any(sort == "accept" for sort, _ in state.faults))
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

    with trio.fail_after(20):
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
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(serve, state.path, service))
            async with client(state) as caller:
                assert await caller.hung_up()
            async with client(state) as caller:
                assert isinstance(await caller.ask("status"), wire.Result)
            nursery.cancel_scope.cancel()
    assert faults == ["internal"]


async def test_nothing_of_a_connection_stays_open(tmp_path: Path) -> None:
    async with daemon(tmp_path) as state:
        async with client(state) as caller:
            await caller.ask("status")
        await trio.testing.wait_all_tasks_blocked()
        before = len(os.listdir("/proc/self/fd"))
        for number in range(200):
            async with client(state) as caller:
                await caller.send(wire.request(number, ("status", "tree")[number % 2]))
                if number % 3 == 0:
                    await caller.stream.send_eof()
                if number % 2 == 0:
                    await caller.reply()
        await _until(lambda: len(os.listdir("/proc/self/fd")) == before)
