"""The journal of one project: the hash-chained record of facts, appended durably by one writer. Must never change a
record that was durable, and never write again once a write has failed."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from attrs import frozen

from supervisor.runtime import points
from supervisor.runtime.chain import Batch, Fault, Genesis, records, seal_batch, seal_genesis
from supervisor.runtime.lock import TakenError, is_taken, take

NAME = "journal.jsonl"
#: What was cut off as a torn tail is kept here: should it ever have been more than that, it is not lost.
CUT = "journal.cut"
LOCK = "journal.lock"


class JournalError(Exception):
    """The journal cannot be opened, or can no longer be written."""


class HeldError(JournalError):
    """Another process writes it."""


class Journal:
    """An open journal. `encode` belongs to the loop; `write` may run in a thread, one call at a time, with the lines
    in the order in which they were encoded."""

    def __init__(self, lock: int, file: int, path: Path, last: Genesis | Batch, size: int) -> None:
        self._lock = lock
        self._file = file
        self.path = path
        self.seq = last.seq if isinstance(last, Batch) else 0  #: the last record encoded
        self.head = last.hash  #: its hash
        self.durable = self.seq  #: the last record known to be on disk
        self.fault: JournalError | None = None  #: why nothing is written any more
        self._size = size
        self._owed: deque[bytes] = deque()

    def __repr__(self) -> str:
        state = f"failed: {self.fault}" if self.fault else f"seq {self.seq}, durable {self.durable}"
        return f"<Journal {self.path} {state}>"

    @classmethod
    def open(cls, directory: Path, project: str) -> tuple[Journal, list[Batch], int]:
        """The journal in `directory` (made with it where there is none), all its batches, and how many bytes of a
        torn tail were cut. Raises JournalError when another process writes it, when a record is broken, or when it
        is another project's."""
        try:
            with contextlib.ExitStack() as undo:
                _make_directory(directory)
                lock = take(directory / LOCK)
                undo.callback(os.close, lock)
                path = directory / NAME
                if not path.exists():
                    _create(path, project)
                file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
                undo.callback(os.close, file)
                with _without_collector():
                    batches, last, size, cut = _load(path, project)
                if cut:
                    _cut(file, path, size)
                undo.pop_all()
        except TakenError as error:
            raise HeldError(f"{directory} is written by {error.holder} already") from error
        except OSError as error:
            raise JournalError(f"journal in {directory}: {error}") from error
        return cls(lock, file, path, last, size), batches, cut

    def encode(self, batch: Batch) -> bytes:
        """The line for `batch` as the next record; afterwards `seq` and `head` are that record's."""
        if self.fault is not None:
            raise self.fault
        line, self.head = seal_batch(batch, self.seq + 1, self.head)
        self.seq += 1
        self._owed.append(line)
        return line

    def write(self, lines: list[bytes]) -> None:
        """Append all lines in one write and make them durable. On JournalError the journal is finished: what was
        not durable has been taken back where the disk allowed, and no later write succeeds."""
        if self.fault is not None:
            raise self.fault
        for line in lines:
            if not self._owed or self._owed.popleft() is not line:
                raise ValueError("lines are written once, in the order in which they were encoded")
        whole = b"".join(lines)
        try:
            self._append(whole)
        except OSError as error:
            self.fault = self._failed(error, len(lines))
            raise self.fault from error
        self._size += len(whole)
        self.durable += len(lines)

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
        written = os.write(self._file, whole)
        if written < len(whole):
            raise OSError(errno.ENOSPC, f"no room: {written} of {len(whole)} bytes were written")
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


State = Literal["closed", "open", "broken"]


@frozen
class Verdict:
    """What `verify` found. `seq` and `head` are those of the last whole record (-1 and "" without any); `line`
    counts from 1 and names the first bad one; `torn` bytes at the end were never durable and are cut at the
    next opening."""

    state: State
    seq: int
    head: str
    project: str = ""
    line: int | None = None
    reason: str = ""
    torn: int = 0

    @property
    def code(self) -> int:
        """The exit code that says it: 0 whole, 1 broken."""
        return 1 if self.state == "broken" else 0

    def __str__(self) -> str:
        if self.state == "broken":
            return f"broken at record {self.seq + 1}, line {self.line}: {self.reason}"
        return f"whole and {self.state}: {self.seq + 1} records, head {self.head}"


def verify(path: Path) -> Verdict:
    """Read a journal (or the one in a directory) record by record and say whether it is whole, without changing
    anything and with or without a writer. What it calls whole, `Journal.open` opens. Raises OSError."""
    path = path / NAME if path.is_dir() else path
    project, closed = "", False
    seq, head = -1, ""
    with path.open("rb") as file:
        end = os.fstat(file.fileno()).st_size
        for record in records(file, end):
            if isinstance(record, Fault):
                if record.torn and is_taken(path.with_name(LOCK)):
                    return Verdict("open", seq, head, project)  # a write is under way
                torn = end - record.offset if record.torn else 0
                reason = f"a torn tail of {torn} bytes: {record.reason}" if torn else record.reason
                return Verdict("broken", seq, head, project, record.line, reason, torn)
            seq, head = seq + 1, record.hash
            if isinstance(record, Genesis):
                project = record.project
            else:
                closed = record.closed
    return Verdict("closed" if closed else "open", seq, head, project)


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


def _load(path: Path, project: str) -> tuple[list[Batch], Genesis | Batch, int, int]:
    batches: list[Batch] = []
    last: Genesis | Batch | None = None
    with path.open("rb") as file:
        end = os.fstat(file.fileno()).st_size
        for record in records(file, end):
            if isinstance(record, Fault):
                if last is None or not record.torn:
                    raise JournalError(
                        f"{path} is broken at record {record.seq}, line {record.line}: {record.reason}. "
                        "Nothing was changed; `supervisorctl verify` shows the same"
                    )
                return batches, last, record.offset, end - record.offset
            if isinstance(record, Batch):
                batches.append(record)
            elif record.project != project:
                raise JournalError(f"{path} is the journal of {record.project}, not of {project}")
            last = record
    assert last is not None  # noqa: S101 - without a first record there was a Fault
    return batches, last, end, 0


def _create(path: Path, project: str) -> None:
    """A first record, whole or not there at all: written aside, then renamed."""
    line, _ = seal_genesis(Genesis(time.time(), project))
    fresh = path.with_suffix(".new")
    _write_file(fresh, os.O_TRUNC, line)
    fresh.rename(path)
    _sync_directory(path.parent)


def _cut(file: int, path: Path, size: int) -> None:
    with path.open("rb") as whole:
        whole.seek(size)
        _write_file(path.with_name(CUT), os.O_APPEND, whole.read())
    os.ftruncate(file, size)
    os.fsync(file)
    _sync_directory(path.parent)


def _write_file(path: Path, flag: int, content: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flag, 0o600)
    with os.fdopen(file, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(file)


def _make_directory(directory: Path) -> None:
    if not directory.is_dir():
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sync_directory(directory.parent)
    directory.chmod(0o700)


def _sync_directory(directory: Path) -> None:
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
