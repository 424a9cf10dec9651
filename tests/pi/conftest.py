"""Fixtures for fleets of the real pi: a model server, and the person's own pi in the test's HOME."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.model_server import ModelServer
from tests.npm import agent_cli
from tests.pi.person import configure
from tests.processes.stage import cgroups_missing


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """What every model of the person's pi is answered by."""
    with ModelServer() as running:
        yield running


@pytest.fixture(autouse=True)
def pi(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """pi on PATH, configured as a person does it: in their HOME, and nowhere else."""
    monkeypatch.setenv("PATH", agent_cli("@earendil-works/pi-coding-agent"))
    monkeypatch.setenv("PI_OFFLINE", "1")  # the tests' machine may have no network to look for updates in
    monkeypatch.setenv("NODE_DISABLE_COMPILE_CACHE", "1")  # pi would leave it in TMPDIR
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    configure(server.url)


@pytest.fixture(params=["cgroup", "warden"])
def tier(request: pytest.FixtureRequest) -> str:
    """Each tier there is."""
    if request.param == "cgroup" and (why := cgroups_missing()):
        pytest.skip(f"no cgroup tier here: {why}")
    return str(request.param)
