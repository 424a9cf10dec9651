"""How fast the journal takes, loads and verifies batches, and transcripts take output, on this machine's disk."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from supervisor.core.apply import apply
from supervisor.core.facts import Born, Fact, Spent, Spoke, Starting, TurnEnded
from supervisor.core.grants import Grant
from supervisor.core.ledger import Report, Usage
from supervisor.core.spec import Spec
from supervisor.core.state import Project
from supervisor.runtime.journal import snapshot
from supervisor.runtime.journal.chain import Batch, Link
from supervisor.runtime.journal.journal import Journal
from supervisor.runtime.journal.segments import read, snapshot_of, snapshots
from supervisor.runtime.journal.verify import verify
from supervisor.runtime.transcript import Transcript

BATCHES = 100_000
BIRTH: tuple[Fact, ...] = (Born("a17", "n", None, Spec("pi"), Grant(tokens=1000)), Starting("a17", 1))
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
    """Append `count` batches, `group` of them to a write, with the segments that they fill."""
    journal, past, _ = Journal.open(directory, "bench-00000000")
    project = past.project()
    journal.write([journal.encode(Batch(1.0, "fleet", BIRTH))])
    for fact in BIRTH:
        apply(project, fact, 1.0)
    begun = time.perf_counter()
    for start in range(0, count, group):
        facts = [FACTS[n % 3] for n in range(start, start + group)]
        for fact in facts:
            apply(project, fact, 1.0)
        drafts = [journal.encode(Batch(1.0, "fleet", (fact,))) for fact in facts]
        state = snapshot.copied(project) if journal.full() else None
        journal.write(drafts)
        if state is not None:
            journal.rotate(state, journal.seq)
    timed(f"apply and append, {group} to a sync", count, "batches", begun)
    journal.close(1.0)
    sizes = [path.stat().st_size for path in directory.glob("*.jsonl")]
    sys.stdout.write(f"{sum(sizes) / 1e6:.1f} MB in {journal.segment} segments\n")


def opened(directory: Path, what: str) -> None:
    """How long the state takes to be there."""
    begun = time.perf_counter()
    journal, past, _ = Journal.open(directory, "bench-00000000")
    past.project()
    timed(what, journal.seq, "batches", begun)
    journal.abandon()


def largest() -> None:
    """A new segment of a project with as many agents as there may be: the loop waits for the copy alone."""
    project = Project("bench-00000000")
    for number in range(1, 3001):
        apply(project, Born(f"a{number}", f"n{number}", None, Spec("pi", task="x" * 200), Grant(tokens=1000)), 1.0)
        apply(project, Starting(f"a{number}", 1), 1.0)
        reports = tuple(Report("call", Usage(1200, 30_000, 900, 450), f"msg_{each}", "s1") for each in range(20))
        apply(project, Spent(f"a{number}", 1, reports), 1.0)
    begun = time.perf_counter()
    copy = snapshot.copied(project)
    timed("copy the state, on the loop", 3000, "agents", begun)
    with tempfile.TemporaryDirectory() as name:
        begun = time.perf_counter()
        snapshot.write(Path(name) / "snapshot.jsonl", copy, Link(1, ""))
        timed("write its snapshot, in a thread", 3000, "agents", begun)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        for group, count in ((1, 2_000), (16, 20_000), (1_000, BATCHES)):
            fill(Path(name) / str(group), group, count)
        directory = Path(name) / "1000"
        opened(directory, "open from a snapshot")
        for number in snapshots(directory):
            snapshot_of(directory, number).unlink()
        opened(directory, "open by replay of all segments")
        begun = time.perf_counter()
        verdict = verify(directory)
        timed(f"verify ({verdict.state})", verdict.seq, "batches", begun)
        begun = time.perf_counter()
        verify(directory, replay=True)
        timed("verify with replay", verdict.seq, "batches", begun)
        begun = time.perf_counter()
        found = [len(read(directory, at, at + 999, 1 << 20)) for at in range(1, verdict.seq, 1000)]
        timed("read by number, 1000 at a time", sum(found), "batches", begun)
        largest()
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
