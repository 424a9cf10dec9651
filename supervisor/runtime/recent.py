"""The newest batches of a journal, kept for those who ask what happened. Must never grow with what was accepted, however
often: a whole fleet weighs as much as its agents."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from supervisor.core.facts import Accepted
from supervisor.core.spec import Declared
from supervisor.runtime.chain import Batch

#: How many batches are kept at most, and how many facts or accepted agents in them.
BATCHES, WEIGHT = 2000, 10_000


class Recent:
    """As many of the newest batches as fit."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Batch, int]] = deque()
        self._weight = 0

    def __iter__(self) -> Iterator[Batch]:
        return (batch for batch, _ in self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def extend(self, batches: Iterable[Batch]) -> None:
        """Keep these, newest last."""
        for batch in batches:
            self.append(batch)

    def append(self, batch: Batch) -> None:
        """Keep this one, and let go of the oldest; the newest stays whatever its weight."""
        weight = sum(1 + (_agents(fact.fleet.agents) if isinstance(fact, Accepted) else 0) for fact in batch.facts)
        self._kept.append((batch, weight))
        self._weight += weight
        while len(self._kept) > BATCHES or (self._weight > WEIGHT and len(self._kept) > 1):
            self._weight -= self._kept.popleft()[1]


def _agents(level: tuple[Declared, ...]) -> int:
    return len(level) + sum(_agents(declared.children) for declared in level)
