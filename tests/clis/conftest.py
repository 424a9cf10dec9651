"""Fixtures for the tour of the real agent CLIs: a model server, and the person's own CLI in the test's HOME."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clis import claude, codex, qwen
from tests.clis.tour import Cli, at_hand
from tests.model_server import ModelServer
from tests.processes.stage import cgroups_missing

#: Who takes the tour. Another CLI is a module with its `CLI`, and a name here.
CLIS = (claude.CLI, codex.CLI, qwen.CLI)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """What every model is answered by."""
    with ModelServer() as running:
        yield running


@pytest.fixture(params=CLIS, ids=lambda each: each.name)
def cli(request: pytest.FixtureRequest, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """A CLI on PATH, as a person has it."""
    return at_hand(request.param, server, monkeypatch)


@pytest.fixture(params=["cgroup", "warden"])
def tier(request: pytest.FixtureRequest) -> str:
    """Each tier there is."""
    if request.param == "cgroup" and (why := cgroups_missing()):
        pytest.skip(f"no cgroup tier here: {why}")
    return str(request.param)
