"""Fixtures for processes: a containment of each tier with its reaper, and a stage to run programs on."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest
import trio

from supervisor.runtime.containment.cell import Containment
from supervisor.runtime.containment.contain import contain
from supervisor.runtime.containment.reaper import reap
from tests.processes.stage import Stage


@pytest.fixture
async def containment(tier: Literal["cgroup", "warden"], nursery: trio.Nursery) -> AsyncIterator[Containment]:
    """A containment of this tier, with its reaper."""
    contained = contain(secrets.randbelow(2**30) + 1, tier)
    try:
        await nursery.start(reap, contained)
        yield contained
    finally:
        contained.close()


@pytest.fixture
async def stage(containment: Containment, tmp_path: Path) -> AsyncIterator[Stage]:
    """Runs programs in cells, and ends them."""
    made = Stage(containment, tmp_path)
    try:
        yield made
    finally:
        with trio.CancelScope(shield=True):
            await made.clear()
