"""The resource limits a child starts with. They are inherited, so they are this process's own for the moment of the
fork: set on the child afterwards they would come too late for what it forks first. It starts nothing."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from supervisor.runtime.containment.marks import LOCKS

#: fork and exec need two fds of their own; other threads may take some in the same moment.
_SPARES = 8


class _Limits:
    def __init__(self) -> None:
        self._given: int | None = None
        self._spare: list[int] = []

    def widen(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if self._given is None and soft != hard:
            self._refill()
            self._given = soft
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    @contextmanager
    def around(self, mark: int) -> Iterator[None]:
        locks = resource.getrlimit(LOCKS)
        with ExitStack() as back:
            if locks[1] == resource.RLIM_INFINITY or mark <= locks[1]:
                back.callback(resource.setrlimit, LOCKS, locks)
                resource.setrlimit(LOCKS, (mark, locks[1]))
            if self._given is not None:
                files = resource.getrlimit(resource.RLIMIT_NOFILE)
                back.callback(self._refill)
                back.callback(resource.setrlimit, resource.RLIMIT_NOFILE, files)
                # All other numbers under the given limit may be in use; these have been kept for this moment.
                while self._spare:
                    os.close(self._spare.pop())
                resource.setrlimit(resource.RLIMIT_NOFILE, (self._given, files[1]))
            yield

    def _refill(self) -> None:
        self._spare = [os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) for _ in range(_SPARES)]


_limits = _Limits()


def widen() -> None:
    """Raise this process's own soft limit of open files to the hard one, once. Children get the one from before."""
    _limits.widen()


around = _limits.around
