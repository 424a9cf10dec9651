"""A daemon that dies at a moment that was named: the process under the kit's warden. Off the kit's room nothing of it
is ever read or written."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from supervisor import daemon, warden

#: In the room: which moment is armed; the moments that were passed since.
ARMED, PASSED = "armed", "passed"
TARGET = "supervisor.conformance.armed:run"
#: What a program says at any time: it names a batch only where nothing else does.
_CHATTER = ("Spoke", "Spent", "Garbled")
#: What a batch passes only after it was appended.
_LATER = ("written", "flushed", "acted")


class Trap:
    """The hook. A moment is `POINT FACT N`: the N-th batch of this fact that passes the point since it was armed."""

    def __init__(self, room: Path) -> None:
        self._armed = room / ARMED
        self._passed = room / PASSED
        self._wanted = ""
        self._times: Counter[str] = Counter()

    def __call__(self, point: str, what: object) -> None:
        try:
            wanted = self._armed.read_text()
        except FileNotFoundError:
            return
        if wanted != self._wanted:
            self._wanted, self._times = wanted, Counter()
        for about in _about(what):
            name = f"{point} {about}".strip()
            if point in _LATER and self._times[name] >= self._times[f"appended {about}"]:
                continue  # its batch was under way before
            self._times[name] += 1
            moment = f"{name} {self._times[name]}"
            with self._passed.open("a") as passed:
                passed.write(moment + "\n")
            if moment == wanted.partition("\n")[2]:
                self._armed.unlink()
                os.kill(os.getpid(), signal.SIGKILL)


def _about(what: object) -> Iterator[str]:
    """The names of the batches that a moment is about, each by its first fact that says something."""
    if isinstance(what, bytes):
        what = what.splitlines()
    if not isinstance(what, list | tuple):
        yield ""
    elif what and isinstance(what[0], bytes):
        for line in what:
            yield _first([str(fact["fact"]) for fact in json.loads(line)["facts"]])
    else:
        yield _first([type(fact).__name__ for fact in what])


def _first(names: Sequence[str]) -> str:
    return next((name for name in names if name not in _CHATTER), names[0] if names else "nothing")


def run(argv: Sequence[str]) -> int:
    """The daemon, with the room as its first word."""
    room, *options = argv
    return daemon.run(options, Trap(Path(room)))


def main() -> int:
    """The warden over it. All that the daemon imports is there already; no death makes the next life wait, and none is
    one too many."""
    warden.FIRST = warden.MOST = 0.0
    warden.STARTS = sys.maxsize
    return warden.watch(TARGET, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
