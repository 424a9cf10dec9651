"""A door answers its callers in the order of their requests, as what each is at that moment, until they leave."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
import trio.testing
from attrs import evolve

from supervisor.core.authority import Agent
from supervisor.doors import wire
from supervisor.doors.service import Call
from supervisor.runtime.peers import identity
from tests.doors.daemon import SMALL, client, daemon, number_of
from tests.house import PATIENCE, eventually

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
        await eventually(lambda: state.begun)
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
            "asked": 5, "held": 3, "used": None, "reserved": None, "ask": "lead", "holder": "",
        }  # fmt: skip
        codes = []
        for verb, params in (("stop", {"agent": "lead", "timeout": 5}), ("usage", {}), ("config", {})):
            reply = await caller.ask(verb, **params)  # type: ignore[arg-type]  # a table of calls
            assert isinstance(reply, wire.Failure)
            codes.append(reply.error.code)
        assert codes == [wire.TIMED_OUT, wire.INTERNAL, wire.INTERNAL]
        assert [sort for sort, _ in state.faults] == ["internal", "internal"]
        assert number_of(await caller.ask("status"), "asked") == ""


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
            await eventually(lambda: state.begun)
        await eventually(lambda: state.cancelled == ["tree"])


async def test_who_only_ends_its_writing_still_gets_its_answers(tmp_path: Path) -> None:
    async with daemon(tmp_path) as state, client(state) as caller:
        await caller.send(wire.request(1, "tree"), wire.request(2, "status"))
        await caller.stream.send_eof()
        await eventually(lambda: state.begun)
        state.release.set()
        assert await caller.reply() == wire.Result(1, "released")
        assert isinstance(await caller.reply(), wire.Result)
        assert await caller.hung_up()


async def test_who_ended_its_writing_and_hangs_up_later_is_noticed(tmp_path: Path) -> None:
    async with daemon(tmp_path) as state:
        async with client(state) as caller:
            await caller.send(wire.request(1, "tree"))
            await caller.stream.send_eof()
            await eventually(lambda: state.begun)
        await eventually(lambda: state.cancelled == ["tree"])


# --- following


async def test_a_follower_gets_every_line_and_then_the_answer(tmp_path: Path) -> None:
    async def follow(call: Call) -> object:
        for number in range(5000):
            call.notify({"line": number})
            await call.drained()
        return {"lines": []}

    # One who reads may take his time: both are this one process, which may be held up while much waits.
    async with daemon(tmp_path, evolve(SMALL, stall=30.0)) as state, client(state) as caller:
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
        await eventually(lambda: state.cancelled == ["logs"])
        assert state.faults == [("dropped", "operator does not read its answers")]
        assert await caller.hung_up()


async def test_a_refusal_at_the_door_is_told_once_it_is_on_record(tmp_path: Path) -> None:
    async with daemon(tmp_path) as state:
        me = identity(os.getpid())
        assert me is not None
        state.runs[me] = Agent("p-1", "a1", 1)
        state.recording = trio.Event()
        async with client(state) as caller, trio.open_nursery() as nursery:
            told: list[wire.Reply] = []

            async def ask() -> None:
                told.append(await caller.ask("shutdown"))

            nursery.start_soon(ask)
            with trio.fail_after(PATIENCE):
                while not state.recording.statistics().tasks_waiting:
                    await trio.lowlevel.checkpoint()
            await trio.testing.wait_all_tasks_blocked()
            assert not told
            state.recording.set()
        assert len(told) == len(state.refused) == 1


async def test_what_is_asked_behind_a_follow_is_refused_not_kept_waiting(tmp_path: Path) -> None:
    follow = wire.request(1, "logs", {"agent": "lead", "follow": True})
    async with daemon(tmp_path) as state, client(state) as caller:
        await caller.send(follow, wire.request(2, "status"))
        assert (await caller.error()).code == wire.BUSY
        await caller.send(wire.request(3, "status"))
        assert (await caller.error()).code == wire.BUSY
        assert state.begun == ["logs"]


# --- what is left


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
        await eventually(lambda: len(os.listdir("/proc/self/fd")) == before)
