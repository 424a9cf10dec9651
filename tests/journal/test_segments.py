"""A journal in segments is one journal: each begins from a snapshot, and all together they say the same."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from attrs import evolve

from supervisor.runtime.journal import segments, snapshot
from supervisor.runtime.journal.chain import Carry, Fault, Link, seal_carry
from supervisor.runtime.journal.journal import CUT, LOCK, Journal, JournalError
from supervisor.runtime.journal.segments import NAME, Files, numbered, snapshot_of
from supervisor.runtime.journal.verify import verify
from tests.journal.life import PROJECT, batches, fill, replayed, text

SMALL = 4000


def told(count: int) -> list[bytes]:
    """The state after so many records of the life."""
    return text(replayed(list(islice(batches(), count))))


def opened(directory: Path) -> tuple[list[bytes], str]:
    """The state that an opening finds, and what it says of its snapshot."""
    journal, past, cut = Journal.open(directory, PROJECT, SMALL)
    assert cut == 0
    state = text(past.project())
    journal.abandon()
    return state, journal.trouble


def several(directory: Path, count: int = 60) -> int:
    """A journal of several segments; the number of the current one."""
    journal, _ = fill(directory, count, SMALL)
    journal.abandon()
    assert journal.segment > 4
    return journal.segment


@pytest.mark.parametrize("segment", [1, 700, SMALL, 1 << 20])
def test_the_snapshots_are_what_a_replay_of_all_facts_comes_to(tmp_path: Path, segment: int) -> None:
    for count in (20, 40, 41, 60):
        journal, project = fill(tmp_path, count, segment)
        assert text(project) == told(count)
        journal.close(9.0) if count == 60 else journal.abandon()
    verdict = verify(tmp_path, replay=True)
    assert (verdict.state, verdict.seq, verdict.head, verdict.notes) == ("closed", 61, journal.head, ())
    assert verdict.segments == journal.segment
    assert (verdict.segments == 1) == (segment == 1 << 20)
    assert opened(tmp_path) == (told(60), "")


def test_a_segment_names_what_it_continues(tmp_path: Path) -> None:
    current = several(tmp_path)
    files = Files(tmp_path)
    assert (files.oldest, files.number, files.odd) == (1, current, [])
    link: Link | None = None
    for number in range(1, current + 1):
        first, *rest = files.records(number, link)
        assert first.seq == (link.seq if link else 0)
        if isinstance(first, Carry):
            assert link is not None
            assert (first.project, first.segment, first.prev) == (PROJECT, number, link.hash)
        last = rest[-1] if rest else first
        assert not isinstance(last, Fault)
        link = Link(last.seq, last.hash)
    files.close()


def test_only_the_owner_can_read_any_of_it_and_two_snapshots_are_kept(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        current = several(tmp_path / "state")
    finally:
        os.umask(mask)
    names = {path.name for path in (tmp_path / "state").iterdir()}
    kept = {snapshot_of(tmp_path, number).name for number in (current - 1, current)}
    assert names == {NAME, LOCK, *kept, *(numbered(tmp_path, number).name for number in range(1, current))}
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "state").iterdir()} == {0o600}


def test_a_journal_of_one_segment_goes_on_in_several(tmp_path: Path) -> None:
    fill(tmp_path, 30)[0].abandon()
    assert [path.name for path in tmp_path.glob("*.jsonl")] == [NAME]
    journal, _ = fill(tmp_path, 33, SMALL)
    journal.abandon()
    assert journal.segment > 1
    assert opened(tmp_path) == (told(33), "")
    assert verify(tmp_path, replay=True).code == 0


# --- damage


def flip(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "one bit": flip,
    "cut": lambda path: os.truncate(path, 100),
    "empty": lambda path: path.write_bytes(b""),
    "nonsense": lambda path: path.write_bytes(b"\xff["),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_without_its_snapshot_a_segment_starts_from_those_before_it(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    current = several(tmp_path)
    for number in (current, current - 1):
        damage(snapshot_of(tmp_path, number))
        verdict = verify(tmp_path)
        name = snapshot_of(tmp_path, number).name
        if damage is Path.unlink:
            assert f"; {snapshot_of(tmp_path, current).name} is not here: the next opening replays" in str(verdict)
        else:
            assert str(verdict).endswith(f", {name}: it is not as it was written")
        state, trouble = opened(tmp_path)
        assert state == told(60)
        assert snapshot_of(tmp_path, current).name in trouble
    journal, _ = fill(tmp_path, 61, SMALL)
    assert (journal.segment, journal.trouble) == (current + 1, ""), "the next write makes a snapshot"
    journal.abandon()
    assert opened(tmp_path) == (told(61), "")
    assert verify(tmp_path, replay=True).code == (0 if damage is Path.unlink else 1)


def test_a_snapshot_of_another_version_is_left_alone_and_made_again_from_the_facts(tmp_path: Path) -> None:
    several(tmp_path)
    files = Files(tmp_path)
    carry = next(files.records(files.number))
    files.close()
    assert isinstance(carry, Carry)
    # What another version would have written: only the last segment's first record differs, nothing follows it.
    (tmp_path / NAME).write_bytes(seal_carry(evolve(carry, shape="of old"))[0])
    state, trouble = opened(tmp_path)
    assert state == told(carry.seq)
    assert "by a version that keeps another state" in trouble
    assert "another version's: not compared" in str(verify(tmp_path, replay=True))


def test_with_neither_a_snapshot_nor_what_it_was_made_of_it_refuses_and_says_what_is_missing(tmp_path: Path) -> None:
    current = several(tmp_path)
    snapshot_of(tmp_path, current).unlink()
    numbered(tmp_path, current - 1).rename(tmp_path / "away")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(JournalError) as caught:
        Journal.open(tmp_path, PROJECT)
    assert snapshot_of(tmp_path, current).name in str(caught.value)
    assert f"{numbered(tmp_path, current - 1).name}, with what came before, is not here" in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.name != LOCK} | {
        tmp_path / LOCK: before[tmp_path / LOCK]
    } == before, "nothing was changed"
    assert verify(tmp_path).code == 1
    (tmp_path / "away").rename(numbered(tmp_path, current - 1))
    assert opened(tmp_path)[0] == told(60)


@pytest.mark.parametrize("count", [1, 2])
def test_the_oldest_segments_can_be_put_away(tmp_path: Path, count: int) -> None:
    current = several(tmp_path)
    for number in range(1, count + 1):
        numbered(tmp_path, number).rename(tmp_path / f"away-{number}")
    assert opened(tmp_path) == (told(60), "")
    verdict = verify(tmp_path, replay=True)
    assert (verdict.state, verdict.seq, verdict.segments) == ("open", 60, current - count)
    assert f"{60 - verdict.since + 1} records from {verdict.since} on" in str(verdict)
    assert ("segment 1 is not here" if count == 1 else "segments 1 to 2 are not here") in str(verdict)
    found = segments.read(tmp_path, 0, 60, 1 << 20)
    assert [each.seq for each in found] == list(range(verdict.since, 61))


def test_a_segment_missing_between_two_is_found(tmp_path: Path) -> None:
    several(tmp_path)
    numbered(tmp_path, 2).rename(tmp_path / "away")
    assert f", {numbered(tmp_path, 2).name}: it is missing" in str(verify(tmp_path))


def test_without_its_current_segment_a_journal_is_not_begun_anew(tmp_path: Path) -> None:
    several(tmp_path)
    (tmp_path / NAME).rename(tmp_path / "away")
    with pytest.raises(JournalError, match=f"{NAME} is missing, and journal.000001.jsonl is there"):
        Journal.open(tmp_path, PROJECT)
    assert not (tmp_path / NAME).exists()


def test_an_older_current_segment_put_back_beside_newer_ones_is_refused(tmp_path: Path) -> None:
    journal, _ = fill(tmp_path, 30, SMALL)
    journal.abandon()
    shutil.copy(tmp_path / NAME, tmp_path / "backup")
    again, _ = fill(tmp_path, 60, SMALL)
    again.abandon()
    shutil.copy(tmp_path / "backup", tmp_path / NAME)
    odd = numbered(tmp_path, journal.segment).name
    with pytest.raises(JournalError, match=f"{odd} is there, and {NAME} is segment {journal.segment} itself"):
        Journal.open(tmp_path, PROJECT)
    assert f"{odd}: {NAME} is segment {journal.segment} itself" in str(verify(tmp_path))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_change_in_an_old_segment_is_found_by_file_and_line(tmp_path: Path, number: int) -> None:
    several(tmp_path)
    path = numbered(tmp_path, number)
    lines = path.read_bytes().splitlines(keepends=True)
    seq = verify(tmp_path).seq
    for at in range(len(lines)):
        damaged = [*lines]
        damaged[at] = lines[at].replace(b'"at":', b'"at": ')
        path.write_bytes(b"".join(damaged))
        verdict = verify(tmp_path)
        assert (verdict.state, verdict.file, verdict.line) == ("broken", path.name, at + 1)
        assert verdict.seq < seq
    path.write_bytes(b"".join(lines[:-1]))
    assert verify(tmp_path).file == (path.name if len(lines) == 1 else numbered(tmp_path, number + 1).name)
    path.write_bytes(b"".join(lines)[:-1])
    cut = verify(tmp_path)
    assert (cut.file, cut.line, cut.torn) == (path.name, len(lines), 0), "only the current segment can have a torn tail"


def test_segments_that_changed_places_are_found(tmp_path: Path) -> None:
    several(tmp_path)
    second, third = numbered(tmp_path, 2), numbered(tmp_path, 3)
    kept = second.read_bytes()
    second.write_bytes(third.read_bytes())
    third.write_bytes(kept)
    assert verify(tmp_path).file == second.name


def test_a_false_snapshot_with_a_hash_that_fits_is_found_by_replay(tmp_path: Path) -> None:
    journal, project = fill(tmp_path, 20, 1 << 20)
    project.agents["a1"].name = "somebody else"
    journal.rotate(snapshot.copied(project), journal.seq)
    journal.abandon()
    assert verify(tmp_path).code == 0
    verdict = verify(tmp_path, replay=True)
    assert (verdict.file, verdict.line) == (snapshot_of(tmp_path, 2).name, None)
    assert "the facts before it come to another state" in verdict.reason


def test_a_torn_tail_of_the_current_segment_is_cut(tmp_path: Path) -> None:
    several(tmp_path)
    with (tmp_path / NAME).open("ab") as file:
        file.write(b'{"at":1.0,"by":')
    assert (verify(tmp_path).file, verify(tmp_path).torn) == (NAME, 15)
    journal, past, cut = Journal.open(tmp_path, PROJECT, SMALL)
    journal.abandon()
    assert (cut, text(past.project())) == (15, told(60))
    assert (tmp_path / CUT).read_bytes() == b'{"at":1.0,"by":'


def test_one_segment_alone_can_be_verified(tmp_path: Path) -> None:
    several(tmp_path)
    away = tmp_path / "archive" / "old.jsonl"
    away.parent.mkdir()
    numbered(tmp_path, 2).rename(away)
    verdict = verify(away)
    assert (verdict.state, verdict.segments) == ("open", 1)
    assert verdict.since > 1


def test_verify_beside_a_writer_that_goes_on_in_another_segment_sees_one_moment(tmp_path: Path) -> None:
    journal, _ = fill(tmp_path, 20, SMALL)
    files = Files(tmp_path)
    journal.abandon()
    again, _ = fill(tmp_path, 60, SMALL)
    assert again.segment > files.number + 1
    found = [record for number in range(1, files.number + 1) for record in files.records(number)]
    files.close()
    assert found[-1].seq == 20
    assert not any(isinstance(record, Fault) for record in found)
    assert verify(tmp_path).seq == 60
    again.abandon()


# --- by number


@pytest.mark.parametrize("near", [1, 64 * 1024])
def test_every_record_is_found_by_its_number(tmp_path: Path, near: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "_NEAR", near)
    several(tmp_path)
    life = [each.facts for each in islice(batches(), 60)]
    for since in range(64):
        found = segments.read(tmp_path, since, 58, 1 << 20)
        assert [each.seq for each in found] == list(range(max(1, since), 59))
        assert [each.facts for each in found] == life[max(1, since) - 1 : 58]
    assert [each.seq for each in segments.read(tmp_path, 7, 60, 1)] == [7]


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    several(tmp_path)
    path = numbered(tmp_path, 2)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:-1], lines[-1][:40] + b"\n"]))
    with pytest.raises(segments.LostError, match=r"cut off|no hash"):
        segments.read(tmp_path, 0, 60, 1 << 20)
    path.unlink()
    with pytest.raises(segments.LostError, match=path.name):
        segments.read(tmp_path, 0, 60, 1 << 20)
