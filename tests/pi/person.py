"""A person with a pi of their own, and a fleet of it under a real daemon."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from tests.fleet import Fleet, running
from tests.house import PATIENCE
from tests.model_server import BILLED, ModelServer

#: One model a wire; the lead and its child speak different ones, so that their bills are told apart.
CHAT, MESSAGES = "local/chat-model", "local-messages/messages-model"
WINDOW = 100_000


def configure(url: str) -> None:
    """Write `~/.pi/agent` as a person has it: two providers with a model each, and the model that pi starts with."""
    cost = {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 1.25}
    model = {"reasoning": False, "input": ["text"], "contextWindow": WINDOW, "maxTokens": 4096, "cost": cost}
    chat = {"baseUrl": f"{url}/v1", "api": "openai-completions", "models": [model | {"id": "chat-model"}]}
    messages = {"baseUrl": url, "api": "anthropic-messages", "models": [model | {"id": "messages-model"}]}
    key = {"apiKey": "no-secret"}
    home = Path(os.environ["HOME"]) / ".pi" / "agent"
    home.mkdir(parents=True)
    (home / "models.json").write_text(
        json.dumps({"providers": {"local": chat | key, "local-messages": messages | key}})
    )
    retry = {"baseDelayMs": 20}
    provider, _, name = CHAT.partition("/")
    (home / "settings.json").write_text(json.dumps({"defaultProvider": provider, "defaultModel": name, "retry": retry}))


LEAD = """
[project]
name = "real"

[agents.lead]
kind = "pi"
directory = "."
"""


@asynccontextmanager
async def fleet_of(at: Path, toml: str = LEAD, tier: str = "auto") -> AsyncIterator[Fleet]:
    """A daemon with this content accepted; the whole of its test has three times what one wait may take."""
    with trio.fail_after(3 * PATIENCE):
        async with running(at, tier) as fleet:
            await fleet.up(toml)
            yield fleet


def counted(usage: dict[str, Any]) -> dict[str, int]:
    """A usage of the tree in the words of a bill."""
    return {name: value for name, value in usage.items() if name in BILLED}


def billed(server: ModelServer, model: str | None = None) -> dict[str, int]:
    """What the model server told, in all or for one model."""
    return server.total(model.partition("/")[2] if model else None)


async def settled(fleet: Fleet, *names: str) -> dict[str, dict[str, Any]]:
    """The tree once these agents stand by and nothing waits for them."""
    return await fleet.until(
        lambda tree: all(
            name in tree and tree[name]["state"] == "standing" and not tree[name]["queued"] for name in names
        )
    )
