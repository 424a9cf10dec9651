"""What the tests of agent CLIs need to know of one: how a person has it, and what of its model calls it never tells."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import frozen

from supervisor.core.spec import KindSpec
from supervisor.kinds.kind import Kind
from tests.fleet import Fleet
from tests.fleet import running as daemon
from tests.house import PATIENCE, eventually
from tests.model_server import BILLED, Call, ModelServer
from tests.npm import agent_cli


@frozen
class Cli:
    """One agent CLI. `configure` writes what a person has in their HOME, and returns what they have in their
    environment, with the model server's address."""

    kind: Kind
    package: str
    model: str
    configure: Callable[[Path, str], dict[str, str]]
    #: its own name of the tool that runs a command
    bash: str
    #: a call that it makes and never tells of; why stands in its page
    hidden: Callable[[Call], bool] = lambda _call: False
    #: what of a bill it does not tell in full: the books hold no more than the bill
    unsaid: frozenset[str] = frozenset()
    #: what is never known of a call that was under way when its process was killed
    unknown: frozenset[str] = frozenset()
    #: the call whose tool it was killed in is never told
    forgets: bool = False
    #: what a turn has used that was cut by a stop is told when its conversation goes on
    late: bool = False
    #: without the tool that runs commands it still runs some, where they can write nothing
    sandboxed: bool = False
    #: a text that comes while a turn runs joins it
    joins: bool = True
    #: which limits its provider's refusals are, by status; only those with which it gives up soon
    limits: tuple[tuple[int, str], ...] = ((429, "rate"),)

    @property
    def spec(self) -> KindSpec:
        return KindSpec(self.name, self.name)

    @property
    def name(self) -> str:
        return self.kind.name

    def toml(self, more: str = "") -> str:
        """A project of one agent."""
        return f'[project]\nname = "real"\n[agents.lead]\nkind = "{self.name}"\ndirectory = "."\n{more}'

    def billed(self, server: ModelServer, killed: str = "") -> dict[str, int]:
        """What the model server told, without what this CLI never tells; `killed` are words of the text in whose tool
        it was killed."""
        calls = [call for call in server.bill if not self.hidden(call)]
        if killed and self.forgets:
            calls = [call for call in calls if killed not in call.said]
        return {name: sum(getattr(call, name) for call in calls) for name in BILLED[:-1]} | {"calls": len(calls)}


def counted(usage: dict[str, Any]) -> dict[str, int]:
    """A usage of the tree in the words of a bill."""
    return {name: value for name, value in usage.items() if name in BILLED}


@asynccontextmanager
async def fleet_of(at: Path, toml: str, tier: str = "auto") -> AsyncIterator[Fleet]:
    """A daemon with this content accepted; the whole of its test has three times what one wait may take."""
    with trio.fail_after(3 * PATIENCE):
        async with daemon(at, tier) as fleet:
            await fleet.up(toml)
            yield fleet


async def settled(fleet: Fleet, name: str, tasks: int) -> dict[str, Any]:
    """An agent that has done so many tasks and stands by, with nothing that waits for it."""
    tree = await fleet.until(
        lambda tree: (
            tree[name]["state"] == "standing" and not tree[name]["queued"] and tree[name]["tasks"]["done"] >= tasks
        )
    )
    agent: dict[str, Any] = tree[name]
    return agent


async def made(file: Path) -> None:
    """Wait for a file that an agent's shell makes: the first turn of a CLI may take long on a busy machine."""
    await eventually(file.exists, within=90)


def home() -> Path:
    """The person's own directory, which is the test's."""
    return Path(os.environ["HOME"])


def at_hand(cli: Cli, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Put a CLI on PATH, as a person has it."""
    monkeypatch.setenv("PATH", agent_cli(cli.package))
    monkeypatch.setenv("NODE_DISABLE_COMPILE_CACHE", "1")  # node would leave it in TMPDIR
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name, value in cli.configure(home(), server.url).items():
        monkeypatch.setenv(name, value)
    return cli
