"""What the tests of CLIs that do one task and end need to know of each: how a person has it, and what it calls
things."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import frozen

from supervisor.kinds.gemini import GEMINI
from supervisor.kinds.kind import Kind
from supervisor.kinds.opencode import OPENCODE
from tests.fleet import Fleet, running
from tests.house import PATIENCE
from tests.model_server import ModelServer


@frozen
class Cli:
    """One CLI. `configure` writes what a person has in their HOME, and returns what they have in their environment."""

    kind: Kind
    package: str
    model: str
    configure: Callable[[str], dict[str, str]]
    #: its own names of the tools that a grant calls bash and read, and its call of a subagent
    shell: str
    reader: str
    subagent: str
    #: the file that the person's own words for it stand in, in the directory that it works in
    context: str

    @property
    def name(self) -> str:
        return self.kind.name

    def toml(self, more: str = "") -> str:
        """A project of one agent."""
        model = "" if "model =" in more else f'model = "{self.model}"\n'
        return f'[project]\nname = "real"\n[agents.lead]\nkind = "{self.name}"\ndirectory = "."\n{model}{more}'


def write(path: Path, what: dict[str, Any]) -> None:
    """A file of the person's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(what))


def home() -> Path:
    """The person's own directory, which is the test's."""
    return Path(os.environ["HOME"])


def opencode_file() -> Path:
    """The person's configuration of opencode."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or home() / ".config") / "opencode" / "opencode.json"


def _gemini(url: str) -> dict[str, str]:
    # Without the second it would delete conversations that are gone on with, as its page tells.
    general = {"enableAutoUpdate": False, "sessionRetention": {"enabled": False}}
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": general}
    write(home() / ".gemini" / "settings.json", settings | {"privacy": {"usageStatisticsEnabled": False}})
    (home() / "tmp").mkdir()  # it leaves files there
    return {"GEMINI_API_KEY": "no-secret", "GOOGLE_GEMINI_BASE_URL": url, "TMPDIR": str(home() / "tmp")}


def _opencode(url: str) -> dict[str, str]:
    cost = {"input": 1, "output": 2, "cache_read": 0.1, "cache_write": 1.25}
    model = {"name": "big", "limit": {"context": 100_000, "output": 4096}, "cost": cost}
    options = {"baseURL": f"{url}/v1", "apiKey": "no-secret"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "Local", "options": options, "models": {"big": model}}
    own = {"model": "local/big", "small_model": "local/big", "autoupdate": False, "share": "disabled"}
    write(opencode_file(), own | {"provider": {"local": provider}})
    (home() / "tmp").mkdir()  # it leaves a directory there
    off = {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
    return off | {"TMPDIR": str(home() / "tmp")}


CLIS = (
    Cli(
        GEMINI, "@google/gemini-cli", "gemini-2.5-flash", _gemini, "run_shell_command", "read_file",
        'invoke_agent {"agent_name":"generalist","prompt":"Look around."}', "GEMINI.md",
    ),
    Cli(
        OPENCODE, "opencode-ai", "local/big", _opencode, "bash", "read",
        'task {"description":"look","prompt":"Look around.","subagent_type":"general"}', "AGENTS.md",
    ),
)  # fmt: skip


@asynccontextmanager
async def fleet_of(at: Path, toml: str, tier: str = "auto") -> AsyncIterator[Fleet]:
    """A daemon with this content accepted; the whole of its test has four times what one wait may take."""
    with trio.fail_after(4 * PATIENCE):
        async with running(at, tier) as fleet:
            await fleet.up(toml)
            yield fleet


def counted(usage: dict[str, Any]) -> dict[str, int]:
    """A usage of the tree in the words of a bill."""
    return {name: usage[name] for name in ("input", "cache_read", "cache_write", "output", "reasoning", "calls")}


def billed(server: ModelServer) -> dict[str, int]:
    """What the model server told."""
    return server.total()


async def away(fleet: Fleet, name: str = "lead", tasks: int = 0) -> dict[str, Any]:
    """An agent that has done so many tasks and stands by without a process, with nothing that waits for it."""
    tree = await fleet.until(
        lambda tree: (
            (tree[name]["state"], tree[name]["pid"], tree[name]["queued"]) == ("standing", None, 0)
            and tree[name]["tasks"]["done"] >= tasks
        )
    )
    agent: dict[str, Any] = tree[name]
    return agent


async def facts(fleet: Fleet, kind: str, count: int = 1) -> list[dict[str, Any]]:
    """The first so many facts of that name."""
    found: list[dict[str, Any]] = []
    async with fleet.events(0) as events:
        async for event in events:
            found += [event] if event.get("fact") == kind else []
            if len(found) == count:
                break
    return found
