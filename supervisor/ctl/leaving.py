"""Waits for a daemon to have left: it answers first and then ends its agents, as long as their grace may be. It asks
nobody to leave."""

from __future__ import annotations

import os
import select
import time

from supervisor.ctl.errand import Progress
from supervisor.ctl.outcome import TIMED_OUT, Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from supervisor.ctl.call import Client
    from supervisor.ctl.errand import Errand

#: Between two looks at whether it is said how long this takes already, in milliseconds.
_LOOK = 200
#: How long one that has hung up may take to end, in milliseconds; what lives on has hung up for another reason.
_ENDS = 3000


class Watch:
    """On the process behind a connection, from before it is told anything: its number cannot become another's."""

    def __init__(self, client: Client) -> None:
        self.pid = client.pid
        try:
            self._fd = os.pidfd_open(client.pid) if client.pid > 0 else -1
        except ProcessLookupError:
            self._fd = -1

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def ends(self) -> bool:
        """Whether it has ended, or is about to: what hung up may still be closing its books."""
        if self._fd < 0:
            return True
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(_ENDS))

    def gone(self, errand: Errand, instead: str = "") -> None:
        """Return once it has ended. Raises a Failure at the errand's `--timeout`, which says what is not done."""
        if self._fd < 0:
            return
        within = errand.params.get("timeout")
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        with Progress(f"the daemon (pid {self.pid}) to leave", quiet=errand.asked.json) as progress:
            for lasted in _clock():
                left = _LOOK if within is None else min(_LOOK, max(0, int((within - lasted) * 1000)))
                if poll.poll(left):
                    return
                if within is not None and lasted >= within:
                    raise Failure(TIMED_OUT, f"the daemon (pid {self.pid}) still ends its agents{instead}")
                progress.tick(lasted)


def _clock() -> Iterator[float]:
    """The seconds since the first look, at each."""
    begun = time.monotonic()
    while True:
        yield time.monotonic() - begun
