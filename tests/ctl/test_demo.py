"""The shipped fleet runs from the package alone, and takes everything with it when it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.ctl.branches import below
from tests.ctl.server import ctl
from tests.ctl.test_watch import LEAVE, Window, assert_given_back, window
from tests.house import below as processes_below
from tests.house import eventually_sync


@pytest.fixture
def directories() -> Iterator[Path]:
    """Where the demo lays its directories; none may be left, nor any state in the person's own places."""
    temporary = Path(os.environ["TMPDIR"])
    yield temporary
    assert not list(temporary.iterdir())
    for variable in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"):
        assert not list(Path(os.environ[variable]).iterdir())


def test_once_draws_a_tree_with_children_of_children_and_leaves_nothing(directories: Path) -> None:
    done = ctl("demo", "--once", "--json", cwd=directories)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert any(child["children"] for main in answer["agents"] for child in main["children"])
    assert sum(agent["own"]["input"] for agent in below(answer["agents"])) > 0


def drawn(opened: Window) -> None:
    opened.until(lambda seen: "builder" in seen)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_the_live_demo_gives_back_terminal_and_disk_on_a_signal(directories: Path, sent: int, code: int) -> None:
    assert directories.is_dir()
    with window("demo") as opened:
        drawn(opened)
        opened.process.send_signal(sent)
        opened.until(lambda seen: LEAVE in seen)
        assert opened.process.wait(60) == code
        assert_given_back(opened.seen)


def test_a_demo_that_was_killed_takes_its_daemon_and_agents_with_it(directories: Path) -> None:
    with window("demo") as opened:
        drawn(opened)
        opened.process.kill()
        opened.process.wait()
        eventually_sync(lambda: not [each for each in processes_below(os.getpid()) if each.state != "Z"])
    (left,) = directories.iterdir()
    assert left.name.startswith("fleet-demo-")
    shutil.rmtree(left)
