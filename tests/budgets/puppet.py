"""The test's end of an agent that does what it is told (`puppet_program`)."""

from __future__ import annotations

import json
import os
import signal
import sys
from itertools import count
from pathlib import Path
from typing import Any

from tests.e2e.stage import Stage, kind
from tests.house import PATIENCE, eventually

PROGRAM = str(Path(__file__).with_name("puppet_program.py"))
#: The kind `puppet`. It is put to an end by SIGTERM as any program is.
PUPPET = kind("puppet", sys.executable, "-IS", PROGRAM)

_NUMBERS = count(1)


def usage(tokens: int = 0, **more: Any) -> dict[str, Any]:
    """A usage line of one call."""
    return {"fleet": "usage", "scope": "call", "input": tokens, **more}


TURN_STARTED = {"fleet": "turn", "state": "started"}
TURN_ENDED = {"fleet": "turn", "state": "ended"}


class Puppet:
    """One agent, by its id; its name is what it was called when it was met."""

    def __init__(self, stage: Stage, agent: str, name: str) -> None:
        self.stage = stage
        self.id = agent
        self.name = name
        self.home = stage.project / "agents" / agent

    async def _order(self, word: str, given: object) -> int:
        number = next(_NUMBERS)
        opened = await eventually(self._listens, PATIENCE, f"{self.name} takes orders")
        try:
            os.write(opened, json.dumps([number, word, given]).encode() + b"\n")
        finally:
            os.close(opened)
        return number

    def _listens(self) -> int:
        """Its FIFO, opened; 0 while its program is not there, or is that of a run before."""
        try:
            return os.open(self.home / "orders", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return 0

    async def _answer(self, number: int) -> Any:
        file = self.home / f"answer-{number}"
        await eventually(file.exists, PATIENCE, f"{self.name} answers")
        return json.loads(file.read_text("utf-8"))

    async def say(self, *lines: dict[str, Any] | str) -> None:
        """Print these lines; returns when they are printed."""
        shown = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        await self._answer(await self._order("say", shown))

    async def run(self, *argv: str) -> tuple[int, str, str]:
        """Run a command as a tool of this agent: exit code, stdout, stderr."""
        code, out, err = await self._answer(await self._order("run", list(argv)))
        return code, out, err

    async def ctl(self, *args: str) -> tuple[int, Any]:
        """`supervisorctl ARGS --json` in the agent's own shell: exit code, and what it printed."""
        code, out, err = await self.run("sh", "-c", 'supervisorctl "$@" --json', "sh", *args)
        assert out, err
        return code, json.loads(out)

    async def refused(self, *args: str) -> dict[str, Any]:
        """The refusal of a command that must be refused."""
        code, answer = await self.ctl(*args)
        assert code == 1, answer
        found: dict[str, Any] = answer["refused"]
        return found

    async def fork(self, *args: str, name: str, kind: str = "puppet") -> Puppet:
        """Fork a child in the agent's own shell; met when it takes orders."""
        code, answer = await self.ctl("fork", "--kind", kind, "--name", name, "--wait", *args)
        assert code == 0, answer
        return Puppet(self.stage, answer["agent"]["id"], answer["agent"]["name"])

    async def child(self, task: str = "", *, name: str, **params: Any) -> Puppet:
        """A child that a person forked under it: quicker, where it does not matter who asks."""
        params = {"kind": "puppet", "wait": True} | params
        born = await self.stage.fleet.call("fork", parent=self.id, name=name, task=task, **params)
        return Puppet(self.stage, born["agent"]["id"], born["agent"]["name"])

    async def at_term(self, *lines: dict[str, Any]) -> None:
        """Print these lines when it gets SIGTERM, then leave with 0."""
        await self._answer(await self._order("at_term", [json.dumps(line) for line in lines]))

    async def exit(self, code: int) -> None:
        """End by itself."""
        await self._order("exit", code)

    async def die(self, number: int = signal.SIGKILL) -> None:
        """End by a signal."""
        await self._order("die", number)

    # --- what it was told

    def heard(self) -> list[dict[str, Any]]:
        """The lines of its stdin so far."""
        file = self.home / "heard"
        if not file.exists():
            return []
        return [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1] if line.strip()]

    def texts(self, sort: str) -> list[str]:
        """The texts of one sort that reached it (`brief`, `task`, `digest`)."""
        return [line["text"] for line in self.heard() if line["fleet"] == sort]

    async def hears(self, sort: str, words: str = "", times: int = 1) -> list[str]:
        """Wait until so many texts with these words have reached it."""

        def found() -> list[str]:
            lines = [line for line in self.heard() if line["fleet"] == sort]
            texts = [line.get("text", "") for line in lines if words in line.get("text", "")]
            return texts if len(texts) >= times else []

        return await eventually(found, PATIENCE, f"{self.name} hears {sort} {words!r}: {self.heard()}")

    # --- what is shown of it

    async def shown(self) -> dict[str, Any]:
        """Its entry in the tree."""
        return next(agent for agent in (await self.stage.fleet.tree()).values() if agent["id"] == self.id)

    async def becomes(self, *states: str) -> dict[str, Any]:
        """Its entry in the tree, once it is in one of these states."""
        tree = await self.stage.fleet.until(
            lambda tree: any(agent["id"] == self.id and agent["state"] in states for agent in tree.values())
        )
        return next(agent for agent in tree.values() if agent["id"] == self.id)

    async def account(self, field: str, **expected: float) -> dict[str, float]:
        """What it holds of a budget, once it is as expected."""
        async with self.stage.fleet.events() as events:
            while True:
                shown = (await self.shown())["grant"].get(field, {})
                if all(shown.get(name) == value for name, value in expected.items()):
                    return dict(shown)
                await anext(events)
