"""A fleet of real programs for a test: written into its place, declared as kinds, looked at as processes. Must never
decide what is right."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import trio

from supervisor.doors import paths
from tests.fleet import Fleet
from tests.house import PATIENCE, Seen, below, eventually, seen
from tests.processes.stage import VICTIMS, alive, cgroups_missing

__all__ = ["SLEEP", "VICTIMS", "Stage", "alive", "cgroups_missing", "kind", "project"]

#: Does nothing, for long; the plainest agent.
SLEEP = ["sleep", "1000"]


def kind(name: str, *command: str, **more: str) -> str:
    """The table of a kind that runs this command and speaks status lines."""
    values = {"command": list(command), "protocol": "lines"} | more
    return f"[kinds.{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


def project(*tables: str, grace: str = "10s", limits: str = "") -> str:
    """An agents.toml with the kind `sleep`, so many forks a minute as a test may need, and these tables."""
    head = f'[project]\nname = "t"\n[defaults]\nkind = "sleep"\nstop_grace = "{grace}"\n'
    return "\n".join([head, f"[limits]\nforks_per_minute = 100000\n{limits}", kind("sleep", *SLEEP), *tables])


class Stage:
    """One test's fleet and the programs of its agents."""

    def __init__(self, fleet: Fleet, room: Path) -> None:
        self.fleet = fleet
        self.room = room

    # --- programs

    def sh(self, name: str, text: str) -> str:
        """A kind of this name that is a shell script."""
        path = self.room / f"{name}.sh"
        path.write_text(text, "utf-8")
        return kind(name, "sh", str(path))

    def python(self, name: str, text: str, *words: str) -> str:
        """A kind of this name that is a Python program, with these arguments."""
        path = self.room / f"{name}.py"
        path.write_text("import os, signal, subprocess, sys, time\n" + text, "utf-8")
        return kind(name, sys.executable, "-IS", str(path), *words)

    def victims(self, name: str, *ways: str) -> str:
        """A kind of this name that leaves processes behind in these ways, and prints each with its pid."""
        return kind(name, sys.executable, "-IS", VICTIMS, *ways)

    # --- what agents print

    @property
    def project(self) -> Path:
        """The project's directory in the daemon's state."""
        return self.fleet.state / paths.project_id("t", str(self.fleet.at / "agents.toml"))

    def transcript(self, agent: str) -> Path:
        """Where an agent's stdout is kept."""
        return self.project / "agents" / agent / "transcript.jsonl"

    def printed(self, agent: str) -> bytes:
        """What an agent printed so far."""
        path = self.transcript(agent)
        return path.read_bytes() if path.exists() else b""

    async def said(self, agent: str, word: str, times: int = 1) -> list[str]:
        """Wait until the agent printed so many lines that begin with the word; their remainders."""

        def found() -> list[str]:
            lines = self.printed(agent).decode(errors="replace").split("\n")[:-1]
            rest = [line.removeprefix(word).strip() for line in lines if line.startswith(word)]
            return rest if len(rest) >= times else []

        return await eventually(found, PATIENCE, f"{agent} says {word}: {self.printed(agent)!r}")

    async def pids(self, agent: str, ways: Iterable[str]) -> dict[str, int]:
        """The processes that victims left, by their way."""
        return {way: int((await self.said(agent, f"{way} "))[0]) for way in ways}

    # --- agents

    async def fork(self, kind: str = "sleep", **params: Any) -> dict[str, Any]:
        """Start an agent, and wait until it is ready; its id and name."""
        agent: dict[str, Any] = (await self.fleet.call("fork", kind=kind, wait=True, **params))["agent"]
        return agent

    async def standing(self, *names: str) -> dict[str, dict[str, Any]]:
        """The tree once all of these are ready."""
        return await self.fleet.until(
            lambda tree: all(name in tree and tree[name]["state"] in ("standing", "working") for name in names)
        )

    async def killed(self, name: str, verb: str = "disband") -> dict[int, dict[str, Any]]:
        """End a branch; the processes that had to be ended in it, by pid."""
        answer = await self.fleet.call(verb, agent=name)
        return {one["pid"]: one for agent in answer["ended"] for one in agent["killed"]}

    # --- processes

    @property
    def daemon(self) -> int:
        """The daemon's pid."""
        return self.fleet.process.pid

    def below(self) -> list[Seen]:
        """Every process below the daemon, zombies included."""
        return below(self.daemon)

    async def empty(self, within: float = PATIENCE) -> None:
        """Wait until nothing is below the daemon, not even a zombie."""
        await eventually(lambda: not self.below(), within, f"nothing is left below the daemon: {self.below()}")


def three_only(pid: int) -> bool:
    """Does the process hold fds 0, 1 and 2 and no other?"""
    return set(open_fds(pid)) == {0, 1, 2}


def terminated(pid: int) -> bool:
    """Is the process gone, its zombie too?"""
    return seen(pid) is None


async def at_once(calls: Iterable[Any]) -> None:
    """Run these at the same time."""
    async with trio.open_nursery() as nursery:
        for call in calls:
            nursery.start_soon(call)


def lines_of(path: str) -> list[str]:
    """The lines of a file, such as one of /proc."""
    return Path(path).read_text("utf-8").splitlines()


def open_fds(pid: int) -> dict[int, str]:
    """The open descriptors of a process and what they are."""
    found = {}
    for fd in map(int, os.listdir(f"/proc/{pid}/fd")):
        try:
            found[fd] = os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            continue
    return found
