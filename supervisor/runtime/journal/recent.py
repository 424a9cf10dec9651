"""The newest batches of a project, for `events`: bounded in number and in bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from supervisor.runtime.journal.chain import Batch

#: How many batches are kept, and how much of the journal they may be (bytes).
MOST, BYTES = 2000, 4 * 1024 * 1024


class Recent:
    """Iterates over what is kept, oldest first."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Batch, int]] = deque()
        self._bytes = 0

    def append(self, batch: Batch, size: int) -> None:
        """Keep one more; the newest is kept however large it is."""
        self._kept.append((batch, size))
        self._bytes += size
        while len(self._kept) > MOST or (self._bytes > BYTES and len(self._kept) > 1):
            self._bytes -= self._kept.popleft()[1]

    @property
    def begin(self) -> int:
        """The number of the oldest one kept; 0 without any."""
        return self._kept[0][0].seq if self._kept else 0

    @property
    def end(self) -> int:
        """The number after that of the newest; 0 without any."""
        return self._kept[-1][0].seq + 1 if self._kept else 0

    def __iter__(self) -> Iterator[Batch]:
        return (batch for batch, _ in self._kept)
