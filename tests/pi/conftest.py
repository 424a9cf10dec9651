"""Fixtures for fleets of the real pi: a model server, and the person's own pi in the test's HOME."""

from __future__ import annotations

import pytest

from tests.model_server import ModelServer
from tests.npm import agent_cli
from tests.pi.person import configure


@pytest.fixture(autouse=True)
def pi(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """pi on PATH, configured as a person does it: in their HOME, and nowhere else."""
    monkeypatch.setenv("PATH", agent_cli("@earendil-works/pi-coding-agent"))
    monkeypatch.setenv("PI_OFFLINE", "1")  # the tests' machine may have no network to look for updates in
    monkeypatch.setenv("NODE_DISABLE_COMPILE_CACHE", "1")  # pi would leave it in TMPDIR
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    configure(server.url)
