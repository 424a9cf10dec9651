"""What takes long, in a thread: few at once, so that whoever asks for much of it waits for himself and the journal's
writer finds a thread. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import trio

T = TypeVar("T")
#: Two, so that a long one does not keep all others waiting; more would only take the interpreter from the loop.
_FEW = trio.CapacityLimiter(2)


async def aside(work: Callable[[], T]) -> T:
    """What `work` returns or raises."""
    return await trio.to_thread.run_sync(work, limiter=_FEW)
