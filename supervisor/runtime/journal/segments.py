"""The files of one journal: which there are, their records, and the state that a later one starts from. It only reads,
and takes no file for another because of its name alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO

from supervisor.core.apply import apply
from supervisor.core.state import Project
from supervisor.runtime.journal import chain, snapshot
from supervisor.runtime.journal.chain import Batch, Carry, Fault, Genesis, Link, records

#: The segment that is written; those before it are named by their numbers.
NAME = "journal.jsonl"
_NUMBERED = re.compile(r"journal\.([0-9]{6,})\.jsonl")
_SNAPSHOT = re.compile(r"snapshot\.([0-9]{6,})\.jsonl")
_SEQ = re.compile(rb'"seq":([0-9]+),"hash":"[0-9a-f]{64}"\}\n\Z')
_SEQ_LENGTH = 120
#: Where a search ends and reading on begins, in bytes.
_NEAR = 64 * 1024


class LostError(Exception):
    """What is asked for cannot be read from the files at hand: which, where, why."""


def numbered(directory: Path, number: int) -> Path:
    """Where a segment stands that is not written any more."""
    return directory / f"journal.{number:06d}.jsonl"


def snapshot_of(directory: Path, number: int) -> Path:
    """The state that segment `number` starts from."""
    return directory / f"snapshot.{number:06d}.jsonl"


def snapshots(directory: Path) -> list[int]:
    """The segments whose snapshots are here, oldest first."""
    return _numbers(directory, _SNAPSHOT)


def is_part(name: str) -> bool:
    """Whether a file's name says that there was a journal before."""
    return bool(_NUMBERED.fullmatch(name) or _SNAPSHOT.fullmatch(name))


def _numbers(directory: Path, pattern: re.Pattern[str]) -> list[int]:
    found = (pattern.fullmatch(name) for name in os.listdir(directory))
    return sorted(int(match[1]) for match in found if match)


class Files:
    """A journal's files as they are now: the current segment is held open, so that a rotation meanwhile disturbs no
    reader; those before it do not change any more. With `alone` that file is all there is. To be closed."""

    def __init__(self, directory: Path, alone: Path | None = None) -> None:
        self.directory = directory
        self._path = alone or directory / NAME
        self.current = self._path.open("rb")
        try:
            self.end = os.fstat(self.current.fileno()).st_size
            first = next(records(self.current, self.end))
            self.number = 1 if isinstance(first, Fault | Batch) else first.segment
            there = _numbers(directory, _NUMBERED) if alone is None else []
            #: files that claim a place that is the current segment's, or one after it
            self.odd = [each for each in there if each >= self.number and not self._is_current(each)]
            self.oldest = there[0] if there and there[0] < self.number else self.number
        except BaseException:
            self.current.close()
            raise

    def close(self) -> None:
        """Let the current segment go."""
        self.current.close()

    def path(self, number: int) -> Path:
        """Where this segment stands."""
        return self._path if number == self.number else numbered(self.directory, number)

    def records(self, number: int, after: Link | None = None) -> Iterator[Genesis | Carry | Batch | Fault]:
        """One segment's records. Raises FileNotFoundError."""
        if number == self.number:
            self.current.seek(0)
            yield from records(self.current, self.end, after)
            return
        with numbered(self.directory, number).open("rb") as file:
            yield from records(file, os.fstat(file.fileno()).st_size, after)

    def _is_current(self, number: int) -> bool:
        """A death in the middle of a rotation leaves the current segment its next name as well."""
        return os.path.samestat(os.fstat(self.current.fileno()), numbered(self.directory, number).stat())


def state_before(files: Files, carry: Carry) -> tuple[Project, str]:
    """The state that the current segment starts from, and why it had to be made from older segments ("": it had not).
    Raises LostError where they are not there, or broken."""
    number, why, at = files.number, "", carry
    while True:
        try:
            base = snapshot.load(snapshot_of(files.directory, number), at)
            break
        except snapshot.UnusableError as error:
            why = why or str(error)
        number -= 1
        first = _first(files, number, why)
        if isinstance(first, Genesis):
            base = Project(first.project)
            break
        at = first
    link: Link | None = None
    for each in range(number, files.number):
        link = _replay(files, each, link, base)
    if link is not None and (link.seq, link.hash) != (carry.seq, carry.prev):
        raise LostError(f"{files.path(files.number - 1)} ends at record {link.seq}, and {NAME} continues {carry.seq}")
    return base, why


def _first(files: Files, number: int, why: str) -> Genesis | Carry:
    try:
        first = next(files.records(number))
    except FileNotFoundError:
        raise LostError(f"{why}; and {files.path(number).name}, with what came before, is not here") from None
    if isinstance(first, Fault | Batch) or first.segment != number:
        raise LostError(f"{why}; {files.path(number).name} is no segment {number}")
    return first


def _replay(files: Files, number: int, after: Link | None, base: Project) -> Link:
    """Apply one whole segment. Without `after` it is taken by its own word: its snapshot was checked against it."""
    link = after
    for record in files.records(number, after):
        if isinstance(record, Fault):
            raise LostError(f"{files.path(number).name} is broken at line {record.line}: {record.reason}")
        if isinstance(record, Batch):
            for fact in record.facts:
                apply(base, fact, record.at)
        link = Link(record.seq, record.hash)
    assert link is not None  # noqa: S101 - no segment without a first record or a Fault
    return link


# --- by number, for `events`


def read(directory: Path, since: int, until: int, most: int) -> list[Batch]:
    """The batches numbered `since` to `until` that are here, oldest first; no more once they have `most` bytes. Each is
    checked by itself, the chain is `verify`'s to check. Raises LostError."""
    files = Files(directory)
    found: list[Batch] = []
    try:
        for number in range(_holder(files, since), files.number + 1):
            with nullcontext(files.current) if number == files.number else files.path(number).open("rb") as file:
                for line in _lines(file, since):
                    seq = _seq(line)
                    if seq is not None and (seq > until or most <= 0):
                        return found
                    if seq is None or seq >= since:
                        found.append(chain.alone(line))
                        most -= len(line)
    except (OSError, chain.BrokenError) as error:
        raise LostError(f"the journal in {directory} cannot be read: {error}") from error
    finally:
        files.close()
    return found


def _holder(files: Files, since: int) -> int:
    """The segment that holds this record, else the oldest that is here."""
    for number in range(files.number, files.oldest, -1):
        if _first(files, number, f"record {since} cannot be found").seq < since:
            return number
    return files.oldest


def _lines(file: BinaryIO, since: int) -> Iterator[bytes]:
    """A segment's batches from somewhat before record `since` on."""
    low, high = 0, os.fstat(file.fileno()).st_size
    while high - low > _NEAR:
        middle = (low + high) // 2
        file.seek(middle)
        file.readline(chain.LONGEST)  # the rest of some line
        at, seq = file.tell(), _seq(file.readline(chain.LONGEST))
        if seq is None or seq > since:
            high = middle
        else:
            low = at
    file.seek(low)
    if low == 0:
        file.readline(chain.LONGEST)  # the segment's own first record
    while line := file.readline(chain.LONGEST):
        yield line


def _seq(line: bytes) -> int | None:
    found = _SEQ.search(line, max(0, len(line) - _SEQ_LENGTH))
    return int(found[1]) if found else None
