"""Fixtures for whole fleets: a daemon of each tier, and a stage to run programs as its agents. Most tests share one
daemon of their tier and have a project each, as a person's would; those that end it have their own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.e2e.stage import Stage
from tests.fleet import running
from tests.house import PATIENCE
from tests.shared import Shared, project_in, shared_daemon


@pytest.fixture(scope="package")
def shared(tier: str) -> Iterator[Shared]:
    """The daemon of this tier that tests share."""
    with shared_daemon(tier) as daemon:
        yield daemon


@pytest.fixture
async def stage(shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    """A project in the shared daemon."""
    async with project_in(shared, tmp_path, monkeypatch) as found:
        yield found


@asynccontextmanager
async def start_daemon(tier: str, at: Path, environment: Mapping[str, str] | None = None) -> AsyncIterator[Stage]:
    """A daemon of one's own, ended in order."""
    kept = dict(os.environ)
    with trio.fail_after(3 * PATIENCE):
        os.environ.update(environment or {})
        async with running(at, tier) as fleet:
            os.environ.clear()
            os.environ.update(kept)
            yield Stage(fleet, at)


@pytest.fixture
async def alone(tier: str, tmp_path: Path) -> AsyncIterator[Stage]:
    """A daemon of one's own."""
    async with start_daemon(tier, tmp_path) as stage:
        yield stage
