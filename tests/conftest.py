"""Fixtures for every test: a place of its own on disk, and proof that nothing of the test is left."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import settings

from supervisor.runtime import signals
from tests.house import Inventory, adopt_orphans, move_apart, move_back
from tests.model_server import ModelServer
from tests.processes.stage import cgroups_missing
from tests.shared import revive
from tests.systemd import user_manager
from tests.unprivileged import unprivileged

__all__ = ["unprivileged", "user_manager"]  # fixtures for every test, beside those below

_FAILED = pytest.StashKey[bool]()
_PLACES = {
    "TMPDIR": "tmp",
    "HOME": "home",
    "XDG_CONFIG_HOME": "home/config",
    "XDG_STATE_HOME": "home/state",
    "XDG_RUNTIME_DIR": "run",
}


settings.register_profile("house", deadline=None)  # a slow machine is no fault


def pytest_configure(config: pytest.Config) -> None:
    signals.settle()  # a run in the background ignores SIGINT and more, which what tests start must hear
    adopt_orphans()
    settings.load_profile("house")
    for name in ("COLUMNS", "LINES"):  # a terminal's size, which a worker has without a terminal
        os.environ.pop(name, None)
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker and (apart := move_apart(f"tests-{os.getpid()}-{worker}")) is not None:
        config.add_cleanup(lambda: move_back(apart))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    revive()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """pytest-trio raises the skip of an async test anew, without its reason: what was raised first has it."""
    try:
        return (yield)
    except pytest.skip.Exception as bare:
        first: BaseException | None = bare.__context__
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first if isinstance(first, pytest.skip.Exception) else bare from None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.fixture(autouse=True)
def place(request: pytest.FixtureRequest) -> Iterator[Path]:
    """The test's own directory, with a short path (a socket's may have 107 bytes), in which HOME, TMPDIR and the XDG
    directories point: no test touches what is the person's. At the test's end no process, descriptor, cgroup or file
    in TMPDIR may be left. With KEEP in the environment the directory of a failed test is kept."""
    root = Path(tempfile.mkdtemp(prefix="fleet-"))
    root.chmod(0o755)  # some tests act as another user
    kept = {name: os.environ.get(name) for name in _PLACES}
    for name, below in _PLACES.items():
        (root / below).mkdir(mode=0o700)
        os.environ[name] = str(root / below)
    tempfile.tempdir = None  # forget what TMPDIR was
    inventory = Inventory(root / "tmp")
    try:
        yield root
        left = inventory.leftovers()
    finally:
        for name, value in kept.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        tempfile.tempdir = None
        if not ("KEEP" in os.environ and request.node.stash.get(_FAILED, False)):
            shutil.rmtree(root)
    if left:
        pytest.fail(f"{request.node.nodeid} left behind: " + "; ".join(left), pytrace=False)


@pytest.fixture
def tmp_path(place: Path) -> Path:
    """An empty directory in the test's own place, which goes with it."""
    room = place / "room"
    room.mkdir()
    return room


@pytest.fixture(scope="package", params=["cgroup", "warden"])
def tier(request: pytest.FixtureRequest) -> Literal["cgroup", "warden"]:
    """Each tier there is; every promise holds in both."""
    if request.param == "warden":
        return "warden"
    if why := cgroups_missing():
        pytest.skip(f"no cgroup tier here: {why}")
    return "cgroup"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """What every model of the person's agent CLIs is answered by."""
    with ModelServer() as running:
        yield running
