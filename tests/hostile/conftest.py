"""A daemon of one's own: what is done to it here may show for long."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import trio

from tests.e2e.conftest import Shared
from tests.e2e.stage import PATIENCE, Stage
from tests.fleet import Fleet


@pytest.fixture(scope="module")
def besieged() -> Iterator[Shared]:
    daemon = Shared("auto")
    try:
        yield daemon
    finally:
        daemon.close()


@pytest.fixture
async def stage(besieged: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    """A project of one's own, down at the end."""
    for name, value in besieged.xdg.items():
        monkeypatch.setenv(name, value)
    found = Stage(Fleet(tmp_path, besieged.process, besieged.tier), tmp_path)
    with trio.fail_after(3 * PATIENCE):
        yield found
        if (found.room / "agents.toml").exists():
            await found.fleet.call("down")
        await found.empty()
