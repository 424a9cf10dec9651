"""Nothing of a person's work is deleted, however an agent ends: neither where it stood nor what it printed."""

from __future__ import annotations

from pathlib import Path

from tests.recovery.lives import agent, home, kill, life, project, settled

WRITES = "script:\nrun echo draft > draft.txt\nsay it is written\nleave daemon sleep 1000\nreply done"


async def test_what_agents_made_and_printed_outlives_every_end_of_theirs(tier: str, tmp_path: Path) -> None:
    names = ("disbanded", "stopped", "killed", "downed")
    for name in names:
        (tmp_path / name).mkdir()
    async with life(tmp_path, tier) as fleet:
        await fleet.up(project(*(agent(name, directory=str(tmp_path / name), task=WRITES) for name in names)))
        await fleet.until(lambda tree: all(tree[name]["tasks"]["done"] == 1 for name in names))
        agents = [each["id"] for each in (await fleet.tree()).values()]
        await fleet.call("disband", agent="disbanded")
        await fleet.call("stop", agent="stopped")
        await kill(fleet)
    async with life(tmp_path, tier) as fleet:
        await settled(fleet, "killed", "downed")
        await fleet.call("down")
    for name in names:
        assert (tmp_path / name / "draft.txt").read_text() == "draft\n"
    for agent_id in agents:
        kept = {path.name for path in home(fleet, agent_id).iterdir()}
        assert {"transcript.jsonl", "stderr.log"} <= kept
        assert "it is written" in (home(fleet, agent_id) / "transcript.jsonl").read_text()
