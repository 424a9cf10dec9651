"""A daemon for the warden to keep: it stands in for the real one, and behaves or misbehaves as its arguments say.

`run([room, way, …])` appends its pid to ROOM/starts, and under ROOM tells what happens to it. `spent N` serves
once, and leaves with N at each later start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from supervisor.runtime import signals
from supervisor.warden import READY, claim


def run(argv: list[str]) -> int:
    """The stand-in's `main`; see the module."""
    room, ways = Path(argv[0]), argv[1:]
    post = claim()
    (room / "post").write_text(f"{post.warden} {READY in os.environ}")
    _note(room, "starts", os.getpid())
    if "leave" in ways:
        return int(ways[ways.index("leave") + 1])
    if "spent" in ways and len(numbers(room, "starts")) > 1:
        return int(ways[ways.index("spent") + 1])
    # A signal that comes before it is waited for is not lost.
    told, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    heard = signals.heard(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in heard:
        signal.signal(number, lambda number, _frame: _note(room, "signals", number))
    if "tree" in ways:
        victims = str(Path(__file__).with_name("victims.py"))
        argv = [sys.executable, "-IS", victims, "child", "grandchild", "session", "double", "deaf"]
        # It holds its stdin until it is killed: nobody closes it.
        agent = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        assert agent.stdout is not None
        _note(room, "tree", agent.pid)
        for _ in range(5):
            _note(room, "tree", int(agent.stdout.readline().split()[1]))
    post.ready()
    _note(room, "ready", os.getpid())
    while True:
        came = os.read(told, 1)[0]
        if "stubborn" not in ways and came in heard and came != signal.SIGHUP:
            return 5


def _note(room: Path, name: str, number: int) -> None:
    with (room / name).open("a") as notes:
        notes.write(f"{int(number)}\n")


def numbers(room: Path, name: str) -> list[int]:
    """What was noted under this name."""
    try:
        return [int(line) for line in (room / name).read_text().split("\n")[:-1]]
    except FileNotFoundError:
        return []
