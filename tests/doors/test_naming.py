"""The kernel says who a caller is: an agent whatever way its descendant was started, and nobody where anything
disagrees. All of it among processes of one unprivileged user, the daemon included."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.doors.programs import asker, program, shell
from tests.house import PATIENCE, eventually
from tests.unprivileged import Unprivileged

_SOURCE = Path(__file__).with_name("small_fleet.py").read_text()


class Small:
    """A running small fleet: its door, and what it says."""

    def __init__(self, door: str, process: trio.Process) -> None:
        self.door = door
        self._process = process
        self._said: list[dict[str, Any]] = []
        self._held = b""

    async def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        while b"\n" not in self._held:
            more = await self._process.stdout.receive_some()
            assert more, "the small fleet died"
            self._held += more
        line, self._held = self._held.split(b"\n", 1)
        said: dict[str, Any] = json.loads(line)
        return said

    async def said(self, key: str, value: str = "") -> dict[str, Any]:
        """The line that has this key (and value)."""
        while True:
            for line in self._said:
                if key in line and (not value or line[key] == value):
                    return line
            self._said.append(await self._line())

    async def out(self, agent: str) -> str:
        """All that the agent's run printed."""
        return str((await self.said("agent", agent))["out"]).strip()

    async def report(self) -> dict[str, Any]:
        """Ends it; what it has on record."""
        assert self._process.stdin is not None
        await self._process.stdin.aclose()
        report = await self.said("foreign")
        assert await self._process.wait() == 0
        assert report["left"] is False, "the socket file was left behind"
        return report


@asynccontextmanager
async def small(user: Unprivileged, door: str, agents: dict[str, list[str]], cells: str = "") -> AsyncIterator[Small]:
    argv = [user.python, "-I", "-c", _SOURCE, json.dumps({"path": door, "agents": agents, "cells": cells})]
    with trio.fail_after(PATIENCE):
        process = await trio.lowlevel.open_process(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", **user.identity
        )
        try:
            fleet = Small(door, process)
            await fleet.said("ready")
            yield fleet
        finally:
            if process.returncode is None:
                process.kill()
                with trio.CancelScope(shield=True):
                    await process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    await stream.aclose()


@pytest.fixture
def door(unprivileged: Unprivileged) -> str:
    return str(unprivileged.directory() / "run" / "control")


async def _one(user: Unprivileged, door: str, argv: list[str]) -> tuple[str, dict[str, Any]]:
    """What agent a1 printed, and the record."""
    async with small(user, door, {"a1": argv}) as fleet:
        return await fleet.out("a1"), await fleet.report()


_ways: dict[str, Callable[[list[str]], list[str]]] = {
    "itself": lambda argv: argv,
    "its shell's child": shell,
    "a shell of a shell of a shell": lambda argv: shell(shell(shell(argv))),
    "with an empty environment": lambda argv: shell(["/usr/bin/env", "-i", *argv]),
    "in a session of its own": lambda argv: ["/bin/sh", "-c", 'setsid "$@" & wait', "sh", *argv],
    "in the background with an empty environment and a session of its own": lambda argv: [
        "/bin/sh", "-c", 'env -i setsid -w "$@" & wait', "sh", *argv,
    ],
}  # fmt: skip


@pytest.mark.parametrize("way", _ways)
async def test_whatever_way_an_agent_starts_it_its_descendant_is_that_agent(
    unprivileged: Unprivileged, door: str, way: str
) -> None:
    out, report = await _one(unprivileged, door, _ways[way](asker(door)))
    assert out == "agent a1 1"
    assert report["foreign"] == report["refused"] == []


async def test_a_daemonised_descendant_is_nobody_and_on_record(unprivileged: Unprivileged, door: str) -> None:
    out, report = await _one(unprivileged, door, program(door, "if orphan(): print(ask(connect()))"))
    assert out.startswith("nobody: the caller is nobody: adopted by the daemon")
    assert [who for who, _ in report["refused"]] == ["nobody whoami"]


async def test_siblings_are_told_apart(unprivileged: Unprivileged, door: str) -> None:
    agents = {f"a{number}": shell(asker(door)) for number in range(1, 5)}
    async with small(unprivileged, door, agents) as fleet:
        for agent in agents:
            assert await fleet.out(agent) == f"agent {agent} 1"
        await fleet.report()


async def test_a_descriptor_passed_to_a_sibling_closes_the_connection_on_record(
    unprivileged: Unprivileged, door: str
) -> None:
    meeting = str(Path(door).with_name("meeting"))
    giver = program(
        door,
        """
s = connect()
print(ask(s))
while True:
    try:
        to = connect(sys.argv[2])
        break
    except OSError:
        os.sched_yield()
socket.send_fds(to, [b"x"], [s.fileno()])
print(answer(s))
""",
        meeting,
    )
    taker = program(
        door,
        """
l = socket.socket(socket.AF_UNIX)
l.bind(sys.argv[2])
l.listen()
giver, _ = l.accept()
_, fds, _, _ = socket.recv_fds(giver, 1, 4)
print(ask(socket.socket(fileno=fds[0])))
os.unlink(sys.argv[2])
""",
        meeting,
    )
    async with small(unprivileged, door, {"a1": giver, "a2": taker}) as fleet:
        assert await fleet.out("a2") == "closed"
        assert await fleet.out("a1") == "agent a1 1\nclosed"
        assert (await fleet.report())["foreign"] == [["a1", "a2"]]


async def test_a_childs_words_on_its_parents_connection_are_the_same_agents(
    unprivileged: Unprivileged, door: str
) -> None:
    body = "s = connect()\nif os.fork() == 0:\n    print(ask(s))\nelse:\n    os.wait()"
    out, report = await _one(unprivileged, door, program(door, body))
    assert out == "agent a1 1"
    assert report["foreign"] == []


async def test_an_orphan_does_not_speak_through_a_connection_it_inherited(
    unprivileged: Unprivileged, door: str
) -> None:
    body = """
s = connect()
print(ask(s), flush=True)
if orphan():
    s.sendall(b'{"jsonrpc":"2.0","id":2,"method":"whoami"}\\n')
else:
    print(answer(s))
"""
    out, report = await _one(unprivileged, door, program(door, body))
    assert out == "agent a1 1\nclosed"
    assert report["foreign"] == [["a1", "nobody"]]


async def test_a_half_request_of_an_agent_is_not_ended_by_another(unprivileged: Unprivileged, door: str) -> None:
    body = """
s = connect()
s.sendall(b'{"jsonrpc":"2.0","id":2,')
if orphan():
    s.sendall(b'"method":"whoami"}\\n')
else:
    print(answer(s))
"""
    out, report = await _one(unprivileged, door, program(door, body))
    assert out == "closed"
    assert report["foreign"] == [["a1", "nobody"]]


async def test_the_connection_of_a_run_that_ended_is_refused(unprivileged: Unprivileged, door: str) -> None:
    body = "s = connect(); print(ask(s)); print(ask(s, 'usage')); print(ask(s)); print(ask(connect()))"
    out, _ = await _one(unprivileged, door, program(door, body))
    first, last, stale, again = out.splitlines()
    assert first == last == "agent a1 1"
    assert stale == "nobody: the caller is nobody: run 1 of a1 has ended"
    assert again.startswith("nobody: the caller is nobody: adopted by the daemon")


async def test_a_connection_outlives_its_callers_parents_only_as_nobodys(unprivileged: Unprivileged, door: str) -> None:
    body = """
s = r = None
middle = os.fork()
if middle == 0:
    child = os.fork()
    if child == 0:
        s, me = connect(), os.getppid()
        print(ask(s), flush=True)
        os.kill(me, 9)
        while os.getppid() == me:
            os.sched_yield()
        print(ask(s))
    else:
        os.waitpid(child, 0)
else:
    os.waitpid(middle, 0)
"""
    out, _ = await _one(unprivileged, door, program(door, body))
    before, after = out.splitlines()
    assert before == "agent a1 1"
    assert after.startswith("nobody: the caller is nobody: adopted by the daemon")


async def test_what_is_the_operators_alone_is_refused_an_agents_shell(unprivileged: Unprivileged, door: str) -> None:
    out, report = await _one(unprivileged, door, shell(program(door, "print(ask(connect(), 'shutdown'))")))
    assert out.startswith("authority: 'shutdown' is the operator's alone")
    assert report["refused"][0][0] == "a1 shutdown"


# --- who is outside


async def _outside(argv: list[str], **identity: Any) -> str:
    done = await trio.run_process(argv, capture_stdout=True, **identity)
    return done.stdout.decode().strip()


async def test_a_process_of_the_same_user_outside_the_fleet_is_the_operator(
    unprivileged: Unprivileged, door: str
) -> None:
    async with small(unprivileged, door, {}) as fleet:
        assert await _outside(shell(asker(door)), **unprivileged.identity) == "operator"
        await fleet.report()


async def test_an_agents_mark_outside_the_fleet_is_nobody(unprivileged: Unprivileged, door: str) -> None:
    marked = "import resource; resource.setrlimit(10, (4711, resource.getrlimit(10)[1])); "
    itself = program(door, marked + "print(ask(connect()))")
    below = program(door, marked + "os.execv('/bin/sh', sys.argv[2:])", *shell(asker(door)))
    # A child that takes the mark off still has a marked ancestor.
    washed = program(
        door,
        marked
        + "c = os.fork()\nif c == 0:\n    resource.setrlimit(10, (-1, -1))\n    print(ask(connect()))\nelse: os.wait()",
    )
    async with small(unprivileged, door, {}) as fleet:
        for argv in (itself, below, washed):
            assert "carries the mark of an agent" in await _outside(argv, **unprivileged.identity)
        await fleet.report()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
async def test_another_user_is_refused_even_as_root(unprivileged: Unprivileged, door: str) -> None:
    async with small(unprivileged, door, {}) as fleet:
        assert await _outside(asker(door)) == (
            f"nobody: the caller is nobody: it runs as another user (uid 0, ours is {unprivileged.uid})"
        )
        await fleet.report()


# --- the cgroup contradicts


@pytest.fixture
def cells(unprivileged: Unprivileged) -> Any:
    """Two agents' cgroups, handed to the user: (directory, path as processes show it)."""
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    point = next((Path(words[4]) for words in mounts if "cgroup2" in words[words.index("-") :]), None)
    if point is None or not os.access(point, os.W_OK):
        pytest.skip("no cgroup v2 hierarchy that we may write to")
    base = point / f"fleet-tests-{os.getpid()}"
    made = [base, base / "a1", base / "a2"]
    try:
        for directory in made:
            directory.mkdir()
            os.chown(directory / "cgroup.procs", unprivileged.uid, -1)
        yield base, f"/{base.name}"
    finally:
        for directory in reversed(made):
            directory.rmdir()


async def test_a_process_that_moved_to_another_agents_cgroup_is_nobody(
    unprivileged: Unprivileged, door: str, cells: tuple[Path, str]
) -> None:
    base, name = cells
    move = "def move(to): open(f'{sys.argv[2]}/{to}/cgroup.procs', 'w').write('0')\n"
    body = move + "move('a1'); s = connect(); print(ask(s)); move('a2'); print(ask(s)); print(ask(connect()))\n"
    # Held back until the test has moved the fleet below the common ancestor: only then may it move within.
    waits = "while sys.argv[2].rsplit('/', 1)[1] not in open('/proc/self/cgroup').read(): os.sched_yield()\n"
    argv = program(door, "import os\n" + waits + body, str(base))
    async with small(unprivileged, door, {"a1": argv}, name) as fleet:
        daemon = (await fleet.said("ready"))["ready"]
        for pid in [daemon, *await eventually(lambda: _children(daemon))]:
            (base / "cgroup.procs").write_text(str(pid))
        out = await fleet.out("a1")
        await fleet.report()
    told, moved, anew = out.splitlines()
    assert told == "agent a1 1"
    assert moved == anew == "nobody: the caller is nobody: its ancestry says a1, its cgroup says a2"


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
