"""A fleet of scripted agents over several lives of its daemon, each in the same place. Must never decide what is
right."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import trio

from supervisor.conformance.examine import Memory, scripted
from supervisor.doors import paths
from tests.fleet import Fleet, RefusedError, running
from tests.house import PATIENCE, below, eventually, over


def agent(name: str, *, under: str = "", **values: Any) -> str:
    """The table of a scripted agent; `under` is where in the tree."""
    path = ".agents.".join(filter(None, ("agents" + (f".{under}" if under else ""), name)))
    head = path.replace("agents.agents", "agents")
    lines = [f"{key} = {_toml(value)}" for key, value in {"kind": "scripted", **values}.items()]
    return f"[{head}]\n" + "\n".join(lines) + "\n"


def habit(at: Path, steps: str) -> str:
    """What an agent is told by its `instructions`: a file with these steps."""
    file = at / f"habit-{len(list(at.glob('habit-*')))}"
    file.write_text(steps, "utf-8")
    return str(file)


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    return json.dumps(value)


def project(*tables: str) -> str:
    """A project with these tables."""
    return '[project]\nname = "lives"\n' + "".join(tables)


@asynccontextmanager
async def life(at: Path, tier: str = "auto") -> AsyncIterator[Fleet]:
    """One life of the daemon, without a warden: what it leaves is the next one's to end."""
    with trio.fail_after(3 * PATIENCE):
        async with running(at, tier) as fleet:
            yield fleet


async def kill(fleet: Fleet) -> None:
    """The daemon dies, with all on record that a tree has shown. At moments when it is not, `tests/crash` looks."""
    with suppress(RefusedError):  # no project, no record
        await fleet.call("events")
    fleet.process.kill()
    await over(fleet.process)


async def settled(fleet: Fleet, *names: str) -> dict[str, dict[str, Any]]:
    """The tree once these stand by and nothing waits for them."""
    return await fleet.until(
        lambda tree: all(
            name in tree and tree[name]["state"] == "standing" and not tree[name]["queued"] for name in names
        )
    )


async def events(fleet: Fleet, fact: str) -> list[dict[str, Any]]:
    """Every recorded fact of this name."""
    recorded = (await fleet.call("events", since=0))["events"]
    return [event for event in recorded if event["fact"] == fact]


def home(fleet: Fleet, agent: str) -> Path:
    """An agent's own directory."""
    return fleet.state / paths.project_id("lives", str(fleet.at / "agents.toml")) / "agents" / agent


def memory(fleet: Fleet, agent: str) -> Memory:
    """What the agent itself remembers."""
    return scripted(home(fleet, agent))


def notes(fleet: Fleet, agent: str) -> list[str]:
    """Every line of its sessions, in order of their begin."""
    files = sorted(home(fleet, agent).glob("*.session"), key=lambda path: path.stat().st_ctime_ns)
    return [line for path in files for line in path.read_text("utf-8").splitlines()]


async def alone(fleet: Fleet, *agents: dict[str, Any]) -> None:
    """Wait until these agents have the only processes below the daemon."""
    await eventually(lambda: pids(fleet) == {agent["pid"] for agent in agents})


def pids(fleet: Fleet) -> set[int]:
    """Every process below the daemon that is no zombie."""
    return {process.pid for process in below(fleet.process.pid) if process.state != "Z"}
