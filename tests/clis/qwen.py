"""A person with a qwen of their own, whose provider is our model server."""

from __future__ import annotations

import json
from pathlib import Path

from supervisor.kinds.qwen import QWEN
from tests.clis.tour import Cli


def _configure(home: Path, url: str) -> dict[str, str]:
    place = home / ".qwen"
    place.mkdir()
    settings: dict[str, object] = {
        "security": {"auth": {"selectedType": "openai"}},
        "general": {"enableAutoUpdate": False},
    }
    # Where the place of its statistics cannot be reached it waits for that before it leaves.
    settings |= {"model": {"generationConfig": {"maxRetries": 0}}, "privacy": {"usageStatisticsEnabled": False}}
    (place / "settings.json").write_text(json.dumps(settings))
    return {"OPENAI_API_KEY": "no-secret", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "chat-model"}


CLI = Cli(
    QWEN,
    "@qwen-code/qwen-code",
    "chat-model",
    _configure,
    bash="run_shell_command",
    unsaid=frozenset({"reasoning", "calls"}),
    joins=False,
    limits=((401, "auth"), (429, "rate")),
)
