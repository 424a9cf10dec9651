"""A real daemon in a place of its own, driven by the client's commands as a person would, and by the wire where a test
must be quick."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import trio

from tests.house import PATIENCE, over

CTL = [sys.executable, "-c", "import sys; from supervisor.ctl.main import main; sys.exit(main())"]
DAEMON = [sys.executable, "-c", "import sys; from supervisor.warden import main; sys.exit(main())"]
#: A daemon with nothing that hinders it has left by then, in seconds.
LEAVES = 60.0
#: A kind that runs a shell command given as its task's words would be a toy: tests declare the command they mean.
SLEEPER = 'command = ["sleep", "1000"]\nprotocol = "lines"\n'


class RefusedError(Exception):
    """An error of the wire, with its data."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.data: dict[str, Any] = error.get("data") or {}


async def connect(path: Path) -> trio.SocketStream:
    """A connection that waits for its place at the door, as the client's does: trio takes a full queue for one."""
    door = socket.socket(socket.AF_UNIX)
    try:
        await trio.to_thread.run_sync(door.connect, str(path), abandon_on_cancel=True)
        door.setblocking(False)
        return trio.SocketStream(trio.socket.from_stdlib_socket(door))
    except BaseException:
        door.close()
        raise


@contextmanager
def hung_up() -> Iterator[None]:
    """A daemon that ends has read what was sent to it or has not: a closed connection, or a reset one. Both are an
    EOFError."""
    try:
        yield
    except trio.BrokenResourceError as error:
        raise EOFError("the daemon hung up") from error


class Fleet:
    """One daemon. `at` holds its agents.toml; XDG directories are those of the test's place."""

    def __init__(self, at: Path, process: subprocess.Popen[bytes], tier: str) -> None:
        self.at = at
        self.process = process
        self.tier = tier
        self.socket = Path(os.environ["XDG_RUNTIME_DIR"]) / "fleet-supervisor" / "control.sock"
        self.state = Path(os.environ["XDG_STATE_HOME"]) / "fleet-supervisor"

    # --- the wire

    async def call(self, method: str, **params: Any) -> Any:
        """One request on a connection of its own. Raises RefusedError; EOFError where the daemon ends before it has
        answered; OSError where there is none."""
        stream = await connect(self.socket)
        with hung_up():
            async with stream:
                request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"cwd": str(self.at), **params}}
                await stream.send_all(json.dumps(request).encode() + b"\n")
                data = b""
                while not data.endswith(b"\n"):
                    chunk = await stream.receive_some(1 << 16)
                    if not chunk:
                        raise EOFError(f"the daemon closed the connection after {data!r}")
                    data += chunk
        answer = json.loads(data)
        if "error" in answer:
            raise RefusedError(answer["error"])
        return answer["result"]

    async def up(self, toml: str, path: str | None = None) -> Any:
        """Accept this content, with this PATH instead of the test's own."""
        file = self.at / "agents.toml"
        file.write_text(toml, "utf-8")
        return await self.call("up", file=str(file), content=toml, path=path or os.environ["PATH"])

    async def tree(self) -> dict[str, dict[str, Any]]:
        """All agents by name, gone ones under their id; each with the id of its parent under `parent`."""
        shown = await self.call("tree")
        found: dict[str, dict[str, Any]] = {}
        for agent, parent in _walk(shown["agents"], None):
            found[agent["id"] if agent["state"] == "gone" else agent["name"]] = agent | {"parent": parent}
        return found

    async def until(self, condition: Callable[[dict[str, dict[str, Any]]], bool]) -> dict[str, dict[str, Any]]:
        """The tree once the condition holds; asks again after each event."""
        async with self.events() as events:
            while not condition(tree := await self.tree()):
                await anext(events)
        return tree

    async def state_of(self, name: str, *states: str) -> dict[str, Any]:
        """The agent once it is in one of these states."""
        return (await self.until(lambda tree: name in tree and tree[name]["state"] in states))[name]

    @asynccontextmanager
    async def events(self, since: int | None = None) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """Facts as they are recorded. The first item is always there: what was recorded before."""
        stream = await connect(self.socket)
        async with stream:
            params: dict[str, Any] = {"cwd": str(self.at), "follow": True} | ({} if since is None else {"since": since})
            request = {"jsonrpc": "2.0", "id": 1, "method": "events", "params": params}
            await stream.send_all(json.dumps(request).encode() + b"\n")
            async with aclosing(_notifications(stream)) as notifications:
                yield notifications

    # --- the command line

    async def ctl(self, *args: str, code: int = 0, cwd: Path | None = None, stdin: bytes = b"") -> str:
        """Run `supervisorctl`; returns stdout. Fails the test when it ends with another code."""
        done = await trio.run_process(
            [*CTL, *args], cwd=cwd or self.at, stdin=stdin, capture_stdout=True, capture_stderr=True, check=False
        )
        assert done.returncode == code, (
            f"{args}: exit {done.returncode}\n{done.stdout.decode()}\n{done.stderr.decode()}"
        )
        return done.stdout.decode()

    async def json(self, *args: str, code: int = 0, cwd: Path | None = None) -> Any:
        """The same with `--json`."""
        return json.loads(await self.ctl(*args, "--json", code=code, cwd=cwd))


def _walk(agents: list[dict[str, Any]], parent: str | None) -> Iterator[tuple[dict[str, Any], str | None]]:
    for agent in agents:
        yield agent, parent
        yield from _walk(agent["children"], agent["id"])


async def _notifications(stream: trio.SocketStream) -> AsyncGenerator[dict[str, Any]]:
    rest = b""
    with hung_up():
        async for chunk in stream:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if "error" in message:
                    raise RefusedError(message["error"])
                yield message.get("params", {})


@asynccontextmanager
async def running(at: Path, tier: str = "auto", *options: str) -> AsyncIterator[Fleet]:
    """A daemon in the foreground (`--no-warden`), stopped in order at the end; its output goes to `daemon.log`."""
    await trio.Path(at).mkdir(exist_ok=True)
    ready, told = os.pipe()
    with (at / "daemon.log").open("ab") as log:
        process = subprocess.Popen(
            [*DAEMON, "--no-warden", "--tier", tier, *options],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(told,), start_new_session=True,
            env=os.environ | {"SUPERVISORD_READY_FD": str(told)},
        )  # fmt: skip
    os.close(told)
    fleet = Fleet(at, process, tier)
    try:
        with trio.fail_after(PATIENCE):
            await trio.to_thread.run_sync(lambda: os.read(ready, 64), abandon_on_cancel=True)
        os.close(ready)
        if process.poll() is not None:
            raise RuntimeError((at / "daemon.log").read_text())
        yield fleet
    finally:
        with trio.CancelScope(shield=True):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            with trio.move_on_after(LEAVES):
                await over(process)
            if process.poll() is None:
                process.kill()
                process.wait()
                raise AssertionError(f"the daemon did not leave within {LEAVES} s of SIGTERM")
