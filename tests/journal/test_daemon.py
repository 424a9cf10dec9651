"""A whole daemon on a disk that is full, nearly full, or was: what could not be written was not acted on, and after it
made room everything is as the durable facts say. And its history, to the beginning."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.core.facts import Spoke
from supervisor.core.state import Project
from supervisor.doors import paths
from supervisor.runtime.containment import marks
from supervisor.runtime.journal import snapshot
from supervisor.runtime.journal.chain import Batch
from supervisor.runtime.journal.journal import Journal
from supervisor.runtime.journal.segments import snapshot_of
from supervisor.runtime.journal.verify import verify
from supervisor.runtime.projects import LOW_DISK
from supervisor.warden import STARTS
from tests.fleet import DAEMON, Fleet, RefusedError, running
from tests.house import PATIENCE, eventually, over

MEGABYTE = 1024 * 1024


def toml(tmp_path: Path, more: str = "") -> str:
    """A main that does nothing, and a kind that leaves a mark as soon as it runs."""
    late = f'command = ["sh", "-c", "touch {tmp_path}/ran; exec sleep 1000"]'
    return (
        '[project]\nname = "t"\n[kinds.sleep]\nprotocol = "lines"\ncommand = ["sleep", "1000"]\n'
        f'[kinds.late]\nprotocol = "lines"\n{late}\n[agents.lead]\nkind = "sleep"\n{more}'
    )


def home(fleet: Fleet) -> Path:
    """The project's directory."""
    return fleet.state / paths.project_id("t", str(fleet.at / "agents.toml"))


def on_disk(directory: Path) -> Project:
    """What the durable facts come to."""
    journal, past, _ = Journal.open(directory, directory.name)
    journal.abandon()
    return past.project()


async def ended(fleet: Fleet) -> str:
    """Wait for the daemon's end by a failed disk; what it said."""
    assert await over(fleet.process) == 74
    return await trio.Path(fleet.at / "daemon.log").read_text()


@contextlib.contextmanager
def small_disk(at: Path, size: int) -> Iterator[Path]:
    """A disk of so many bytes, at a directory; gives a file that can fill it."""
    at.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", at],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk needs the right to mount (root): {mounted.stderr.strip()}")
    try:
        yield at / "ballast"
    finally:
        subprocess.run(["umount", at], check=True)


async def renamed(fleet: Fleet) -> int:
    """Rename the agent until the daemon ends: the last page of the journal has room left, and takes what fits into it.
    Returns the last number that was acknowledged."""
    last = -1
    with contextlib.suppress(EOFError, OSError):
        while last < 1000:
            await fleet.call("rename", agent="a1", name=f"lead-{last + 1}-{'x' * 50}")
            last += 1
    return last


def leave_free(ballast: Path, room: int) -> None:
    """Fill the disk until so many bytes are free."""
    disk = os.statvfs(ballast.parent)
    with contextlib.suppress(OSError), ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, disk.f_bavail * disk.f_frsize - room)


async def test_a_fact_that_cannot_be_written_starts_no_process_and_ends_the_daemon(tmp_path: Path) -> None:
    with trio.fail_after(PATIENCE):
        async with running(tmp_path) as fleet:
            await fleet.up(toml(tmp_path))
            await fleet.state_of("lead", "standing")
            size = (home(fleet) / "journal.jsonl").stat().st_size
            resource.prlimit(fleet.process.pid, resource.RLIMIT_FSIZE, (size + 20, size + 20))
            with pytest.raises((EOFError, OSError)):
                await fleet.call("fork", kind="late", name="kid", parent="lead")
            said = await ended(fleet)
        assert "are not durable, what was written of them is taken back" in said
        assert not (tmp_path / "ran").exists()
        assert verify(home(fleet)).state == "open"
        async with running(tmp_path) as fleet:
            assert set(await fleet.tree()) == {"lead"}
            await fleet.state_of("lead", "standing")
            assert not (tmp_path / "ran").exists()
            await fleet.call("fork", kind="late", name="kid", parent="lead")
            await eventually((tmp_path / "ran").exists)


async def test_after_a_full_disk_the_tree_is_as_the_durable_facts_say(tmp_path: Path) -> None:
    with (
        trio.fail_after(PATIENCE),
        small_disk(Path(os.environ["XDG_STATE_HOME"]), LOW_DISK + 16 * MEGABYTE) as ballast,
    ):
        async with running(tmp_path) as fleet:
            await fleet.up(toml(tmp_path))
            await fleet.state_of("lead", "standing")
            leave_free(ballast, 0)
            last = await renamed(fleet)
            said = await ended(fleet)
        assert "No space left on device" in said or "no room" in said
        ballast.unlink()
        due = on_disk(home(fleet)).agents["a1"].name
        assert int(due.split("-")[1]) in (last, last + 1) if last >= 0 else due == "lead"
        async with running(tmp_path) as fleet:
            await fleet.state_of(due, "standing")
            assert set(await fleet.tree()) == {due}


async def test_a_fleet_on_a_full_disk_comes_back_by_itself_when_there_is_room(tmp_path: Path) -> None:
    with (
        trio.fail_after(PATIENCE),
        small_disk(Path(os.environ["XDG_STATE_HOME"]), LOW_DISK + 16 * MEGABYTE) as ballast,
    ):
        log = ballast.with_name("daemon.log")  # where `up` puts it: on that same disk
        with log.open("ab") as out:
            warden = subprocess.Popen([*DAEMON, "--tier", "warden"], stdout=out, stderr=out, start_new_session=True)
        try:
            fleet = Fleet(tmp_path, warden, "warden")
            await again(fleet)
            await fleet.up(toml(tmp_path))
            await fleet.state_of("lead", "standing")
            first = (await fleet.call("status"))["pid"]
            leave_free(ballast, 0)
            await renamed(fleet)
            for _ in range(STARTS + 1):  # that many in vain would be enough for another reason
                await eventually(lambda: bool(marks.children(warden.pid)), PATIENCE)
                await eventually(lambda: not marks.children(warden.pid), PATIENCE)
            ballast.unlink()
            assert (await again(fleet))["pid"] != first
            assert len(await fleet.tree()) == 1
        finally:
            warden.terminate()
            await over(warden)


async def again(fleet: Fleet) -> dict[str, Any]:
    """What the daemon says of itself, once there is one."""

    async def answered() -> dict[str, Any]:
        with contextlib.suppress(OSError, EOFError):
            status: dict[str, Any] = await fleet.call("status")
            return status
        return {}

    return await eventually(answered, PATIENCE)


async def test_what_agents_print_leaves_the_last_of_a_disk_to_the_journal(tmp_path: Path) -> None:
    kind = '[kinds.flood]\nprotocol = "lines"\ncommand = ["yes", "x"]\n'
    floods = "".join(f'[agents.flood{number}]\nkind = "flood"\n' for number in range(3))
    with (
        trio.fail_after(PATIENCE),
        small_disk(Path(os.environ["XDG_STATE_HOME"]), LOW_DISK + 8 * MEGABYTE) as ballast,
    ):
        async with running(tmp_path) as fleet:
            await fleet.up(toml(tmp_path, kind + floods))

            async def lost() -> bool:
                faults = (await fleet.call("status"))["faults"]
                return any("are kept for the journal" in fault["what"] for fault in faults)

            await eventually(lost, PATIENCE)
            disk = os.statvfs(ballast.parent)
            assert disk.f_bavail * disk.f_frsize > LOW_DISK // 4
            await fleet.call("rename", agent="lead", name="chief")
            assert len(await fleet.tree()) == 4


async def test_a_disk_that_is_nearly_full_takes_no_new_work_and_all_else(tmp_path: Path) -> None:
    with (
        trio.fail_after(PATIENCE),
        small_disk(Path(os.environ["XDG_STATE_HOME"]), LOW_DISK + 16 * MEGABYTE) as ballast,
    ):
        async with running(tmp_path) as fleet:
            await fleet.up(toml(tmp_path, '[agents.other]\nkind = "sleep"\n'))
            await fleet.state_of("lead", "standing")
            await fleet.state_of("other", "standing")
            await fleet.call("stop", agent="other")
            leave_free(ballast, LOW_DISK // 2)
            before = await fleet.tree()
            content = toml(tmp_path, '[agents.more]\nkind = "late"\n')
            for verb, params in (
                ("fork", {"kind": "late", "parent": "lead"}),
                ("instruct", {"agent": "lead", "text": "Go"}),
                ("start", {"agent": "other"}),
                ("up", {"file": str(tmp_path / "agents.toml"), "content": content}),
                ("reload", {"file": str(tmp_path / "agents.toml"), "content": content}),
            ):
                with pytest.raises(RefusedError) as caught:
                    await fleet.call(verb, **params)
                assert (caught.value.data["code"], caught.value.data["asked"]) == ("disk", LOW_DISK), verb
                assert caught.value.data["held"] < LOW_DISK
            after = await fleet.tree()
            assert {name: agent["state"] for name, agent in after.items()} == {
                name: agent["state"] for name, agent in before.items()
            }
            assert not (tmp_path / "ran").exists()
            await fleet.call("rename", agent="lead", name="chief")
            await fleet.call("disband", agent="chief")
            ballast.unlink()
            await fleet.up(content)
            await eventually((tmp_path / "ran").exists)


async def test_output_that_the_disk_does_not_take_is_counted_and_holds_nobody_up(tmp_path: Path) -> None:
    floods = f"head -c 3000000 /dev/zero | tr '\\\\\\\\0' x; echo; touch {tmp_path}/done; exec sleep 1000"
    more = f'[kinds.flood]\nprotocol = "lines"\ncommand = ["sh", "-c", "{floods}"]\n[agents.loud]\nkind = "flood"\n'
    with trio.fail_after(PATIENCE):
        async with running(tmp_path) as fleet:
            resource.prlimit(fleet.process.pid, resource.RLIMIT_FSIZE, (128 * 1024, 128 * 1024))
            await fleet.up(toml(tmp_path, more))
            await eventually((tmp_path / "done").exists, PATIENCE)
            loud = await fleet.state_of("loud", "standing", "working")
            kept = home(fleet) / "agents" / loud["id"] / "transcript.jsonl"

            async def counted() -> bool:
                faults = [fault for fault in (await fleet.call("status"))["faults"] if "loud" in fault["where"]]
                return any(
                    f"{3000001 - kept.stat().st_size} bytes of its output are lost" in fault["what"] for fault in faults
                )

            await eventually(counted, PATIENCE)
            assert "bytes of its output are lost" in await fleet.ctl("status")
            await fleet.state_of("lead", "standing")


# --- history


def prolong(directory: Path, count: int, segment: int) -> int:
    """Add batches to a journal whose daemon is gone, in segments; the number of the last."""
    journal, past, _ = Journal.open(directory, directory.name, segment)
    project = past.project()
    for number in range(0, count, 50):
        drafts = [journal.encode(Batch(1.0, "fleet", (Spoke("a1", 0, f"line {number + each}"),))) for each in range(50)]
        full, seq = journal.full(), journal.seq
        journal.write(drafts)
        if full:
            journal.rotate(snapshot.copied(project), seq)
    assert journal.segment > 4
    journal.abandon()
    return journal.segment


async def test_events_reach_back_to_the_beginning_over_all_segments(tmp_path: Path) -> None:
    with trio.fail_after(PATIENCE):
        async with running(tmp_path) as fleet:
            await fleet.up(toml(tmp_path))
            await fleet.state_of("lead", "standing")
        segment = prolong(home(fleet), 4000, 100_000)
        async with running(tmp_path) as fleet:
            await fleet.state_of("lead", "standing")
            newest = (await fleet.call("status"))["projects"][0]["journal"]
            assert newest["segment"] == segment
            printed = [json.loads(line) for line in (await fleet.ctl("events", "--since", "0", "--json")).splitlines()]
            assert [fact["fact"] for fact in printed[:2]] == ["Opened", "Accepted"]
            assert [fact["last"] for fact in printed if fact["fact"] == "Spoke" and fact["by"] == "fleet"][-4000:] == [
                f"line {number}" for number in range(4000)
            ]
            seqs = [fact["seq"] for fact in printed]
            assert seqs == sorted(seqs)
            # The record that ended the first daemon's life holds no fact.
            assert len({*range(1, newest["seq"] + 1)} - {*seqs}) == 1
            page = await fleet.call("events", since=3)
            assert page["events"][0]["seq"] == 3
            assert page["next"] == page["events"][-1]["seq"] + 1
            followed = []
            async with fleet.events(since=0) as events:
                await fleet.call("rename", agent="lead", name="chief")
                async for fact in events:
                    followed.append(fact)
                    if fact.get("fact") == "Renamed":
                        break
            assert followed[: len(printed)] == printed


async def test_what_a_tree_has_shown_is_on_record_for_who_asks_after_it(tmp_path: Path) -> None:
    with trio.fail_after(PATIENCE):
        async with running(tmp_path) as fleet, trio.open_nursery() as nursery:
            await fleet.up(toml(tmp_path))
            await fleet.state_of("lead", "standing")

            async def rename() -> None:
                for number in range(100):
                    await fleet.call("rename", agent="a1", name=f"name{number}")

            nursery.start_soon(rename)
            shown = ""
            while shown != "name99":
                (shown,) = await fleet.tree()
                recorded = (await fleet.call("events", since=0))["events"]
                if shown != "lead":
                    assert shown in [event["name"] for event in recorded if event["fact"] == "Renamed"]


async def test_a_damaged_snapshot_is_shown_and_replaced(tmp_path: Path) -> None:
    with trio.fail_after(PATIENCE):
        async with running(tmp_path) as fleet:
            await fleet.up(toml(tmp_path))
            await fleet.state_of("lead", "standing")
        segment = prolong(home(fleet), 500, 10_000)
        snapshot_of(home(fleet), segment).write_bytes(b"{}")
        async with running(tmp_path) as fleet:
            await fleet.state_of("lead", "standing")

            async def replaced() -> bool:
                status = await fleet.call("status")
                return bool(status["projects"][0]["journal"]["segment"] == segment + 1 and not status["faults"])

            await eventually(replaced, PATIENCE)
        snapshot_of(home(fleet), segment).unlink()
        verdict = verify(home(fleet), replay=True)
        assert (verdict.state, verdict.segments, verdict.notes) == ("closed", segment + 1, ())
