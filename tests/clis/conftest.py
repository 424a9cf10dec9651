"""Fixtures for the tour of the real agent CLIs: a model server, and the person's own CLI in the test's HOME."""

from __future__ import annotations

import pytest

from tests.clis import claude, codex, qwen
from tests.clis.tour import Cli, at_hand
from tests.model_server import ModelServer

#: Who takes the tour. Another CLI is a module with its `CLI`, and a name here.
CLIS = (claude.CLI, codex.CLI, qwen.CLI)


@pytest.fixture(params=CLIS, ids=lambda each: each.name)
def cli(request: pytest.FixtureRequest, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """A CLI on PATH, as a person has it."""
    return at_hand(request.param, server, monkeypatch)
