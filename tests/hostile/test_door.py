"""Whoever comes to the door, with whatever, as often as he likes: the next one is served, and it is on record."""

from __future__ import annotations

import json
import os
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.e2e.stage import Stage, project
from tests.fleet import RefusedError, connect
from tests.hostile import attacks
from tests.hostile.siege import Attacker, faults, siege
from tests.house import eventually

STATUS = b'{"jsonrpc":"2.0","id":1,"method":"status","params":{}}\n'


def attacker_of(stage: Stage, program: str) -> Attacker:
    return Attacker(attacks.CONNECT + program, str(stage.fleet.socket), str(stage.room / "agents.toml"))


@pytest.fixture
async def quiet(stage: Stage) -> Stage:
    await stage.fleet.up(project('[agents.lead]\nkind = "sleep"\n'))
    await stage.standing("lead")
    return stage


@pytest.mark.parametrize(
    ("program", "seen"),
    [
        pytest.param(attacks.THOUSANDS, "connections", id="thousands of connections"),
        pytest.param(attacks.COME_AND_GO, "", id="connects and leaves"),
        pytest.param(attacks.HALVES, "", id="half requests"),
        pytest.param(attacks.ENDLESS, "bytes", id="a line without an end"),
        pytest.param(attacks.TINY, "a request", id="ten thousand nothings in one write"),
        pytest.param(attacks.DEAF, "does not read", id="does not read its answers"),
        pytest.param(attacks.FULL, "values", id="a line full of values"),
        pytest.param(attacks.MANY_ASK, "", id="fifty connections that ask"),
    ],
)
async def test_nobody_keeps_others_out(quiet: Stage, program: str, seen: str) -> None:
    with attacker_of(quiet, program):
        async with siege(quiet.fleet):
            pass
        if seen:  # of the others there is nothing to say
            await faults(quiet.fleet, seen)


async def test_a_line_of_two_gigabytes_is_refused_once_in_passing(quiet: Stage) -> None:
    with attacker_of(quiet, attacks.TWO_GIGABYTES) as attacker:
        async with siege(quiet.fleet, growth=16 * 1024 * 1024):
            pass
        first, second = json.loads(await attacker.line()), json.loads(await attacker.line())
    assert (first["id"], first["error"]["code"]) == (None, -32600)
    assert (second["id"], "result" in second) == (1, True)


#: Two megabytes of facts, at once and whenever it is told.
WORDY = """
line = b'{"fleet":"done","summary":"' + b"x" * 60000 + b'"}\\n'
for _ in range(35):
    os.write(1, line)
signal.pause()
"""


async def test_followers_by_the_hundred_cost_no_one_anything_and_who_does_not_read_is_dropped(stage: Stage) -> None:
    await stage.fleet.up(project(stage.python("wordy", WORDY)))
    with ExitStack() as stack:
        attackers = [stack.enter_context(attacker_of(stage, attacks.FOLLOWERS)) for _ in range(3)]
        for attacker in attackers:
            assert await attacker.line() == "following"
        async with siege(stage.fleet, growth=64 * 1024 * 1024), stage.fleet.events() as events:
            for number in range(4):
                await stage.fleet.call("fork", kind="wordy", name=f"wordy-{number}")
            # One who reads sees it all while the others are given up.
            seen = [await anext(events) for _ in range(4 * 35)]
        assert [event["seq"] for event in seen] == sorted(event["seq"] for event in seen)
        for attacker in attackers:
            attacker.go()
            assert await attacker.line() == "dropped"


async def test_what_one_asks_at_once_is_answered_in_order_or_refused(quiet: Stage) -> None:
    lines = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"whoami"}\n' % number for number in range(10_000))
    stream = await connect(quiet.fleet.socket)
    answers: list[dict[str, Any]] = []
    async with stream, trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, lines)
        rest = b""
        while len(answers) < 10_000:
            *whole, rest = (rest + await stream.receive_some(1 << 20)).split(b"\n")
            answers += map(json.loads, whole)
    done = [answer["id"] for answer in answers if "result" in answer]
    assert done == sorted(done)
    assert {answer["id"] for answer in answers} == set(range(10_000))
    assert {answer["error"]["code"] for answer in answers if "error" in answer} <= {-32002}


async def test_what_is_no_request_of_ours_changes_nothing_and_leaves_the_connection_usable(quiet: Stage) -> None:
    stream = await connect(quiet.fleet.socket)
    async with stream:
        for line in attacks.NONSENSE:
            await stream.send_all(b"\n" + line + b"\n" + STATUS)
            data = b""
            while data.count(b"\n") < 2:
                got = await stream.receive_some(65536)
                assert got, data
                data += got
            first, second = map(json.loads, data.splitlines())
            assert first["error"]["code"] in (-32700, -32600, -32601, -32602), line[:100]
            assert "result" in second
            assert len(json.dumps(first)) < 1000, "it is not sent back what it sent"


@pytest.mark.parametrize("kind", ["fifo", "directory", "device", "socket", "huge", "gone", "loop"])
async def test_a_file_that_became_something_else_holds_up_no_one(stage: Stage, kind: str) -> None:
    content = project('[agents.lead]\nkind = "sleep"\n')
    await stage.fleet.up(content)
    file = stage.room / "agents.toml"
    await _known(stage, changed=False)
    file.unlink()
    _become(file, kind)
    async with siege(stage.fleet, growth=16 * 1024 * 1024):
        pass
    if kind == "huge":
        await _known(stage, changed=True)
    else:
        assert await _changed(stage) is None
    if file.is_dir():
        file.rmdir()
    else:
        file.unlink(missing_ok=True)
    file.write_text(content)
    await _known(stage, changed=False)


async def _changed(stage: Stage) -> bool | None:
    """What `status` says of the project's file."""
    file = str(stage.room / "agents.toml")
    shown: bool | None = next(
        one["changed"] for one in (await stage.fleet.call("status"))["projects"] if one["file"] == file
    )
    return shown


async def _known(stage: Stage, *, changed: bool) -> None:
    """Wait until `status` says so: what it has not read at once it does not know, and nobody is kept waiting for it."""

    async def said() -> bool:
        now = await _changed(stage)
        assert now in (changed, None)
        return now is changed

    await eventually(said)


def _become(file: Path, kind: str) -> None:
    match kind:
        case "fifo":
            os.mkfifo(file)
        case "directory":
            file.mkdir()
        case "device":
            file.symlink_to("/dev/zero")
        case "socket":
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(file))
        case "huge":
            with file.open("wb") as opened:
                opened.truncate(1 << 40)
        case "loop":
            file.symlink_to(file.name)


TOO_MUCH = """
[agents.lead]
kind = "sleep"
grant = { tokens = 10 }
[agents.lead.agents.child]
kind = "sleep"
grant = { tokens = 11 }
"""


async def test_a_file_that_is_refused_leaves_what_was_accepted(stage: Stage) -> None:
    await stage.fleet.up(project('[agents.lead]\nkind = "sleep"\ngrant = { tokens = 10 }\n'))
    before = await stage.fleet.call("config")
    file = str(stage.room / "agents.toml")
    with pytest.raises(RefusedError, match="10 tokens left"):
        await stage.fleet.call("reload", file=file, content=project(TOO_MUCH), path="/bin")
    assert await stage.fleet.call("config") == before


LOUD = """
for _ in range(150):
    os.write(1, b"a\\n" * 30000)
os.write(1, b"the last\\n")
signal.pause()
"""


async def test_a_transcript_of_millions_of_lines_is_shown_in_part_and_holds_up_no_one(stage: Stage) -> None:
    await stage.fleet.up(project(stage.python("loud", LOUD), '[agents.loud]\nkind = "loud"\n'))
    await stage.fleet.until(lambda tree: tree["loud"]["last"] == "the last")
    with attacker_of(stage, attacks.ALL_LINES):
        async with siege(stage.fleet, growth=96 * 1024 * 1024):
            pass
    found = (await stage.fleet.call("logs", agent="loud", lines=100_000_000))["lines"]
    assert (len(found), found[-1]) == (10_000, "the last")
