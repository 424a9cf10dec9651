"""A daemon of one's own: what is done to it here may show for long."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.e2e.stage import Stage
from tests.shared import Shared, project_in, shared_daemon


@pytest.fixture(scope="module")
def besieged() -> Iterator[Shared]:
    with shared_daemon("auto") as daemon:
        yield daemon


@pytest.fixture
async def stage(besieged: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    async with project_in(besieged, tmp_path, monkeypatch) as found:
        yield found
