"""What an agent printed, kept under a cap in two files and read back by line. Must never fail or hold up the agent: a
disk that takes no more is counted and said."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import trio

#: Most bytes that a transcript keeps, in two files.
CAP = 16 * 1024 * 1024
#: A longer line is shown by its beginning, and what is missing is counted.
WIDTH = 256 * 1024
#: How much is read at once.
CHUNK = 64 * 1024
_NEWLINE = ord("\n")
#: What transcripts leave free on their disk, and how much they store before they look at it again (bytes). Below twice
#: as much no new work is taken (`projects.LOW_DISK`).
KEPT, LOOK = 16 * 1024 * 1024, 1024 * 1024


class Room:
    """What all transcripts together may still take of the disk: not the last of it, which is the journal's. A daemon
    that cannot write its journal ends, and no agent may bring that about by what it prints."""

    def __init__(self) -> None:
        self._left = 0  # bytes that may be stored before the disk is looked at again

    def take(self, file: int, size: int) -> None:
        """So many bytes are to be stored. Raises OSError where there is no room for them."""
        if size > self._left:
            self._left = 0
            disk = os.fstatvfs(file)
            free = disk.f_bavail * disk.f_frsize - KEPT
            if free < size:
                raise OSError(errno.ENOSPC, f"the last {KEPT >> 20} MiB of its disk are kept for the journal")
            self._left = min(free, LOOK)
        self._left -= size


#: One for the process: what agents print lies on one disk.
ROOM = Room()


class Transcript:
    """The writer. Bytes are kept as they come, in `path` and, before those, in `path.1`; what is older is gone, and
    counted. Offsets count from the first byte that was there when the transcript was opened."""

    def __init__(self, path: Path, cap: int = CAP) -> None:
        self.path = path
        self.dropped = 0  #: bytes let go to stay under the cap
        self.lost = 0  #: bytes never stored: the disk did not take them
        self.fault = ""  #: why, the last time
        self.closed = False
        self._half = max(1, cap // 2)
        self._news = trio.Event()
        self._file = -1
        self._size = 0
        self._older = _size(_before(path))
        self._base = self._older  # the offset of the first byte in `path`
        self._ended = True  # the last byte stored is a newline
        self._cut = False  # it is not, and what comes next belongs to another line
        try:
            self._open()
            self._cut = not self._ended
        except OSError as error:
            self._fail(error)

    def __repr__(self) -> str:
        return f"<Transcript {self.path} {self.begin}..{self.end}, lost {self.lost}, fault {self.fault!r}>"

    @property
    def begin(self) -> int:
        """The offset of the oldest byte that is still there."""
        return self._base - self._older

    @property
    def end(self) -> int:
        """The offset behind the newest byte."""
        return self._base + self._size

    def write(self, data: bytes) -> None:
        """Keep `data`. Never raises: what the disk does not take is `lost`."""
        whole = b"\n" + data if self._cut and data else data
        at = 0
        try:
            while at < len(whole):
                at += self._put(whole, at)
                self._cut = False
        except OSError as error:
            self._fail(error)
            self.lost += min(len(data), len(whole) - at)
            self._cut = self._size > 0 and not self._ended
        self._tell()

    def read(self, at: int) -> tuple[int, bytes]:
        """Some bytes from offset `at` on, and where they begin: later than `at` if those are gone. Empty: none yet."""
        at = max(at, self.begin)
        with contextlib.suppress(OSError):
            if at >= self._base:
                return at, _some(self.path, at - self._base, CHUNK)
            if found := _some(_before(self.path), at - self.begin, min(CHUNK, self._base - at)):
                return at, found
        return max(at, self._base), b""  # the file is away: go on behind it

    async def news(self) -> None:
        """Wait until something was written, or the transcript is closed."""
        if not self.closed:
            await self._news.wait()

    def close(self) -> None:
        """Let the file go; those who follow come to the end."""
        self.closed = True
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._tell()

    def _tell(self) -> None:
        if self._news.statistics().tasks_waiting:
            self._news.set()
            self._news = trio.Event()

    def _put(self, data: bytes, at: int) -> int:
        """Store what fits of `data` from `at` on, preferably whole lines; returns how much. Nothing fits: rotate."""
        if self._file < 0:
            self._open()
        stop = at + max(0, self._half - self._size)
        if stop < len(data):
            whole = data.rfind(b"\n", at, stop) + 1
            if whole > 0 or self._size > 0:
                stop = whole or at
        if stop <= at:
            self._rotate()
            return 0
        ROOM.take(self._file, stop - at)
        stored = os.write(self._file, memoryview(data)[at:stop])
        if stored:
            self._size += stored
            self._ended = data[at + stored - 1] == _NEWLINE
        return stored

    def _rotate(self) -> None:
        with contextlib.suppress(FileNotFoundError):  # someone took the file away: as good as rotated
            self.path.rename(_before(self.path))
        os.close(self._file)
        self._file = -1
        self.dropped += self._older
        self._older, self._base, self._size = self._size, self._base + self._size, 0
        self._open()

    def _open(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._file).st_size
        self._ended = self._size == 0 or os.pread(self._file, 1, self._size - 1) == b"\n"

    def _fail(self, error: OSError) -> None:
        self.fault = f"{self.path}: {error.strerror} (uid {os.getuid()})"


class Follower:
    """Reads a transcript as it grows, whole lines only; rotation does not disturb it. One that is too slow loses what
    is no longer kept, counted in `skipped`."""

    def __init__(self, transcript: Transcript, at: int | None = None) -> None:
        self.skipped = 0
        self._transcript = transcript
        self._at = transcript.end if at is None else at
        self._lines = Lines()

    async def lines(self) -> list[bytes]:
        """Wait for the next lines; none when the transcript is closed and read to its end."""
        while True:
            at, data = self._transcript.read(self._at)
            if at > self._at:
                self.skipped += at - self._at
                self._lines = Lines()
            self._at = at + len(data)
            if found := self._lines.feed(data):
                await trio.lowlevel.checkpoint()
                return found
            if not data and self._transcript.closed:
                return self._lines.rest()
            if data:
                await trio.lowlevel.checkpoint()
            else:
                await self._transcript.news()


class Lines:
    """Cuts bytes into lines in bounded memory: of a line longer than `width` its beginning is kept."""

    def __init__(self, width: int = WIDTH) -> None:
        self._width = width
        self._begun = bytearray()
        self._over = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that end in `data`, without their newlines."""
        *whole, rest = data.split(b"\n")
        found = []
        for piece in whole:
            self._keep(piece)
            found.append(self._take())
        self._keep(rest)
        return found

    def rest(self) -> list[bytes]:
        """The last line, if it has no end."""
        return [self._take()] if self._begun else []

    def _keep(self, piece: bytes) -> None:
        room = self._width - len(self._begun)
        self._begun += piece[:room]
        self._over += max(0, len(piece) - room)

    def _take(self) -> bytes:
        line = bytes(self._begun) + (b" [%d bytes more]" % self._over if self._over else b"")
        self._begun.clear()
        self._over = 0
        return line


def tail(path: Path, count: int, width: int = WIDTH) -> list[bytes]:
    """The last `count` lines of a transcript, with or without a writer. A line in the making counts as one."""
    blocks: list[bytes] = []
    ends = 0
    for block in _backwards(path):
        # the newline that ends the last line is no beginning of another
        ends += block.count(b"\n") - (not blocks and block.endswith(b"\n"))
        blocks.append(block)
        if ends >= count:
            break
    lines = Lines(width)
    found = [*lines.feed(b"".join(reversed(blocks))), *lines.rest()]
    return found[-count:] if count > 0 else []


def text(line: bytes) -> str:
    """A line for a person, whatever the bytes are and whatever the locale is."""
    return line.decode("utf-8", "replace")


def _backwards(path: Path) -> Iterator[bytes]:
    with contextlib.ExitStack() as opened:
        inodes = set()
        for each in (path, _before(path)):
            try:
                file = opened.enter_context(each.open("rb"))
            except FileNotFoundError:
                continue
            status = os.fstat(file.fileno())
            if status.st_ino in inodes:
                continue  # it was rotated between the two openings
            inodes.add(status.st_ino)
            at = status.st_size
            while at > 0:
                start = max(0, at - CHUNK)
                yield os.pread(file.fileno(), at - start, start)
                at = start


def _before(path: Path) -> Path:
    return path.with_name(path.name + ".1")


def _some(path: Path, at: int, limit: int) -> bytes:
    with path.open("rb", buffering=0) as file:
        return os.pread(file.fileno(), limit, at)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
