"""One daemon a person: a second one is refused with the first one's pid, a dead one's socket is told from a live one's,
and a daemon that stands still is called that."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest
import trio

from supervisor.runtime.journal.segments import NAME
from supervisor.runtime.journal.verify import verify
from tests.fleet import DAEMON, Fleet, RefusedError
from tests.house import PATIENCE, eventually
from tests.recovery.lives import agent, kill, life, pids, project, settled

#: Exit statuses: another daemon is there; no daemon; timed out.
TAKEN, NO_DAEMON, TIMED_OUT = 75, 69, 4


def second(*options: str) -> subprocess.Popen[str]:
    """Another daemon in the same place."""
    return subprocess.Popen(
        [*DAEMON, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


async def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Its status and its words."""
    said, _ = await trio.to_thread.run_sync(process.communicate, abandon_on_cancel=True)
    return process.returncode, said


@pytest.mark.parametrize("options", [("--no-warden",), ()])
async def test_a_second_daemon_is_refused_with_the_first_ones_pid_and_touches_nothing(
    tier: str, tmp_path: Path, options: tuple[str, ...]
) -> None:
    async with life(tmp_path, tier) as fleet:
        await fleet.up(project(agent("lead"), agent("kid", under="lead")))
        before = await settled(fleet, "lead", "kid")
        status, said = await ended(second(*options))
        assert status == TAKEN
        assert str(fleet.process.pid) in said
        after = await settled(fleet, "lead", "kid")
        assert {name: each["pid"] for name, each in after.items()} == {n: each["pid"] for n, each in before.items()}
        assert pids(fleet) == {each["pid"] for each in after.values()}


async def test_of_daemons_that_start_at_once_exactly_one_stays(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("lead")))
        await settled(fleet, "lead")
    racers = [second("--no-warden") for _ in range(4)]
    losers: list[tuple[int, str]] = []

    async def watch(racer: subprocess.Popen[str]) -> None:
        losers.append(await ended(racer))

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            for racer in racers:
                nursery.start_soon(watch, racer)
            await eventually(lambda: len(losers) == 3, 50)
            (winner,) = [racer for racer in racers if racer.poll() is None]
            fleet.process = winner  # type: ignore[assignment]  # its output is text
            await eventually(lambda: _answers(fleet.socket))  # the losers end before it has a socket
            lead = (await settled(fleet, "lead"))["lead"]
            assert pids(fleet) == {lead["pid"]}
            assert [status for status, _ in losers] == [TAKEN] * 3
            assert all(str(winner.pid) in said for _, said in losers)
            winner.send_signal(signal.SIGTERM)
    for journal in fleet.state.glob("*/" + NAME):
        assert verify(journal).state == "closed"


async def test_a_killed_daemons_socket_is_stale_and_the_next_one_takes_its_place(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        await kill(fleet)
        assert fleet.socket.exists()
        said = await fleet.ctl("tree", code=NO_DAEMON)
        assert said == ""
    async with life(tmp_path) as fleet:
        faults = (await fleet.call("status"))["faults"]
        assert [fault["where"] for fault in faults] == ["socket"]
        assert "was stale" in faults[0]["what"]


async def test_a_socket_that_is_deleted_or_replaced_comes_back(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("lead")))
        lead = (await settled(fleet, "lead"))["lead"]
        fleet.socket.unlink()
        await eventually(lambda: _answers(fleet.socket))
        assert (await settled(fleet, "lead"))["lead"]["pid"] == lead["pid"]
        with socket.socket(socket.AF_UNIX) as dead:
            away = fleet.socket.with_name("other")
            dead.bind(str(away))
            away.rename(fleet.socket)
        await eventually(lambda: _answers(fleet.socket))
        assert (await settled(fleet, "lead"))["lead"]["pid"] == lead["pid"]
        assert fleet.socket.stat().st_mode & 0o777 == 0o600


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
    return True


async def test_a_daemon_that_stands_still_is_wedged_neither_well_nor_away(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("lead")))
        await settled(fleet, "lead")
        fleet.process.send_signal(signal.SIGSTOP)
        try:
            for verb in (("status",), ("stop", "lead")):
                failed = await fleet.json(*verb, code=TIMED_OUT)
                assert f"wedged: pid {fleet.process.pid} lives" in failed["error"]["message"]
            status, said = await ended(second("--no-warden"))
            assert (status, str(fleet.process.pid) in said) == (TAKEN, True)
        finally:
            fleet.process.send_signal(signal.SIGCONT)
        assert (await settled(fleet, "lead"))["lead"]["run"] == 1, "who asked has gone: nothing is done in their name"


async def test_a_stop_that_reaches_no_daemon_deletes_nothing_and_claims_nothing(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("lead")))
        lead = (await settled(fleet, "lead"))["lead"]
        away = fleet.socket.with_name("away")
        fleet.process.send_signal(signal.SIGSTOP)  # it cannot put the socket back meanwhile
        try:
            fleet.socket.rename(away)
            fleet.socket.write_text("no socket")
            for verb in (("stop", "lead"), ("shutdown",), ("disband", "lead"), ("down",)):
                await fleet.ctl(*verb, code=NO_DAEMON)
            assert fleet.socket.read_text() == "no socket"
            os.kill(lead["pid"], 0)
        finally:
            fleet.socket.unlink()
            fleet.process.send_signal(signal.SIGCONT)
        await eventually(lambda: _answers(fleet.socket))
        assert (await settled(fleet, "lead"))["lead"]["pid"] == lead["pid"]


async def test_a_request_under_way_when_the_daemon_is_restarted_costs_the_next_one_nothing(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("lead", task="script:\nwait forever")))
        await fleet.state_of("lead", "working")
        async with trio.open_nursery() as nursery:

            async def waits() -> None:
                with pytest.raises((EOFError, RefusedError)):
                    await fleet.call("instruct", agent="lead", text="Next.", wait=True)

            nursery.start_soon(waits)
            await fleet.until(lambda tree: tree["lead"]["queued"] == 1)
            await kill(fleet)
    async with life(tmp_path) as fleet:
        lead = await fleet.state_of("lead", "standing", "working")
        assert pids(fleet) == {lead["pid"]}


async def test_what_a_person_stopped_stays_stopped_and_what_was_ending_has_ended(tier: str, tmp_path: Path) -> None:
    deaf = "script:\nignore stdin TERM\nleave stubborn\nwait forever"
    async with life(tmp_path, tier) as fleet:
        names = ("stopped", "ending", "branch", "kept")
        tables = [agent(name, task=deaf if name != "kept" else "", stop_grace="50s") for name in names]
        await fleet.up(project(*tables, agent("below", under="branch", task=deaf, stop_grace="50s")))
        for name in ("stopped", "ending", "branch", "below"):
            await fleet.state_of(name, "working")
        # Each has begun: it has left its process. What it had not begun with would wait for its next run.
        await eventually(lambda: len(pids(fleet)) == 9)
        async with trio.open_nursery() as nursery:
            for verb, name in (("stop", "stopped"), ("stop", "ending"), ("disband", "branch")):
                nursery.start_soon(_unanswered, fleet, verb, name)
            for name in ("stopped", "ending", "branch", "below"):
                await fleet.state_of(name, "stopping")
            await kill(fleet)
    async with life(tmp_path, tier) as fleet:
        tree = await settled(fleet, "kept")
        assert {each["name"]: each["state"] for each in tree.values()} == {
            "stopped": "stopped", "ending": "stopped", "kept": "standing", "branch": "gone", "below": "gone",
        }  # fmt: skip
        assert pids(fleet) == {tree["kept"]["pid"]}
        await kill(fleet)
    async with life(tmp_path, tier) as fleet:
        tree = await settled(fleet, "kept")
        assert (tree["stopped"]["state"], tree["stopped"]["run"]) == ("stopped", 1)
        assert (await fleet.call("start", agent="stopped"))["state"] == "standing"


async def _unanswered(fleet: Fleet, verb: str, name: str) -> None:
    with pytest.raises(EOFError):
        await fleet.call(verb, agent=name)
