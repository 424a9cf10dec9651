"""The journal of one project: the hash-chained record of facts, appended durably by one writer. Must never change a
record that was durable, and never write again once a write has failed."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from supervisor.core.apply import apply
from supervisor.core.state import Project
from supervisor.runtime import points
from supervisor.runtime.journal import chain, disk, rotation, segments
from supervisor.runtime.journal.chain import Batch, Carry, Fault, Genesis, Link, seal_genesis
from supervisor.runtime.journal.lock import TakenError, hold, take
from supervisor.runtime.journal.segments import NAME, Files

#: What was cut off as a torn tail is kept here: should it ever have been more than that, it is not lost.
CUT = "journal.cut"
LOCK = "journal.lock"
#: A segment that has grown to so many bytes is followed by another. Its replay is what a start waits for: some tenths
#: of a second.
SEGMENT = 4 * 1024 * 1024


class JournalError(Exception):
    """The journal cannot be opened, or can no longer be written."""


class HeldError(JournalError):
    """Another process writes it."""


@frozen
class Past:
    """What a journal held when it was opened: the state that its newest segment starts from, and what came after."""

    base: Project
    batches: list[Batch]

    def project(self) -> Project:
        """The state now. To be asked for once: it is the base that changes."""
        for batch in self.batches:
            for fact in batch.facts:
                apply(self.base, fact, batch.at)
        return self.base


class Journal:
    """An open journal. `encode` and `full` belong to the loop; `write` and `rotate` may run in a thread, one call at a
    time, `write` with the drafts in the order in which they were encoded."""

    def __init__(self, lock: int, file: int, path: Path, last: Link, size: int) -> None:
        self._lock = lock
        self._file = file
        self.path = path
        self.seq = last.seq  #: the last record encoded
        self.fault: JournalError | None = None  #: why nothing is written any more
        self.trouble = self.lost = ""  #: why a new segment is put off or was needed; what someone took away
        self.segment = 1  #: the number of the segment that is written
        self._last = last  # on disk
        self._project = ""
        self._limit = SEGMENT
        self._due = SEGMENT  # the size at which the next segment is to follow
        self._size = size
        self._owed: deque[bytes] = deque()

    def __repr__(self) -> str:
        state = f"failed: {self.fault}" if self.fault else f"seq {self.seq}, durable {self.durable}"
        return f"<Journal {self.path} {state}>"

    @property
    def durable(self) -> int:
        """The last record known to be on disk."""
        return self._last.seq

    @property
    def head(self) -> str:
        """What the next record continues: with `durable`, all that need be kept elsewhere to know this journal by."""
        return self._last.hash

    @classmethod
    def open(cls, directory: Path, project: str, segment: int = SEGMENT) -> tuple[Journal, Past, int]:
        """The journal in `directory` (made with it where there is none), what it holds, and how many bytes of a torn
        tail were cut. Raises JournalError when another process writes it, when a record is broken or missing, or when
        it is another project's."""
        try:
            with contextlib.ExitStack() as undo:
                disk.make_directory(directory)
                lock = take(directory / LOCK)
                undo.callback(os.close, lock)
                path = directory / NAME
                if not path.exists():
                    _create(path, project)
                file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
                undo.callback(os.close, file)
                files = Files(directory)
                with contextlib.closing(files), _without_collector():
                    found = _load(files, project)
                if found.cut:
                    _cut(file, path, found.size)
                rotation.tidy(directory, found.first.segment)
                undo.pop_all()
        except TakenError as error:
            raise HeldError(f"{directory} is written by {error.holder} already") from error
        except segments.LostError as error:
            raise JournalError(
                f"{directory}: {error}. Nothing was changed; `supervisorctl verify` shows more"
            ) from error
        except OSError as error:
            raise JournalError(f"journal in {directory}: {error}") from error
        journal = cls(lock, file, path, found.last, found.size)
        journal._begin(found, project, segment)
        return journal, Past(found.base, found.batches), found.cut

    def _begin(self, found: _Found, project: str, limit: int) -> None:
        self.segment, self.trouble = found.first.segment, found.why
        self._project, self._limit = project, limit
        # Without a snapshot every opening replays what was before: make one with the next write.
        self._due = 0 if found.why else limit

    def encode(self, batch: Batch) -> bytes:
        """The draft of `batch` as the next record; afterwards `seq` is that record's number."""
        if self.fault is not None:
            raise self.fault
        draft = chain.draft(batch)
        self.seq += 1
        self._owed.append(draft)
        return draft

    def write(self, drafts: list[bytes]) -> None:
        """Append all drafts as lines in one write and make them durable. On JournalError the journal is finished: what
        was not durable has been taken back where the disk allowed, and no later write succeeds."""
        if self.fault is not None:
            raise self.fault
        link, lines = self._last, []
        for draft in drafts:
            if not self._owed or self._owed.popleft() is not draft:
                raise ValueError("drafts are written once, in the order in which they were encoded")
            line, link = chain.finish(draft, link)
            lines.append(line)
        whole = b"".join(lines)
        try:
            self._append(whole)
        except OSError as error:
            self.fault = self._failed(error, len(lines))
            raise self.fault from error
        self._size += len(whole)
        self._last = link

    def full(self) -> bool:
        """Whether `rotate` is to follow the next write, with the state after it: this is large, or was taken away."""
        full = self._size + sum(map(len, self._owed)) >= self._due
        return self.fault is None and (full or disk.is_away(self._file, self.path))

    def rotate(self, state: Project, seq: int) -> None:
        """Begin another segment after record `seq`, the last one written, with this state. A disk that does not take it
        only puts it off, and `trouble` says why. Raises JournalError where nobody can say any more which segment is on
        disk, or none is; what was durable is so still, and no later write succeeds."""
        if self.fault is not None:
            raise self.fault
        if self.durable != seq or state.id != self._project:
            raise ValueError(f"the state after record {seq} is no state after record {self.durable}")
        away = disk.is_away(self._file, self.path)
        try:
            if away:
                disk.make_directory(self.path.parent)
                self._lock = hold(self._lock, self.path.with_name(LOCK))
            fresh = rotation.rotate(self.path.parent, self.segment + 1, state, self._last)
        except rotation.UnsureError as error:
            self.fault = JournalError(f"{self.path}: {error}; durable up to record {seq}")
            raise self.fault from error
        except Exception as error:  # noqa: BLE001  # even a state that cannot be written is no reason to end
            if away:
                self.fault = JournalError(f"{self.path} was taken away, and cannot be begun anew: {error}")
                raise self.fault from None
            self.trouble = f"no segment {self.segment + 1} yet: {error}"
            self._due = self._size + max(1, self._limit // 8)
            return
        os.close(self._file)
        self._file, self._size = fresh.file, fresh.size
        self._last, self.segment, self.trouble = fresh.link, self.segment + 1, ""
        self.lost = f"{self.path} was taken away; its facts are lost, the state is whole" if away else self.lost
        # Never more work for snapshots than for facts, however large the state is.
        self._due = max(self._limit, fresh.snapshot)

    def close(self, at: float) -> None:
        """End an orderly life: a closing record, then the lock is let go. After a fault only the latter."""
        try:
            if self.fault is None:
                self.write([*self._owed, self.encode(Batch(at, "fleet", (), closed=True))])
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go without a closing record, as a death of the process would."""
        if self._file >= 0:
            self.fault = self.fault or JournalError(f"{self.path} is closed")
            os.close(self._file)
            os.close(self._lock)
            self._file = self._lock = -1

    def _append(self, whole: bytes) -> None:
        disk.append(self._file, whole)
        points.reach("written", whole)
        os.fdatasync(self._file)

    def _failed(self, error: OSError, count: int) -> JournalError:
        try:
            # What a failed fsync left in the page cache reads well and may never reach the disk: take it back, so
            # that the next opener does not build on it.
            os.ftruncate(self._file, self._size)
            os.fsync(self._file)
            left = "taken back"
        except OSError as second:
            left = f"left behind ({second.strerror})"
        first = self.durable + 1
        return JournalError(
            f"{self.path}: {error.strerror}: records {first} to {first + count - 1} are not durable, "
            f"what was written of them is {left}; durable up to record {self.durable}"
        )


@frozen
class _Found:
    """The newest segment, read: `size` is that of its whole records, `cut` what follows them; `why` the state had to be
    made from older segments."""

    first: Genesis | Carry
    base: Project
    batches: list[Batch]
    last: Link
    size: int
    cut: int
    why: str


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Everything that is loaded stays: to look through it for garbage again and again takes as long as loading it."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def _load(files: Files, project: str) -> _Found:
    if files.odd:
        odd = segments.numbered(files.directory, files.odd[0]).name
        raise segments.LostError(f"{odd} is there, and {NAME} is segment {files.number} itself")
    batches: list[Batch] = []
    first: Genesis | Carry | None = None
    size, last = files.end, Link(0, "")
    for record in files.records(files.number):
        if isinstance(record, Fault):
            if first is None or not record.torn:
                raise segments.LostError(f"broken at record {record.seq}, {NAME} line {record.line}: {record.reason}")
            size = record.offset
            break
        if isinstance(record, Batch):
            batches.append(record)
        elif record.project != project:
            raise JournalError(f"{files.directory / NAME} is the journal of {record.project}, not of {project}")
        else:
            first = record
        last = Link(record.seq, record.hash)
    assert first is not None  # noqa: S101 - without a first record there was a Fault
    base, why = (Project(project), "") if isinstance(first, Genesis) else segments.state_before(files, first)
    return _Found(first, base, batches, last, size, files.end - size, why)


def _create(path: Path, project: str) -> None:
    """A first record, whole or not there at all: written aside, then renamed."""
    left = [name for name in os.listdir(path.parent) if segments.is_part(name)]
    if left:
        raise segments.LostError(f"{NAME} is missing, and {min(left)} is there")
    line, _ = seal_genesis(Genesis(time.time(), project))
    fresh = path.with_suffix(".new")
    disk.write_file(fresh, os.O_TRUNC, line)
    fresh.rename(path)
    disk.sync_directory(path.parent)


def _cut(file: int, path: Path, size: int) -> None:
    with path.open("rb") as whole:
        whole.seek(size)
        disk.write_file(path.with_name(CUT), os.O_APPEND, whole.read())
    os.ftruncate(file, size)
    os.fsync(file)
    disk.sync_directory(path.parent)
