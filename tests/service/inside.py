"""A user manager that stays, and what a test does in it: commands, the daemon's wire, a look at every process there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import define, frozen

from tests.fleet import Fleet
from tests.house import PATIENCE, STEP
from tests.systemd import UserManager

PORTER = Path(__file__).with_name("porter.py")
UNIT = "fleet-supervisor.service"
#: No journald inside: output goes to a file. A test may kill the daemon as often as it likes.
DROP_IN = """[Unit]
StartLimitIntervalSec=0
[Service]
StandardOutput=append:%h/daemon.log
StandardError=append:%h/daemon.log
"""


@frozen
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str


@frozen
class Process:
    """A process as seen from outside: `cgroup` is its place below the manager's, `inner` its pid in there."""

    pid: int
    inner: int
    cgroup: str
    argv: str
    state: str

    @property
    def environ(self) -> bytes:
        try:
            return Path(f"/proc/{self.pid}/environ").read_bytes()
        except OSError:
            return b""  # it has ended


@define
class Inside:
    """A running manager. `python` has the project installed and is readable for the user; `room` is the test's own
    directory, on a file system that both sides see."""

    manager: UserManager
    python: str
    room: Path

    @property
    def home(self) -> Path:
        return self.manager.home

    @property
    def units(self) -> Path:
        return self.home / ".config/systemd/user"

    @property
    def log(self) -> str:
        """What the daemon wrote under the unit."""
        path = self.home / "daemon.log"
        return path.read_text() if path.exists() else ""

    async def attempt(self, *argv: str, stdin: str = "", cwd: Path | None = None) -> Done:
        """Run a command as the user, to its end."""
        stream = await trio.open_unix_socket(str(self.room / "commands"))
        asked = {"argv": argv, "stdin": stdin, "cwd": str(cwd or self.home)}
        async with stream:
            await stream.send_all(json.dumps(asked).encode() + b"\n")
            answer = b"".join([part async for part in stream])
        return Done(**json.loads(answer))

    async def run(self, *argv: str, stdin: str = "", cwd: Path | None = None) -> str:
        """The same; fails the test when it does not end well."""
        done = await self.attempt(*argv, stdin=stdin, cwd=cwd)
        assert done.code == 0, f"{argv}: exit {done.code}\n{done.out}\n{done.err}\n{self.log}"
        return done.out

    async def systemctl(self, *words: str) -> str:
        return await self.run("systemctl", "--user", *words)

    async def show(self, *names: str) -> dict[str, str]:
        """Properties of the unit."""
        said = await self.systemctl("show", UNIT, *(f"--property={name}" for name in names))
        return dict(line.split("=", 1) for line in said.splitlines())

    async def until(self, **wanted: str) -> None:
        """Wait until the unit's properties are these."""
        while (await self.show(*wanted)) != wanted:  # noqa: ASYNC110  another process sets no event
            await trio.sleep(STEP)

    async def attempt_ctl(self, *words: str, cwd: Path | None = None, stdin: str = "") -> Done:
        return await self.attempt(str(Path(self.python).with_name("supervisorctl")), *words, cwd=cwd, stdin=stdin)

    async def ctl(self, *words: str, cwd: Path | None = None) -> str:
        return await self.run(str(Path(self.python).with_name("supervisorctl")), *words, cwd=cwd)

    async def install(self, *words: str, drop_in: str = "") -> str:
        """`install-unit`, with what a test needs beside it."""
        directory = self.units / f"{UNIT}.d"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "test.conf").write_text(DROP_IN + drop_in)
        self.give(self.home)
        return await self.ctl("install-unit", *words)

    def give(self, directory: Path) -> None:
        """What the test wrote there is the user's."""
        about = directory.stat()
        for path in directory.rglob("*"):
            os.lchown(path, about.st_uid, about.st_gid)

    def processes(self) -> list[Process]:
        """Everything that lives inside, zombies left out."""
        found = []
        for directory, _, _ in os.walk(self.manager.group):
            place = os.path.relpath(directory, self.manager.group)
            for pid in _listed(Path(directory, "cgroup.procs")):
                process = _process(pid, place)
                if process is not None and process.state not in "ZX":
                    found.append(process)
        return found


def _listed(procs: Path) -> list[int]:
    try:
        return [int(pid) for pid in procs.read_text().split()]
    except OSError:
        return []  # the agent has left meanwhile, and its cgroup with it


def _process(pid: int, place: str) -> Process | None:
    try:
        status = dict(
            line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
        )
        argv = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Process(pid, int(status["NSpid"].split()[-1]), place, argv, status["State"][0])


class Service(Fleet):
    """The daemon under the unit, spoken to from outside."""

    def __init__(self, inside: Inside) -> None:
        self.inside = inside
        self.at = inside.home / "project"
        self.at.mkdir(exist_ok=True)
        inside.give(inside.home)
        self.tier = "cgroup"
        self.socket = inside.room / "daemon"
        self.state = inside.home / ".local/state/fleet-supervisor"

    async def ctl(self, *args: str, code: int = 0, cwd: Path | None = None, stdin: bytes = b"") -> str:
        done = await self.inside.attempt_ctl(*args, cwd=cwd or self.at, stdin=stdin.decode())
        assert done.code == code, f"{args}: exit {done.code}\n{done.out}\n{done.err}\n{self.inside.log}"
        return done.out

    async def main_pid(self) -> int:
        """The daemon's pid, inside."""
        return int((await self.inside.show("MainPID"))["MainPID"])

    async def answers(self) -> dict[str, Any]:
        """Its status, as soon as a daemon answers."""
        while True:
            try:
                answer: dict[str, Any] = await self.call("status")
            except (OSError, EOFError):
                await trio.sleep(STEP)
            else:
                return answer

    async def alive(self, *names: str) -> dict[str, dict[str, Any]]:
        """The tree, once these agents stand by or work."""
        up = ("standing", "working", "waiting")
        return await self.until(lambda tree: all(name in tree and tree[name]["state"] in up for name in names))

    async def another(self, before: int) -> int:
        """The pid of the daemon that came after the one with the pid `before`."""
        while (pid := (await self.answers())["pid"]) == before:  # noqa: ASYNC110  as above
            await trio.sleep(STEP)
        return int(pid)

    def agents(self) -> list[Process]:
        """What lives in the unit besides the daemon, and what carries the name of an agent anywhere."""
        return [
            process
            for process in self.inside.processes()
            if (UNIT in process.cgroup and not process.cgroup.endswith("/daemon")) or b"FLEET_AGENT=" in process.environ
        ]

    def runs(self, agent: str) -> list[str]:
        """Those that a scripted agent remembers; it has one session if every run resumed it."""
        (session,) = self.state.glob(f"*/agents/{agent}/*.session")
        return [line for line in session.read_text().splitlines() if line.startswith("run ")]


@asynccontextmanager
async def booted(manager: UserManager, python: str, room: Path) -> AsyncIterator[Inside]:
    """A manager with a porter in it, and its orderly end."""
    process = manager.start(python, "-IS", "-c", PORTER.read_text(), str(room), stdin=subprocess.PIPE)
    try:
        assert process.stdout is not None
        said = await trio.to_thread.run_sync(process.stdout.readline, abandon_on_cancel=True)
        assert said == "open\n", process.communicate()[1]
        yield Inside(manager, python, room)
    finally:
        with trio.CancelScope(shield=True):
            try:
                with trio.fail_after(PATIENCE):
                    await trio.to_thread.run_sync(lambda: process.communicate(""), abandon_on_cancel=True)
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                    process.communicate()
            for name in ("commands", "daemon"):
                (room / name).unlink(missing_ok=True)
