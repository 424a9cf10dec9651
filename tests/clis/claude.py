"""A person with a claude of their own, whose provider is our model server."""

from __future__ import annotations

from pathlib import Path

from supervisor.kinds.claude import CLAUDE
from tests.clis.tour import Cli


def _configure(home: Path, url: str) -> dict[str, str]:
    (home / "tmp").mkdir()
    return {
        "ANTHROPIC_API_KEY": "no-secret",
        "ANTHROPIC_BASE_URL": url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDE_CODE_TMPDIR": str(home / "tmp"),  # it would leave a directory in TMPDIR
        "DISABLE_AUTOUPDATER": "1",
        "SHELL": "/bin/bash",
    }


CLI = Cli(
    CLAUDE,
    "@anthropic-ai/claude-code",
    "claude-sonnet-4-5",
    _configure,
    bash="Bash",
    unknown=frozenset({"output"}),
    limits=((401, "auth"), (429, "rate"), (529, "overload")),
)
