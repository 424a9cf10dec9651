"""A daemon that many tests share, each with a project of its own in it, as a person's projects do. One that a test had
to end is there again before the next."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import trio

from tests.e2e.stage import Stage
from tests.fleet import DAEMON, Fleet, RefusedError
from tests.house import PATIENCE, below

_RUNNING: list[Shared] = []


def revive() -> None:
    """Before a test counts what there is: a daemon that an earlier one had to end is started again."""
    for daemon in _RUNNING:
        if daemon.process.poll() is not None:
            daemon.start()


class Shared:
    """A daemon in a place of its own."""

    def __init__(self, tier: str) -> None:
        self.tier = tier
        self.place = Path(tempfile.mkdtemp(prefix="fleet-"))
        self.xdg = {"XDG_STATE_HOME": str(self.place / "state"), "XDG_RUNTIME_DIR": str(self.place / "run")}
        self.start()

    def start(self) -> None:
        """Start it, and wait until it serves."""
        for directory in self.xdg.values():
            Path(directory).mkdir(mode=0o700, exist_ok=True)
        ready, told = os.pipe()
        with (self.place / "daemon.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*DAEMON, "--no-warden", "--tier", self.tier],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(told,), start_new_session=True,
                env=os.environ | self.xdg | {"SUPERVISORD_READY_FD": str(told)},
            )  # fmt: skip
        os.close(told)
        assert os.read(ready, 1), (self.place / "daemon.log").read_text()
        os.close(ready)

    def stop(self, number: int) -> None:
        """End it."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
        self.process.wait()

    def close(self) -> None:
        """End it, and take its place away."""
        self.stop(signal.SIGTERM)
        shutil.rmtree(self.place)


@contextmanager
def shared_daemon(tier: str) -> Iterator[Shared]:
    """A daemon of this tier, until nobody shares it any more."""
    daemon = Shared(tier)
    _RUNNING.append(daemon)
    try:
        yield daemon
    finally:
        _RUNNING.remove(daemon)
        daemon.close()


@asynccontextmanager
async def project_in(daemon: Shared, at: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    """A project of one's own in a daemon that others use, too. It is down at the end, with nothing left below it."""
    for name, value in daemon.xdg.items():
        monkeypatch.setenv(name, value)
    found = Stage(Fleet(at, daemon.process, daemon.tier), at)
    try:
        with trio.fail_after(3 * PATIENCE):
            yield found
            with contextlib.suppress(RefusedError):  # it was never up
                await found.fleet.call("down")
            await found.empty()
    finally:
        if daemon.process.poll() is not None or below(daemon.process.pid):
            daemon.stop(signal.SIGKILL)  # others cannot use it any more
