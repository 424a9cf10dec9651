"""What no signal ends, for as long as it lasts: it is named, blocks its own name alone, and is ended once it can be."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.e2e.stage import Stage, alive, project, terminated
from tests.fleet import RefusedError
from tests.house import PATIENCE, eventually, eventually_sync

#: A first generation freezer: what is frozen in it does not even die of SIGKILL, as a process that waits for a disk.
FREEZER = Path("/sys/fs/cgroup/freezer")


@pytest.fixture
def freezer() -> Iterator[Path]:
    """A cgroup whose processes can be frozen."""
    if not os.access(FREEZER / "cgroup.procs", os.W_OK):
        pytest.skip("takes a cgroup v1 freezer that we may use")
    group = FREEZER / f"fleet-supervisor-test-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        freeze(group, on=False)
        with contextlib.suppress(AssertionError):
            eventually_sync(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def freeze(group: Path, *, on: bool, pid: int | None = None) -> None:
    """Freeze or thaw all in it, after putting this process there."""
    if pid is not None:
        (group / "cgroup.procs").write_text(str(pid))
    state = "FROZEN" if on else "THAWED"
    (group / "freezer.state").write_text(state)
    eventually_sync(lambda: (group / "freezer.state").read_text().strip() == state)


async def test_an_unkillable_process_blocks_its_own_name_only_until_it_can_be_ended(
    stage: Stage, freezer: Path
) -> None:
    await stage.fleet.up(project("[agents.lead]\n[agents.lead.agents.stuck]\n[agents.lead.agents.fine]", grace="300ms"))
    tree = await stage.standing("lead", "stuck", "fine")
    stuck = tree["stuck"]["pid"]
    freeze(freezer, on=True, pid=stuck)
    ended = {}
    async with trio.open_nursery() as nursery:

        async def stop() -> None:
            answer = await stage.fleet.call("stop", agent="lead")
            ended.update({agent["name"]: agent["unkillable"] for agent in answer["ended"]})

        nursery.start_soon(stop)
        await eventually(lambda: terminated(tree["fine"]["pid"]), PATIENCE)
        assert (await stage.fleet.call("status"))["pid"] == stage.daemon  # and answers meanwhile
    assert ended == {"lead": [], "stuck": [stuck], "fine": []}
    assert alive(stuck)
    tree = await stage.fleet.tree()
    assert {tree[name]["state"] for name in ("lead", "stuck", "fine")} == {"stopped"}
    await stage.fleet.call("start", agent="lead")
    with pytest.raises(RefusedError, match="still lives"):
        await stage.fleet.call("start", agent="stuck")
    await stage.standing("lead", "fine")
    freeze(freezer, on=False)
    await eventually(lambda: terminated(stuck), PATIENCE)
    assert len(stage.below()) == 2
