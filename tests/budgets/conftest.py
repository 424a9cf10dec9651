"""One daemon for all tests of budgets; each has a project of its own in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.budgets.puppet import PUPPET, Puppet
from tests.e2e.stage import Stage, project
from tests.shared import Shared, project_in, shared_daemon

#: Brings a fleet up whose only main, `lead`, holds this.
Lead = Callable[..., Awaitable[Puppet]]


@pytest.fixture(scope="package")
def budgets_daemon() -> Iterator[Shared]:
    with shared_daemon("auto") as daemon:
        yield daemon


@pytest.fixture
async def stage(budgets_daemon: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    async with project_in(budgets_daemon, tmp_path, monkeypatch) as found:
        yield found


@pytest.fixture
def lead(stage: Stage) -> Lead:
    async def come_up(grant: str = "", *tables: str, limits: str = "", more: str = "") -> Puppet:
        head = f'[agents.lead]\nkind = "puppet"\ngrant = {{ {grant} }}\n{more}'
        await stage.fleet.up(project(PUPPET, head, *tables, grace="5s", limits=limits))
        agent = (await stage.standing("lead"))["lead"]
        return Puppet(stage, agent["id"], "lead")

    return come_up
