"""The journal: what it takes is whole and in order, and it says exactly what is not."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.core.facts import Downed, Fact, Repaired, Spoke
from supervisor.runtime.journal.chain import LONGEST, NOTHING, Batch, Fault, records, seal
from supervisor.runtime.journal.journal import CUT, LOCK, Journal, JournalError
from supervisor.runtime.journal.segments import NAME
from supervisor.runtime.journal.verify import verify
from tests.facts import all_facts, values

PROJECT = "demo-0123abcd"
OPENER = """
import sys, pathlib
from supervisor.runtime.journal.journal import Journal
Journal.open(pathlib.Path(sys.argv[1]), "demo-0123abcd")
"""
FACTS: st.SearchStrategy[tuple[Fact, ...]] = st.lists(st.one_of(*map(values, all_facts())), max_size=3).map(tuple)


def fill(directory: Path, count: int) -> Journal:
    """A journal with `count` records after the first, still open."""
    journal, _, _ = Journal.open(directory, PROJECT)
    for number in range(journal.seq + 1, count + 1):
        journal.write([journal.encode(Batch(float(number), "operator", (Spoke("a1", number, f"line {number}"),)))])
    return journal


def reopened(directory: Path) -> tuple[list[Batch], int]:
    journal, past, cut = Journal.open(directory, PROJECT)
    journal.abandon()
    return past.batches, cut


@given(lives=st.lists(st.tuples(st.lists(FACTS, max_size=3), st.booleans()), min_size=1, max_size=3))
@settings(max_examples=25)
def test_every_life_reads_back_what_all_lives_before_it_wrote(lives: list[tuple[list[tuple[Fact, ...]], bool]]) -> None:
    with TemporaryDirectory() as name:
        directory = Path(name)
        told: list[tuple[tuple[Fact, ...], bool]] = []
        for batches, orderly in lives:
            journal, past, cut = Journal.open(directory, PROJECT)
            found = past.batches
            assert [(batch.facts, batch.closed) for batch in found] == told
            assert [batch.seq for batch in found] == list(range(1, len(told) + 1))
            assert cut == 0
            journal.write([journal.encode(Batch(1.5, "operator", facts)) for facts in batches])
            told += [(facts, False) for facts in batches]
            if orderly:
                journal.close(2.5)
                told.append(((), True))
            else:
                journal.abandon()
            verdict = verify(directory)
            assert (verdict.seq, verdict.head, verdict.project) == (len(told), journal.head, PROJECT)
            assert verdict.state == ("closed" if told and told[-1][1] else "open")


def test_seq_is_known_when_encoded_and_durable_when_written(tmp_path: Path) -> None:
    journal = fill(tmp_path, 0)
    lines = [journal.encode(Batch(1.0, "operator", (Downed(),))) for _ in range(3)]
    assert (journal.seq, journal.durable) == (3, 0)
    journal.write(lines[:2])
    assert (journal.seq, journal.durable) == (3, 2)
    journal.close(2.0)
    assert [batch.seq for batch in reopened(tmp_path)[0]] == [1, 2, 3, 4], "what was encoded is written at the close"


def test_lines_out_of_order_are_refused(tmp_path: Path) -> None:
    journal = fill(tmp_path, 1)
    first, second = (journal.encode(Batch(1.0, "operator", (Downed(),))) for _ in range(2))
    with pytest.raises(ValueError, match="order"):
        journal.write([second, first])
    journal.abandon()
    assert verify(tmp_path).seq == 1


def test_a_closed_journal_takes_nothing_more(tmp_path: Path) -> None:
    journal = fill(tmp_path, 1)
    journal.close(1.0)
    with pytest.raises(JournalError, match="closed"):
        journal.encode(Batch(1.0, "operator", ()))


def test_what_cannot_be_written_as_json_changes_nothing(tmp_path: Path) -> None:
    journal = fill(tmp_path, 1)
    with pytest.raises(ValueError, match="JSON"):
        journal.encode(Batch(float("nan"), "operator", ()))
    journal.write([journal.encode(Batch(1.0, "operator", (Downed(),)))])
    journal.abandon()
    assert verify(tmp_path).seq == 2


@pytest.mark.parametrize("made", ["by us", "by another, for all to read"])
def test_only_the_owner_can_read_it(tmp_path: Path, made: str) -> None:
    directory = tmp_path / "state"
    if made != "by us":
        directory.mkdir(mode=0o755)
    mask = os.umask(0)
    try:
        fill(directory, 1).close(1.0)
    finally:
        os.umask(mask)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [directory, *directory.iterdir()]}
    assert modes == {"state": 0o700, NAME: 0o600, LOCK: 0o600}


def test_a_second_writer_is_told_the_first_ones_pid(tmp_path: Path) -> None:
    journal = fill(tmp_path, 1)
    ran = subprocess.run([sys.executable, "-c", OPENER, str(tmp_path)], capture_output=True, text=True, check=False)
    assert f"is written by process {os.getpid()} already" in ran.stderr
    assert "HeldError" in ran.stderr
    journal.write([journal.encode(Batch(1.0, "operator", (Downed(),)))])
    journal.abandon()
    assert verify(tmp_path).seq == 2


def test_a_journal_belongs_to_its_project(tmp_path: Path) -> None:
    fill(tmp_path, 1).abandon()
    with pytest.raises(JournalError, match=f"of {PROJECT}, not of other-0123abcd"):
        Journal.open(tmp_path, "other-0123abcd")
    assert len(reopened(tmp_path)[0]) == 1, "the lock was let go"


# --- damage


def test_a_last_record_cut_at_any_byte_is_cut_off_and_reported(tmp_path: Path) -> None:
    fill(tmp_path, 3).abandon()
    whole = (tmp_path / NAME).read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for end in range(last, len(whole)):
        (tmp_path / NAME).write_bytes(whole[:end])
        torn = end - last
        verdict = verify(tmp_path)
        assert (verdict.state, verdict.seq, verdict.torn) == ("broken" if torn else "open", 2, torn)
        batches, cut = reopened(tmp_path)
        assert (len(batches), cut) == (2, torn)
        assert (tmp_path / NAME).read_bytes() == whole[:last]
    assert (tmp_path / CUT).read_bytes().endswith(whole[last:-1]), "what was cut is kept"
    fill(tmp_path, 3).abandon()
    assert (tmp_path / NAME).read_bytes() == whole, "the chain goes on as if nothing had been there"


@pytest.mark.parametrize("tail", [b"\0" * 700, b"\0" * 700 + b"\n", b'{"at":1.0,"by":"op\0\0\0"}\n', b"{}\n", b"\n"])
def test_blocks_that_never_reached_the_disk_are_a_torn_tail(tmp_path: Path, tail: bytes) -> None:
    fill(tmp_path, 3).abandon()
    with (tmp_path / NAME).open("ab") as file:
        file.write(tail)
    assert verify(tmp_path).torn == len(tail)
    batches, cut = reopened(tmp_path)
    assert (len(batches), cut) == (3, len(tail))


def test_any_flipped_bit_is_found(tmp_path: Path) -> None:
    fill(tmp_path, 3).close(1.0)
    whole = (tmp_path / NAME).read_bytes()
    assert not any(isinstance(record, Fault) for record in records(io.BytesIO(whole), len(whole)))
    starts = [0] + [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]
    for at in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << bit
            *_, found = records(io.BytesIO(damaged), len(damaged))
            hit = max(seq for seq, start in enumerate(starts) if start <= at)
            assert isinstance(found, Fault)
            assert (found.seq, found.line) == (hit, hit + 1), f"bit {bit} of byte {at}"


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_a_record_broken_in_the_middle_refuses_to_open_and_changes_nothing(tmp_path: Path, number: int) -> None:
    fill(tmp_path, 4).abandon()
    lines = (tmp_path / NAME).read_bytes().splitlines(keepends=True)
    lines[number] = lines[number].replace(b'"at":', b'"at" ')
    (tmp_path / NAME).write_bytes(b"".join(lines))
    for _ in range(2):
        with pytest.raises(JournalError, match=f"broken at record {number}, journal.jsonl line {number + 1}: no JSON"):
            Journal.open(tmp_path, PROJECT)
    assert (tmp_path / NAME).read_bytes() == b"".join(lines)
    assert str(verify(tmp_path)).startswith(f"broken at record {number}, {NAME} line {number + 1}: no JSON")
    assert verify(tmp_path).code == 1


@pytest.mark.parametrize("order", [(0, 2, 1), (0, 1, 1, 2), (0, 2), (1, 2), ()])
def test_records_removed_repeated_or_moved_are_found(tmp_path: Path, order: tuple[int, ...]) -> None:
    fill(tmp_path, 2).abandon()
    lines = (tmp_path / NAME).read_bytes().splitlines(keepends=True)
    (tmp_path / NAME).write_bytes(b"".join(lines[number] for number in order))
    assert verify(tmp_path).state == "broken"
    with pytest.raises(JournalError, match="broken at record"):
        Journal.open(tmp_path, PROJECT)


def test_a_record_of_another_chain_is_found_though_its_number_fits(tmp_path: Path) -> None:
    fill(tmp_path / "ours", 3).abandon()
    fill(tmp_path / "theirs", 3).abandon()
    ours, theirs = ((tmp_path / name / NAME).read_bytes().splitlines(keepends=True) for name in ("ours", "theirs"))
    (tmp_path / "ours" / NAME).write_bytes(b"".join([*ours[:2], *theirs[2:]]))
    assert str(verify(tmp_path / "ours")).startswith("broken at record 2, journal.jsonl line 3: prev is ")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"facts": [{"fact": "Sold", "agent": "a1"}]}, "record 1, journal.jsonl line 2: 'Sold' is no fact"),
        ({"facts": [{"fact": "Repaired", "bytes": 1, "why": "x"}]}, "record 1, journal.jsonl line 2: .*why"),
        ({"facts": {}}, "record 1, journal.jsonl line 2: facts is no list"),
        ({"closed": True}, "record 1, journal.jsonl line 2: closed"),
        ({"seq": 1.0}, "record 1, journal.jsonl line 2: seq is 1.0"),
        ({"note": "x"}, "record 1, journal.jsonl line 2: missing or unknown members: note"),
    ],
)
def test_a_well_sealed_record_of_another_version_is_named_and_kept(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    journal = fill(tmp_path, 0)
    journal.abandon()
    body = {"at": 1.0, "by": "x", "facts": [{"fact": "Repaired", "bytes": 1}], "prev": journal.head, "seq": 1}
    with (tmp_path / NAME).open("ab") as file:
        file.write(seal(body | change)[0])
    with pytest.raises(JournalError, match=said):
        Journal.open(tmp_path, PROJECT)
    assert verify(tmp_path).code == 1


def test_another_format_is_refused_by_its_number(tmp_path: Path) -> None:
    line, _ = seal({"at": 1.0, "format": 2, "prev": NOTHING, "project": PROJECT, "seq": 0})
    (tmp_path / NAME).write_bytes(line)
    with pytest.raises(JournalError, match="written in format 2; this version reads format 1"):
        Journal.open(tmp_path, PROJECT)


def test_verify_reads_beside_a_writer_whose_write_is_under_way(tmp_path: Path) -> None:
    journal = fill(tmp_path, 2)
    with (tmp_path / NAME).open("ab") as file:
        file.write(b'{"at":')
    assert (verify(tmp_path).state, verify(tmp_path).seq) == ("open", 2)
    journal.abandon()
    assert (verify(tmp_path).state, verify(tmp_path).torn) == ("broken", 6)


def test_verify_changes_nothing_and_needs_no_lock_file(tmp_path: Path) -> None:
    fill(tmp_path, 2).close(1.0)
    (tmp_path / LOCK).unlink()
    assert str(verify(tmp_path / NAME)).startswith("whole and closed: 4 records, head ")
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    with pytest.raises(FileNotFoundError):
        verify(tmp_path / "nothing")


def test_a_huge_line_is_found_in_bounded_memory(tmp_path: Path) -> None:
    fill(tmp_path, 1).abandon()
    os.truncate(tmp_path / NAME, 50 * LONGEST)
    tracemalloc.start()
    try:
        verdict = verify(tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (verdict.state, verdict.line, verdict.torn) == ("broken", 3, 0)
    assert "longer than" in verdict.reason
    assert peak < 4 * LONGEST


def test_a_repair_is_for_the_caller_to_put_on_record(tmp_path: Path) -> None:
    fill(tmp_path, 1).abandon()
    with (tmp_path / NAME).open("ab") as file:
        file.write(b"{")
    journal, _, cut = Journal.open(tmp_path, PROJECT)
    journal.write([journal.encode(Batch(1.0, "fleet", (Repaired(cut),)))])
    journal.close(1.0)
    assert reopened(tmp_path)[0][1].facts == (Repaired(1),)
