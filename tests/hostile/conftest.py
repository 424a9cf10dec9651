"""A daemon of one's own: what is done to it here may show for long."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Shared, project_in
from tests.e2e.stage import Stage


@pytest.fixture(scope="module")
def besieged() -> Iterator[Shared]:
    daemon = Shared("auto")
    try:
        yield daemon
    finally:
        daemon.close()


@pytest.fixture
async def stage(besieged: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    async with project_in(besieged, tmp_path, monkeypatch) as found:
        yield found
