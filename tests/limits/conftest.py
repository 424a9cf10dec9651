"""Fixtures for fleets whose providers take no more for now."""

from __future__ import annotations

import pytest

from tests.processes.stage import cgroups_missing


@pytest.fixture(params=["cgroup", "warden"])
def tier(request: pytest.FixtureRequest) -> str:
    """Each tier there is; what comes back is the same in both."""
    if request.param == "cgroup" and (why := cgroups_missing()):
        pytest.skip(f"no cgroup tier here: {why}")
    return str(request.param)
