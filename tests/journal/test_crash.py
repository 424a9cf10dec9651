"""The journal against real deaths and real disks that are full."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from supervisor.core.facts import Spoke
from supervisor.runtime.journal.chain import Batch
from supervisor.runtime.journal.journal import Journal, JournalError
from supervisor.runtime.journal.verify import verify
from tests.house import eventually_sync

PROJECT = "demo-0123abcd"

WRITER = """
import sys, pathlib
from supervisor.core.facts import Spoke
from supervisor.runtime.journal.chain import Batch
from supervisor.runtime.journal.journal import Journal
journal, _, cut = Journal.open(pathlib.Path(sys.argv[1]), "demo-0123abcd")
print("open", journal.seq, cut, flush=True)
while True:
    lines = [journal.encode(Batch(1.0, "fleet", (Spoke("a1", 1, "x" * 400_000),))) for _ in range(3)]
    journal.write(lines)
    print("durable", journal.durable, flush=True)
"""

FULL = """
import resource, sys, pathlib
from supervisor.core.facts import Spoke
from supervisor.runtime.journal.chain import Batch
from supervisor.runtime.journal.journal import Journal, JournalError
from supervisor.runtime.journal.verify import verify
directory = pathlib.Path(sys.argv[1])
if sys.argv[2] == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
journal, _, _ = Journal.open(directory, "demo-0123abcd")
def write():
    lines = [journal.encode(Batch(1.0, "fleet", (Spoke("a1", 1, "x" * 1000),))) for _ in range(2)]
    journal.write(lines)
for _ in range(1000):
    try:
        write()
    except JournalError as error:
        print(error)
        break
for attempt in (write, lambda: journal.write([])):
    try:
        attempt()
        print("wrote on")
    except JournalError as error:
        print(error is journal.fault)
journal.close(2.0)
print(journal.durable, verify(directory))
"""


def test_no_acknowledged_record_is_lost_when_the_writer_is_killed_mid_append(tmp_path: Path) -> None:
    acknowledged = 0
    for life in range(1, 6):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout
            word, seq, _cut = writer.stdout.readline().split()
            assert word == "open"
            assert int(seq) >= acknowledged
            for _ in range(life):
                acknowledged = int(writer.stdout.readline().split()[1])
            writer.kill()
            for line in writer.stdout:
                if line.endswith("\n"):
                    acknowledged = int(line.split()[1])
        verdict = verify(tmp_path)
        assert verdict.state == "open" or verdict.torn, verdict
        assert verdict.seq >= acknowledged
    journal, past, _ = Journal.open(tmp_path, PROJECT)
    assert len(past.batches) >= acknowledged > 0
    journal.close(1.0)
    assert verify(tmp_path).state == "closed"


@pytest.mark.parametrize("disk", ["limit", "small disk"])
def test_a_full_disk_ends_the_journal_and_leaves_it_whole(tmp_path: Path, disk: str) -> None:
    command = [sys.executable, "-c", FULL, str(tmp_path), disk]
    if disk == "small disk":
        mounted = [
            "unshare",
            "--mount",
            "sh",
            "-c",
            'mount -t tmpfs -o size=96k tmpfs "$1" && shift && exec "$@"',
            "sh",
        ]
        if not shutil.which("unshare") or subprocess.run([*mounted, tmp_path, "true"], check=False).returncode != 0:
            pytest.skip("a small disk needs unshare and the right to mount (root)")
        command = [*mounted, str(tmp_path), *command]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    said, *attempts, last = ran.stdout.splitlines()
    durable = int(last.split()[0])
    assert durable > 10
    assert f"records {durable + 1} to {durable + 2} are not durable" in said
    assert "is taken back" in said
    assert attempts == ["True", "True"], "nothing is written after a failure"
    assert f"whole and open: {durable + 1} records" in last


def test_a_disk_that_cannot_sync_ends_the_journal(tmp_path: Path) -> None:
    journal, _, _ = Journal.open(tmp_path, PROJECT)
    line = journal.encode(Batch(1.0, "fleet", (Spoke("a1", 1, "x"),)))
    ours, theirs = os.pipe()
    try:
        os.dup2(theirs, journal._file, inheritable=False)  # it takes the write, and cannot be synced
        with pytest.raises(
            JournalError, match="records 1 to 1 are not durable, what was written of them is left behind"
        ):
            journal.write([line])
        assert os.read(ours, 1 << 16).startswith(line)
        with pytest.raises(JournalError, match="not durable"):
            journal.encode(Batch(1.0, "fleet", ()))
        with pytest.raises(JournalError, match="not durable"):
            journal.write([line])
        assert journal.durable == 0
    finally:
        os.close(ours)
        os.close(theirs)
        journal.close(1.0)


def test_the_death_of_a_writer_lets_its_lock_go(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout
        writer.stdout.readline()
        with pytest.raises(JournalError, match=f"process {writer.pid} already"):
            Journal.open(tmp_path, PROJECT)
        writer.kill()
    journal = eventually_sync(lambda: Journal.open(tmp_path, PROJECT)[0])
    journal.abandon()
