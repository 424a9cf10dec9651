"""A daemon with its warden in a place of its own, for as many lives as it takes: told at which moment to die, watched
until it is dead, and asked again when the next one serves. It judges nothing."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from supervisor.conformance.armed import ARMED, PASSED
from supervisor.ctl.call import connect
from supervisor.ctl.outcome import NO_DAEMON, Failure
from supervisor.doors import paths

T = TypeVar("T")
Agents = dict[str, dict[str, Any]]

#: How long (seconds) anything may take that has to come; a busy machine is no fault.
PATIENCE = 30.0
_STEP = 0.01
#: States in which an agent does nothing more by itself.
SETTLED = ("standing", "waiting", "parked", "stopped", "gone")


class KitError(Exception):
    """The kit could not do its part: what it waited for did not come."""


class Lives:
    """`pid` is the daemon that served last."""

    def __init__(self, at: Path, tier: str, environ: Mapping[str, str]) -> None:
        self.at = at
        self.environ = {
            **environ, "XDG_STATE_HOME": str(at / "state"), "XDG_RUNTIME_DIR": str(at / "run"),
            "XDG_CONFIG_HOME": str(at / "config"),
        }  # fmt: skip
        self.state = Path(paths.state_dir(self.environ, "/"))
        self._socket = paths.control_socket(paths.runtime_dirs(self.environ, os.geteuid(), "/")[0])
        self._log = at / "daemon.log"
        self.pid = 0
        for name in ("state", "run", "config"):
            (at / name).mkdir(mode=0o700, exist_ok=True)
        with self._log.open("ab") as log:
            self.warden = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-m", "supervisor.conformance.armed", str(at), "--tier", tier],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environ, start_new_session=True,
            )  # fmt: skip

    # --- asking

    def call(self, method: str, **params: Any) -> Any:
        """One request. Raises Failure: refused, or no daemon."""
        with connect([self._socket], os.geteuid(), PATIENCE) as client:
            self.pid = client.pid
            return client.call(method, {"cwd": str(self.at), **params}, PATIENCE)

    def up(self, toml: str) -> None:
        """Accept this content as soon as a daemon serves."""
        file = self.at / paths.FILE
        file.write_text(toml, "utf-8")
        params = {"file": str(file), "content": toml, "path": self.environ.get("PATH", os.defpath)}
        self.until(lambda: self._serves(lambda: self.call("up", **params)), "the daemon to take the file")

    def tree(self) -> Agents:
        """All agents by id, each with its parent's."""
        return {agent["id"]: agent for agent in _walk(self.call("tree")["agents"], None)}

    def settled(self) -> Agents:
        """The tree, once a daemon serves and no agent does anything more by itself."""

        def look() -> Agents | None:
            agents = self._serves(self.tree)
            calm = agents is not None and all(agent["state"] in SETTLED for agent in agents.values())
            return agents if calm else None

        return self.until(look, "the fleet to settle")

    def project(self) -> Path:
        """The directory of the project's journal."""
        (found,) = [path.parent for path in self.state.glob("*/journal.jsonl") if path.parent.name != "daemon"]
        return found

    @staticmethod
    def _serves(ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except Failure:
            return None

    # --- dying

    def arm(self, moment: str) -> None:
        """Die at this moment, once; "" only notes what is passed."""
        (self.at / PASSED).unlink(missing_ok=True)
        fresh = self.at / (ARMED + ".new")
        fresh.write_text(f"{time.monotonic_ns()}\n{moment}")
        fresh.rename(self.at / ARMED)

    def disarm(self) -> list[str]:
        """The moments that were passed since, in order."""
        (self.at / ARMED).unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            return (self.at / PASSED).read_text().splitlines()
        return []

    def died(self, within: float) -> bool:
        """Wait for the death at the armed moment; False where it does not come."""
        with contextlib.suppress(KitError):
            self.until(lambda: not (self.at / ARMED).exists(), "the moment", within)
            return True
        self.disarm()
        return False

    def kill(self) -> None:
        """End the daemon that serves, by SIGKILL."""
        handle = os.pidfd_open(self.pid)
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            poll.poll()
        finally:
            os.close(handle)

    def attempt(self, method: str, **params: Any) -> Any:
        """Ask, and take no answer for one: the daemon may die of it. A refusal is raised."""
        try:
            return self.call(method, **params)
        except Failure as failure:
            if failure.code != NO_DAEMON:
                raise
            return None

    # --- waiting and ending

    def until(self, look: Callable[[], T | None], what: str, within: float = PATIENCE) -> T:
        """Wait until `look` gives something."""
        over = time.monotonic() + within
        while not (found := look()):
            if self.warden.poll() is not None:
                raise KitError(f"the warden ended with {self.warden.returncode}: {self.said()}")
            if time.monotonic() > over:
                raise KitError(f"waited {within:g} s for {what}: {self.said()}")
            time.sleep(_STEP)
        return found

    def said(self) -> str:
        """The last words of warden and daemon."""
        return self._log.read_text(errors="replace")[-2000:].strip() or "nothing was said"

    def close(self) -> None:
        """End it all in order; by force where that does not come."""
        self.disarm()
        if self.warden.poll() is None:
            self.warden.send_signal(signal.SIGTERM)
            try:
                self.warden.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(self.warden.pid, signal.SIGKILL)
                self.warden.wait()

    def __enter__(self) -> Lives:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _walk(agents: list[dict[str, Any]], parent: str | None) -> Iterator[dict[str, Any]]:
    for agent in agents:
        yield agent | {"parent": parent}
        yield from _walk(agent["children"], agent["id"])
