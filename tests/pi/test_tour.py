"""The README's five minutes with one's own agents, word for word, with a real pi."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.house import PATIENCE, eventually
from tests.model_server import ModelServer
from tests.pi.person import billed, counted

README = Path(__file__).parent.parent.parent / "README.md"
TOUR = [
    "init",
    "up",
    "tree",
    'fork "Lead" --kind pi --name lead',
    'fork "Tests" --parent lead --tokens 300k',
    'instruct lead "Go" --wait',
    "tree --watch",
    "usage",
    "disband lead --plan",
    "disband lead",
]


def tour() -> list[str]:
    """The commands of the README's section, without their comments."""
    section = README.read_text().partition("## Five minutes")[2].partition("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    lines = [line.partition("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line.removeprefix("supervisorctl ") for line in lines if line.startswith("supervisorctl ")]


class Terminal:
    """A shell in the project's directory, with our commands and pi on its PATH."""

    def __init__(self, at: Path) -> None:
        self._at = at
        self.said: dict[str, str] = {}

    async def type(self, command: str) -> str:
        """What one command prints."""
        done = await trio.run_process(
            ["/bin/sh", "-c", f"supervisorctl {command}"],
            cwd=self._at,
            stdin=b"",
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout.decode(), done.stderr.decode())
        self.said[command] = done.stdout.decode()
        return self.said[command]

    async def json(self, command: str) -> Any:
        """The same for a program."""
        return json.loads(await self.type(f"{command} --json"))

    async def watch(self, command: str, words: str) -> None:
        """Look at what goes on until these words show, then leave with `q`."""
        screen, theirs = pty.openpty()
        try:
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
            argv = ["supervisorctl", *command.split()]
            process = await trio.lowlevel.open_process(argv, cwd=self._at, stdin=theirs, stdout=theirs)
            shown = b""
            while words.encode() not in shown:
                await trio.lowlevel.wait_readable(screen)
                shown += os.read(screen, 1 << 16)
            os.write(screen, b"q")
            assert await process.wait() == 0
        finally:
            os.close(theirs)
            os.close(screen)


@asynccontextmanager
async def terminal(at: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Terminal]:
    """A terminal, and at the end no daemon."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    with trio.fail_after(PATIENCE):
        sits = Terminal(at)
        try:
            yield sits
        finally:
            with trio.CancelScope(shield=True), trio.fail_after(PATIENCE):
                await trio.run_process(["supervisorctl", "shutdown"], check=False, capture_stdout=True)


async def quiet(sits: Terminal) -> bool:
    """Whether all that was begun is done: the child's end of its task is a turn of its parent's too."""
    _, lead = (await sits.json("tree"))["agents"]
    (child,) = lead["children"]
    if child["tasks"]["done"] != 1:
        return False
    return all(agent["state"] == "standing" and not agent["queued"] for agent in (lead, child))


async def test_the_five_minutes_of_the_readme_with_pi(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tour() == TOUR, "what the README shows must be what is tried here"
    async with terminal(tmp_path, monkeypatch) as sits:
        assert "for pi" in await sits.type("init")
        assert "started the daemon" in await sits.type("up")
        assert "pi-main" in await sits.type("tree")
        await sits.type('fork "Lead" --kind pi --name lead')
        assert "SubAgent-01" in await sits.type('fork "Tests" --parent lead --tokens 300k')
        assert await sits.type('instruct lead "Go" --wait') == "Very well.\n"
        await sits.watch("tree --watch", "SubAgent-01")

        await eventually(partial(quiet, sits))
        await sits.type("usage")
        plan = await sits.type("disband lead --plan")
        assert "SubAgent-01" in plan
        await sits.type("disband lead")
        shown = (await sits.json("tree"))["agents"]
        assert [agent["state"] for agent in shown] == ["standing", "gone"]
        assert [agent["state"] for agent in shown[1]["children"]] == ["gone"]
        # The bill counts what each was asked; the main was asked nothing.
        total = (await sits.json("usage"))["total"]
        assert counted(total) == billed(server)
        assert {call.model for call in server.bill} == {"chat-model"}
        assert server.asked[0].endswith("\nLead") or server.asked[0].endswith("\nTests")
