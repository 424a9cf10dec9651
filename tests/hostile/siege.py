"""Whether a daemon serves others while someone does his worst: another process asks for its status all the time, and
its memory is watched."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from tests.fleet import Fleet
from tests.house import PATIENCE, slowed

#: The promise, in seconds. The middle of many, because the machine that runs the tests has other work too.
PROMISE = 0.1
#: So many answers are waited for; the daemon may grow by so much while it lasts (bytes).
ANSWERS, GROWTH = 11, 32 * 1024 * 1024

_PROBE = """
import json, socket, sys, time
path, many = sys.argv[1], int(sys.argv[2])
taken = []
while len(taken) < many:
    began = time.monotonic()
    door = socket.socket(socket.AF_UNIX)
    door.connect(path)  # waits for its place, as the client does
    door.settimeout(10)
    door.sendall(b'{"jsonrpc":"2.0","id":1,"method":"status","params":{}}\\n')
    answer = json.loads(door.makefile("rb").readline())
    taken.append(time.monotonic() - began)
    assert "result" in answer, answer
    door.close()
print(json.dumps(taken))
"""


def memory(pid: int, what: str = "VmRSS") -> int:
    """What of a process is in memory now, or was at most (`VmHWM`), in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))


def forget_peak(pid: int) -> None:
    """`VmHWM` counts from now on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


@asynccontextmanager
async def siege(fleet: Fleet, growth: int = GROWTH) -> AsyncIterator[None]:
    """Within this block something hostile begins, and goes on: others must be answered all the while, and the daemon
    must not grow."""
    pid = fleet.process.pid
    before = memory(pid)
    forget_peak(pid)
    argv = [sys.executable, "-ISc", _PROBE, str(fleet.socket), str(ANSWERS)]
    with trio.fail_after(PATIENCE):
        yield
        asked = await trio.run_process(argv, capture_stdout=True, stderr=subprocess.STDOUT, check=False)
    assert asked.returncode == 0, asked.stdout.decode()
    taken = json.loads(asked.stdout)
    assert statistics.median(taken) < PROMISE * slowed(), f"answers took {sorted(taken)} s"
    grown = memory(pid, "VmHWM") - before
    assert grown < growth, f"the daemon grew by {grown >> 20} MiB"


async def faults(fleet: Fleet, *words: str) -> list[str]:
    """What `status` shows of faults, once all of these words stand in it."""
    with trio.fail_after(PATIENCE):
        while True:
            found = (await fleet.call("status"))["faults"]
            shown = [f"{fault['where']}: {fault['what']}" for fault in found]
            if all(any(word in line for line in shown) for word in words):
                return shown
            await trio.lowlevel.checkpoint()


class Attacker:
    """A program beside the fleet, ended with the block."""

    def __init__(self, program: str, *words: str) -> None:
        argv = [sys.executable, "-ISc", "import json, os, select, socket, sys, threading, time\n" + program, *words]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def go(self) -> None:
        """Let it go on."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    async def line(self) -> str:
        """The next line it prints."""
        assert self.process.stdout is not None
        return (await trio.to_thread.run_sync(self.process.stdout.readline, abandon_on_cancel=True)).decode().strip()

    def __enter__(self) -> Attacker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
