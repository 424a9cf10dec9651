"""Whether a journal is whole, told by reading it. It changes nothing and needs no daemon; what it calls whole, a
daemon opens."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Literal

from attrs import evolve, frozen

from supervisor.core.apply import apply
from supervisor.core.state import Project
from supervisor.runtime.journal import snapshot
from supervisor.runtime.journal.chain import Batch, Carry, Fault, Genesis, Link
from supervisor.runtime.journal.journal import LOCK
from supervisor.runtime.journal.lock import is_taken
from supervisor.runtime.journal.segments import NAME, Files, numbered, snapshot_of

State = Literal["closed", "open", "broken"]


@frozen
class Verdict:
    """What `verify` found. `since` and `seq` are the numbers of the first and the last whole record that is here (-1
    without any), `head` is what the next would continue. `file` and `line` (from 1) name the first thing that is not
    as it was written, without a line the file as a whole; `torn` bytes at the end were never durable and are cut at
    the next opening. `notes` say what is not wrong and yet worth knowing."""

    state: State
    seq: int = -1
    head: str = ""
    project: str = ""
    since: int = 0
    segments: int = 1
    file: str = ""
    line: int | None = None
    reason: str = ""
    torn: int = 0
    notes: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """The exit code that says it: 0 whole, 1 broken."""
        return 1 if self.state == "broken" else 0

    def __str__(self) -> str:
        if self.state == "broken":
            where = f"{self.file} line {self.line}" if self.line else self.file
            return f"broken at record {self.seq + 1}, {where}: {self.reason}"
        here = f"{self.seq - self.since + 1} records" + (f" from {self.since} on" if self.since else "")
        many = f" in {self.segments} segments" if self.segments > 1 else ""
        return "; ".join([f"whole and {self.state}: {here}{many}, head {self.head}", *self.notes])


class _BrokenError(Exception):
    def __init__(self, file: str, line: int, reason: str, torn: int = 0) -> None:
        self.verdict = Verdict("broken", file=file, line=line or None, reason=reason, torn=torn)


def verify(path: Path, *, replay: bool = False) -> Verdict:
    """Read the journal in a directory, record by record and segment by segment, beside a writer or without one; or a
    single file. With `replay`, facts are applied too, and must come to each snapshot that was made of them. Raises
    OSError."""
    alone = None if path.is_dir() or path.name == NAME else path
    directory = path if path.is_dir() else path.parent
    with closing(Files(directory, alone)) as files:
        written = alone is None and is_taken(directory / LOCK)
        reading = _Reading(files, alone=alone is not None, replay=replay, written=written)
        try:
            reading.all()
        except _BrokenError as broken:
            return evolve(
                broken.verdict, seq=reading.seq, head=reading.head, project=reading.project, since=reading.since
            )
        return reading.verdict()


class _Reading:
    """One pass over all segments."""

    def __init__(self, files: Files, *, alone: bool, replay: bool, written: bool) -> None:
        self._files = files
        self._written = written
        self._replay = replay
        self._state: Project | None = None
        self._link: Link | None = None
        self._closed = False
        self._start = alone  # whether an opening could begin at a segment that was read
        self._notes: list[str] = []
        self.project, self.since = "", 0

    @property
    def seq(self) -> int:
        return self._link.seq if self._link is not None else -1

    @property
    def head(self) -> str:
        return self._link.hash if self._link is not None else ""

    def verdict(self) -> Verdict:
        count = self._files.number - self._files.oldest + 1
        state: State = "closed" if self._closed else "open"
        return Verdict(state, self.seq, self.head, self.project, self.since, count, notes=tuple(self._notes))

    def all(self) -> None:
        """Raises _BrokenError at the first thing that is not as it was written."""
        files = self._files
        if files.odd and not self._written:  # a writer may have gone on since we looked
            raise _BrokenError(
                numbered(files.directory, files.odd[0]).name, 0, f"{NAME} is segment {files.number} itself"
            )
        if files.oldest > 1:
            gone = f"segments 1 to {files.oldest - 1} are" if files.oldest > 2 else "segment 1 is"
            self._notes.append(f"{gone} not here")
        for number in range(files.oldest, files.number + 1):
            try:
                self._segment(number)
            except FileNotFoundError:
                raise _BrokenError(files.path(number).name, 0, "it is missing") from None
        if not self._start:
            raise _BrokenError(NAME, 1, "no snapshot that this version can use is here, nor the first segment")

    def _segment(self, number: int) -> None:
        for line, record in enumerate(self._files.records(number, self._link), 1):
            if isinstance(record, Fault):
                self._fault(number, record)
                return
            if isinstance(record, Batch):
                self._closed = record.closed
                self._apply(record)
            else:
                self._begin(number, line, record)
            self._link = Link(record.seq, record.hash)

    def _apply(self, batch: Batch) -> None:
        if self._state is not None:
            for fact in batch.facts:
                apply(self._state, fact, batch.at)

    def _fault(self, number: int, fault: Fault) -> None:
        last = number == self._files.number
        if fault.torn and last and self._written:
            self._closed = False
            return  # a write is under way
        torn = self._files.end - fault.offset if fault.torn and last else 0
        reason = f"a torn tail of {torn} bytes: {fault.reason}" if torn else fault.reason
        raise _BrokenError(self._files.path(number).name, fault.line, reason, torn)

    def _begin(self, number: int, line: int, first: Genesis | Carry) -> None:
        name = self._files.path(number).name
        if first.segment != number:
            raise _BrokenError(name, line, f"it is segment {first.segment}")
        if self.project and first.project != self.project:
            raise _BrokenError(name, line, f"it is of {first.project}, not of {self.project}")
        if isinstance(first, Genesis):
            self._start, self._state = True, Project(first.project) if self._replay else None
        else:
            self._compare(number, first)
            self._snapshot(number, first)
        if self._link is None:
            self.since = first.seq + 1 if isinstance(first, Carry) else 0
        self.project = first.project

    def _compare(self, number: int, first: Carry) -> None:
        if self._state is None:
            return
        if first.shape != snapshot.SHAPE:
            self._notes.append(f"the snapshot of segment {number} is another version's: not compared")
        elif snapshot.digest(self._state, Link(first.seq, first.prev)) != first.snapshot:
            name = snapshot_of(self._files.directory, number).name
            raise _BrokenError(name, 0, "the facts before it come to another state")

    def _snapshot(self, number: int, first: Carry) -> None:
        path, newest = snapshot_of(self._files.directory, number), number == self._files.number
        try:
            wrong = snapshot.check(path, first)
        except FileNotFoundError:
            if newest and self._start:
                self._notes.append(f"{path.name} is not here: the next opening replays what was before")
            return
        if wrong:
            raise _BrokenError(path.name, 0, wrong)
        self._start = self._start or first.shape == snapshot.SHAPE
        if self._replay and self._state is None and first.shape == snapshot.SHAPE:
            self._state = snapshot.load(path, first)
