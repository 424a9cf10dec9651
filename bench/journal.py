"""How fast the journal takes, loads and verifies batches, and transcripts take output, on this machine's disk."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from supervisor.core.facts import Fact, Spent, Spoke, TurnEnded
from supervisor.core.ledger import Report, Usage
from supervisor.runtime.chain import Batch
from supervisor.runtime.journal import Journal
from supervisor.runtime.segments import NAME
from supervisor.runtime.transcript import Transcript
from supervisor.runtime.verify import verify

BATCHES = 100_000
FACTS: tuple[Fact, ...] = (
    Spent("a17", 1, (Report("call", Usage(1200, 30_000, 900, 450), "msg_01", "s1", "some-model", 12.5),)),
    Spoke("a17", 1, "All tests pass; the change is committed."),
    TurnEnded("a17", 1, "ok", "Done."),
)


def timed(what: str, count: int, unit: str, begun: float) -> None:
    """One line of the report."""
    took = time.perf_counter() - begun
    sys.stdout.write(f"{what:34} {took:8.2f} s {count / took:12,.0f} {unit}/s\n")


def fill(directory: Path, group: int, count: int) -> None:
    """Append `count` batches, `group` of them to a write."""
    journal, _, _ = Journal.open(directory, "bench-00000000")
    begun = time.perf_counter()
    for start in range(0, count, group):
        journal.write([journal.encode(Batch(1.0, "fleet", (FACTS[n % 3],))) for n in range(start, start + group)])
    timed(f"append, {group} to a sync", count, "batches", begun)
    journal.close(1.0)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        for group, count in ((1, 2_000), (16, 20_000), (1_000, BATCHES)):
            fill(Path(name) / str(group), group, count)
        directory = Path(name) / "1000"
        sys.stdout.write(f"journal of {(directory / NAME).stat().st_size / 1e6:.1f} MB\n")
        begun = time.perf_counter()
        journal, batches, _ = Journal.open(directory, "bench-00000000")
        timed("open and load", len(batches), "batches", begun)
        journal.abandon()
        begun = time.perf_counter()
        verdict = verify(directory)
        timed(f"verify ({verdict.state})", verdict.seq, "batches", begun)
        for size in (100, 65_536):
            transcript = Transcript(Path(name) / f"transcript-{size}")
            chunk = b"x" * (size - 1) + b"\n"
            begun = time.perf_counter()
            for _ in range(200_000_000 // size // (100 if size == 100 else 1)):
                transcript.write(chunk)
            timed(f"transcript, chunks of {size}", transcript.end, "bytes", begun)
            transcript.close()


if __name__ == "__main__":
    main()
