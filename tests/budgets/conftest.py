"""One daemon for all tests of budgets; each has a project of its own in it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import trio

from tests.budgets.puppet import PUPPET, Puppet
from tests.e2e.conftest import Shared
from tests.e2e.stage import PATIENCE, Stage, project
from tests.fleet import Fleet, RefusedError
from tests.house import below

#: Brings a fleet up whose only main, `lead`, holds this.
Lead = Callable[..., Awaitable[Puppet]]


@pytest.fixture(scope="package")
def budgets_daemon() -> Iterator[Shared]:
    daemon = Shared("auto")
    try:
        yield daemon
    finally:
        daemon.close()


@pytest.fixture
async def stage(budgets_daemon: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    """A project of one's own, down at the end."""
    for name, value in budgets_daemon.xdg.items():
        monkeypatch.setenv(name, value)
    found = Stage(Fleet(tmp_path, budgets_daemon.process, budgets_daemon.tier), tmp_path)
    try:
        with trio.fail_after(3 * PATIENCE):
            yield found
            with contextlib.suppress(RefusedError):  # it was never up
                await found.fleet.call("down")
            await found.empty()
    finally:
        if below(budgets_daemon.process.pid):
            budgets_daemon.stop(signal.SIGKILL)


@pytest.fixture
def lead(stage: Stage) -> Lead:
    async def come_up(grant: str = "", *tables: str, limits: str = "", more: str = "") -> Puppet:
        head = f'[agents.lead]\nkind = "puppet"\ngrant = {{ {grant} }}\n{more}'
        await stage.fleet.up(project(PUPPET, head, *tables, grace="5s", limits=limits))
        agent = (await stage.standing("lead"))["lead"]
        return Puppet(stage, agent["id"], "lead")

    return come_up
