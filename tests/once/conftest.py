"""Fixtures for fleets of real CLIs that do one task and end: a model server, and the person's own CLI in the test's
HOME."""

from __future__ import annotations

import pytest

from tests.model_server import ModelServer
from tests.npm import agent_cli
from tests.once.clis import CLIS, Cli


@pytest.fixture(params=CLIS, ids=lambda each: each.name)
def cli(request: pytest.FixtureRequest, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """A CLI on PATH, as a person has it."""
    one: Cli = request.param
    monkeypatch.setenv("PATH", agent_cli(one.package))
    monkeypatch.setenv("NODE_DISABLE_COMPILE_CACHE", "1")  # node would leave it in TMPDIR
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name, value in one.configure(server.url).items():
        monkeypatch.setenv(name, value)
    return one
