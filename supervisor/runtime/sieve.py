"""Cuts a run's stdout into lines and lets through the few that someone reads. Its work and memory are bounded whatever
comes; it never decodes and never waits."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from supervisor.kinds.kind import HEAD


@frozen
class Overlong:
    """A line that is too long: how it began, as soon as that is known (`size` bytes had come), and at its end once more
    with how many came since and no `head`."""

    size: int
    head: bytes = b""


class Sieve:
    """Lines that hold `mark` pass, in order, and of all that is plain in one chunk its last line with something on it
    (with an empty `mark` every line passes). A line over `limit` bytes is counted and dropped."""

    def __init__(self, mark: bytes, limit: int) -> None:
        self._mark = mark
        self._limit = limit
        self._begun = bytearray()  # a line that has no end yet
        self._skipping = False  # it is too long,
        self._skipped = 0  # and so much of it came since that was said

    def feed(self, chunk: bytes) -> Iterator[bytes | Overlong]:
        """Each line that passes, without its newline. To be read to its end before the next chunk; none is longer than
        the limit."""
        end = chunk.find(b"\n")
        if end < 0:
            yield from self._keep(chunk)
            return
        start = 0
        if self._skipping or self._begun:
            yield from self._keep(chunk[:end])
            yield from self.rest()
            start = end + 1
        last = chunk.rfind(b"\n")
        yield from self._whole(chunk, start, last)
        yield from self._keep(chunk[last + 1 :])

    def rest(self) -> Iterator[bytes | Overlong]:
        """What is left of a line without an end; at the end of the output nothing else will come of it."""
        line, self._begun = bytes(self._begun), bytearray()
        skipped, self._skipped, self._skipping = self._skipped, 0, False
        if skipped:
            yield Overlong(skipped)
        elif line:
            yield line

    def _keep(self, piece: bytes) -> Iterator[Overlong]:
        if self._skipping:
            self._skipped += len(piece)
            return
        self._begun += piece
        if len(self._begun) > self._limit:
            yield Overlong(len(self._begun), bytes(self._begun[:HEAD]))
            self._begun = bytearray()
            self._skipping = True

    def _whole(self, chunk: bytes, start: int, stop: int) -> Iterator[bytes]:
        """The lines of chunk[start:stop]."""
        if not self._mark:
            yield from filter(None, chunk[start:stop].split(b"\n") if start < stop else ())
            return
        # Found by the mark, not by taking lines apart: plain output costs no more than a look through it.
        spans: list[tuple[int, int]] = []
        at = start
        while (hit := chunk.find(self._mark, at, stop)) >= 0:
            begin = max(at, chunk.rfind(b"\n", at, hit) + 1)
            end = chunk.find(b"\n", hit)
            spans.append((begin, end))
            at = end + 1
        before, plain = _last_plain(chunk, start, stop, spans)
        for number, (begin, end) in enumerate(spans):
            if number == before and plain:
                yield plain
            yield chunk[begin:end]
        if before == len(spans) and plain:
            yield plain


def _last_plain(chunk: bytes, start: int, stop: int, spans: list[tuple[int, int]]) -> tuple[int, bytes]:
    """The last line that is none of `spans` and has something on it, and before which of them it stands."""
    end = stop
    for before in range(len(spans), -1, -1):
        begin = spans[before - 1][1] + 1 if before else start
        if begin < end and (words := chunk[begin:end].rstrip()):
            return before, words[words.rfind(b"\n") + 1 :]
        end = spans[before - 1][0] if before else start
    return 0, b""
