"""A person with a codex of their own, whose provider is our model server."""

from __future__ import annotations

from pathlib import Path

from supervisor.kinds.codex import CODEX
from tests.clis.tour import Cli
from tests.codex.person import MODEL, configure


def _configure(home: Path, url: str) -> dict[str, str]:
    configure(home, url)
    (home / "tmp").mkdir()
    return {"OPENAI_API_KEY": "no-secret", "TMPDIR": str(home / "tmp")}  # its sandbox leaves a directory there


CLI = Cli(
    CODEX,
    "@openai/codex",
    MODEL,
    _configure,
    bash="exec_command",
    forgets=True,
    late=True,
    sandboxed=True,
    limits=((401, "auth"), (429, "rate"), (529, "overload")),
)
