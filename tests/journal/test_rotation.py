"""The beginning of a new segment against deaths and disks that are full, at every call that it makes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
import trio

from supervisor.core.facts import Born, Fact, Spoke
from supervisor.core.spec import Spec
from supervisor.runtime.desk import Desk
from supervisor.runtime.journal.chain import Batch
from supervisor.runtime.journal.journal import SEGMENT, HeldError, Journal, JournalError
from supervisor.runtime.journal.segments import NAME, Files, snapshots
from supervisor.runtime.journal.verify import verify
from tests.house import PATIENCE
from tests.journal.life import PROJECT, batches, fill, replayed, take, text
from tests.journal.steps import ADDED

ROOT = Path(__file__).parents[2]
BEFORE = 20


def walked(directory: Path, how: str, segments: int) -> list[Path]:
    """What a writer that came to its end at each point left, by point."""
    journal, _ = fill(directory / "base", BEFORE, 1 << 30 if segments == 1 else 1500)
    journal.abandon()
    assert journal.segment >= segments
    command = [sys.executable, "-m", "tests.journal.steps", str(directory), how]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return sorted((path for path in directory.iterdir() if path.name != "base"), key=lambda path: int(path.name))


def goes_on(room: Path, least: int, most: int) -> None:
    """It opens with every durable fact and none that was never written, and goes on in a new segment."""
    before = verify(room)
    assert before.state == "open" or before.torn, before
    journal, past, cut = Journal.open(room, PROJECT, 1)
    assert cut == before.torn
    assert least <= journal.seq <= most
    assert text(past.project()) == text(replayed(list(islice(batches(), journal.seq))))
    assert journal.trouble == ""
    journal.abandon()
    again, _ = fill(room, journal.seq + 2, 1)
    again.close(9.0)
    assert again.segment == journal.segment + 1
    after = verify(room, replay=True)
    assert (after.state, after.seq, after.notes) == ("closed", journal.seq + 3, ())
    left = {path.name.split(".")[-1] for path in room.iterdir()}
    assert left <= {"jsonl", "lock", "cut", "told"}
    assert snapshots(room) == [number for number in (again.segment - 1, again.segment) if number > 1]


@pytest.mark.parametrize(("how", "segments"), [("kill", 1), ("half", 2)])
def test_a_writer_killed_at_any_step_leaves_every_durable_fact_and_no_other(
    tmp_path: Path, how: str, segments: int
) -> None:
    rooms = walked(tmp_path, how, segments)
    assert len(rooms) > 20
    for room in rooms:
        told = (room / "told").read_text().splitlines()
        durable = int(told[-1].split()[0]) if told else BEFORE
        # Of what was written and not acknowledged, the whole is there or nothing.
        goes_on(room, durable, durable + 1)


@pytest.mark.parametrize("how", ["once", "full"])
def test_a_full_disk_at_any_step_leaves_a_working_journal_or_a_failed_one(tmp_path: Path, how: str) -> None:
    rooms = walked(tmp_path, how, 2)
    put_off = failed = 0
    for room in rooms:
        *told, last = (room / "told").read_text().splitlines()
        put_off += any("put off" in line for line in [*told, last])
        failed += "failed" in last
        durable = int(last.split()[1 if "failed" in last else 0])
        assert "failed" in last or durable == BEFORE + ADDED, "it went on"
        assert "failed" not in last or how == "full" or durable < BEFORE + ADDED
        goes_on(room, durable, durable)
    assert put_off > 5
    assert failed >= ADDED


async def test_a_desk_goes_on_deciding_while_a_segment_is_begun(tmp_path: Path) -> None:
    journal, past, _ = Journal.open(tmp_path, PROJECT, 3000)
    acted: list[Fact] = []
    desk = Desk(past.project(), journal, acted.append, lambda: 1)

    async def speak(agent: str) -> None:
        desk.observe(Born(agent, agent, None, Spec("lines")))
        for number in range(40):
            answer = desk.observe(Spoke(agent, 0, f"{number} " + "x" * 100))
            await trio.lowlevel.checkpoint()
            if number % 3 == 0:
                await answer.durable.wait()

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(desk.run)
            async with trio.open_nursery() as speakers:
                for number in range(1, 5):
                    speakers.start_soon(speak, f"a{number}")
            nursery.cancel_scope.cancel()
    await desk.drain()
    journal.close(9.0)
    assert journal.segment > 3
    assert len(acted) >= 4 * 41
    again, found, _ = Journal.open(tmp_path, PROJECT)
    again.abandon()
    assert text(found.project()) == text(desk.project)
    verdict = verify(tmp_path, replay=True)
    assert (verdict.state, verdict.segments, verdict.notes) == ("closed", journal.segment, ())
    facts = [fact for number in range(1, journal.segment + 1) for fact in told(tmp_path, number)]
    assert facts == acted, "each durable fact was acted on once, in order"


def told(directory: Path, number: int) -> list[Fact]:
    """The facts of one segment."""
    files = Files(directory)
    found = [fact for record in files.records(number) if isinstance(record, Batch) for fact in record.facts]
    files.close()
    return found


def test_a_state_that_cannot_be_written_puts_the_next_segment_off(tmp_path: Path) -> None:
    journal, project = fill(tmp_path, 20, 1 << 20)
    project.agents["a1"].since = float("nan")
    journal.rotate(project, journal.seq)
    assert (journal.segment, journal.fault) == (1, None)
    assert "no segment 2 yet: " in journal.trouble
    project.agents["a1"].since = 1.0
    take(journal, project, next(islice(batches(), 20, None)))
    journal.rotate(project, journal.seq)
    assert (journal.segment, journal.trouble) == (2, "")
    journal.abandon()


def test_a_state_of_another_moment_begins_no_segment(tmp_path: Path) -> None:
    journal, project = fill(tmp_path, 20, 1 << 20)
    with pytest.raises(ValueError, match="after record 19"):
        journal.rotate(project, 19)
    journal.abandon()


def removed(room: Path) -> None:
    shutil.rmtree(room)


def moved(room: Path) -> None:
    room.rename(room.with_name("elsewhere"))


def replaced(room: Path) -> None:
    """As an editor does it, or who puts a copy back."""
    (room / "copy").write_bytes((room / NAME).read_bytes()[:500])
    (room / "copy").rename(room / NAME)


@pytest.mark.parametrize("how", [removed, moved, replaced])
def test_a_journal_that_someone_took_away_goes_on_from_the_state(tmp_path: Path, how: Callable[[Path], None]) -> None:
    room = tmp_path / "room"
    journal, project = fill(room, 20, SEGMENT)
    how(room)
    for told in islice(batches(), 20, 40):
        take(journal, project, told)
    assert "journal.jsonl was taken away" in journal.lost
    assert journal.segment == 2, "once, not with every write"
    with pytest.raises(HeldError):
        Journal.open(room, PROJECT)
    journal.abandon()
    again, past, _ = Journal.open(room, PROJECT)
    again.abandon()
    assert (text(past.project()), again.seq) == (text(project), journal.seq)


def test_a_journal_that_was_taken_away_and_cannot_be_begun_anew_is_written_no_more(tmp_path: Path) -> None:
    room = tmp_path / "room"
    journal, project = fill(room, 20, SEGMENT)
    removed(room)
    room.write_text("in its place")
    with pytest.raises(JournalError, match="was taken away, and cannot be begun anew"):
        take(journal, project, next(islice(batches(), 20, None)))
    journal.abandon()
    assert room.read_text() == "in its place"
