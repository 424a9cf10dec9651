"""A real pi that is killed with its daemon: its conversation goes on, and the ledger is the bill."""

from __future__ import annotations

from pathlib import Path

from tests.fleet import Fleet
from tests.house import eventually, over
from tests.model_server import ModelServer
from tests.once.clis import facts
from tests.pi.person import LEAD, billed, counted, fleet_of


async def test_a_pi_killed_with_its_daemon_in_a_turn_goes_on_with_its_conversation_and_its_bill(
    tier: str, server: ModelServer, tmp_path: Path
) -> None:
    async with fleet_of(tmp_path, LEAD, tier) as fleet:
        await fleet.ctl("instruct", "lead", "[[say:Before.]]", "--wait")
        await fleet.ctl("instruct", "lead", f"[[bash:touch {tmp_path}/begun; sleep 1000]]")
        await eventually((tmp_path / "begun").exists)  # the call that asked for the tool is billed
        assert len(server.bill) == 2
        # What is not on record as read when the daemon dies is given again, and would wait for ever again.
        await facts(fleet, "Read", 2)
        fleet.process.kill()
        await over(fleet.process)
    async with fleet_of(tmp_path, LEAD, tier) as fleet:
        lead = await fleet.state_of("lead", "standing")
        assert (lead["run"], lead["tasks"]["done"], lead["crashes"]) == (2, 2, 0)
        assert await fleet.ctl("instruct", "lead", "[[say:After.]]", "--wait") == "After.\n"
        assert server.asked[-1] == "[[say:After.]]", "it knows who it is"
        assert server.bill[-1].n > 0, "it knows what it said before"
        own = await eventually(lambda: _equal(fleet, server), what="the ledger is the bill")
        assert own is not None
        assert own["turns"] == 3


async def _equal(fleet: Fleet, server: ModelServer) -> dict[str, int] | None:
    own: dict[str, int] = (await fleet.tree())["lead"]["own"]
    return own if counted(own) == billed(server) else None
