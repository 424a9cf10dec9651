"""Runs of a real pi: killed, stopped and started, released; its conversation goes on, and nothing is counted twice."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import trio

from tests.house import below, eventually
from tests.model_server import ModelServer
from tests.once.clis import facts
from tests.pi.person import LEAD, billed, counted, fleet_of

AGAIN = LEAD + 'restart = "on-failure"\n'


async def test_a_pi_killed_in_a_turn_comes_back_with_its_conversation(server: ModelServer, tmp_path: Path) -> None:
    async with fleet_of(tmp_path, AGAIN) as fleet:
        await fleet.ctl("instruct", "lead", "[[say:Before.]]", "--wait")
        async with trio.open_nursery() as nursery:
            told: list[str] = []

            async def cut() -> None:
                told.append(await fleet.ctl("instruct", "lead", "[[hold:never]]", "--wait", "--json", code=1))

            nursery.start_soon(cut)
            await eventually(lambda: len(server.asked) == 2)
            os.kill((await fleet.tree())["lead"]["pid"], signal.SIGKILL)
            # It is not to be seen in the tree for longer than a second.
            (backing,) = await facts(fleet, "BackedOff")
        assert '"interrupted"' in told[0]
        (exited,) = await facts(fleet, "Exited")
        assert (exited["signal"], backing["crashes"]) == (signal.SIGKILL, 1)
        await fleet.until(lambda tree: tree["lead"]["run"] == 2)
        lead = await fleet.state_of("lead", "standing")
        assert lead["crashes"] == 1
        assert await fleet.ctl("instruct", "lead", "[[say:After.]]", "--wait") == "After.\n"
        assert server.asked[-1] == "[[say:After.]]", "it knows who it is"
        assert server.bill[-1].n == 1, "it knows what it said before"
        lead = (await fleet.tree())["lead"]
        assert counted(lead["own"]) == billed(server)
        assert (lead["own"]["turns"], lead["own"]["calls"], lead["tasks"]["done"]) == (3, 2, 3)


async def test_a_pi_whose_conversation_is_lost_is_told_again_who_it_is(server: ModelServer, tmp_path: Path) -> None:
    async with fleet_of(tmp_path) as fleet:
        await fleet.ctl("instruct", "lead", "[[say:Before.]]", "--wait")
        await fleet.ctl("stop", "lead")
        (kept,) = (Path(os.environ["HOME"]) / ".pi" / "agent" / "sessions").glob("*/*.jsonl")
        kept.unlink()
        await fleet.ctl("start", "lead")
        await fleet.ctl("instruct", "lead", "[[say:After.]]", "--wait")
        assert server.asked[-1].startswith("You are lead (id a1), ")
        assert [call.n for call in server.bill] == [0, 0]
        assert counted((await fleet.tree())["lead"]["own"]) == billed(server)


async def test_a_stopped_pi_is_started_with_its_conversation(server: ModelServer, tmp_path: Path) -> None:
    async with fleet_of(tmp_path) as fleet:
        await fleet.ctl("instruct", "lead", "[[say:Before.]]", "--wait")
        stopped = (await fleet.json("stop", "lead"))["ended"]
        assert [(agent["state"], agent["killed"]) for agent in stopped] == [("stopped", [])]
        assert (await fleet.json("start", "lead"))["state"] == "standing"
        assert await fleet.ctl("instruct", "lead", "[[say:After.]]", "--wait") == "After.\n"
        await fleet.ctl("restart", "lead")
        assert await fleet.ctl("instruct", "lead", "[[say:Again.]]", "--wait") == "Again.\n"
        assert [call.n for call in server.bill] == [0, 1, 2]
        assert server.asked[1:] == ["[[say:After.]]", "[[say:Again.]]"], "who it is was said once"
        lead = (await fleet.tree())["lead"]
        assert (lead["run"], lead["crashes"]) == (3, 0)
        assert counted(lead["own"]) == billed(server)


async def test_a_pi_is_released_after_its_tasks(server: ModelServer, tmp_path: Path) -> None:
    async with fleet_of(tmp_path, LEAD + "grant = { tokens = 100_000, fork = true }\n") as fleet:
        await fleet.state_of("lead", "standing")
        tests = ("--parent", "lead", "--name", "tests", "--tokens", "20k", "--max-tasks", "2")
        await fleet.ctl("fork", "[[say:One.]]", *tests)
        child = (await fleet.until(lambda tree: "tests" in tree and tree["tests"]["tasks"]["done"] == 1))["tests"]
        assert await fleet.ctl("instruct", "tests", "[[say:Two.]]", "--wait") == "Two.\n"
        tree = await fleet.until(lambda tree: tree.get(child["id"], child)["state"] == "gone")
        assert below(fleet.process.pid)[0].pid == tree["lead"]["pid"]
        assert len(below(fleet.process.pid)) == 1
        await fleet.until(lambda tree: tree["lead"]["own"]["turns"] == 2 and tree["lead"]["state"] == "standing")
        assert "tests (a2) ended task 2 of 2: done. Two. It is released now." in server.asked[-1]
        lead = (await fleet.tree())["lead"]
        spent = sum(call.tokens for call in server.bill)
        assert lead["grant"]["tokens"] == {
            "held": 100_000, "spent": spent, "reserved": 0, "free": 100_000 - spent, "over": 0,
        }  # fmt: skip
        assert counted(lead["branch"]) == billed(server)


async def test_a_pi_has_the_tools_of_its_grant_and_no_others(server: ModelServer, tmp_path: Path) -> None:
    rights = 'grant = { tools = ["read", "bash"], fork = true }\n'
    async with fleet_of(tmp_path, LEAD + 'task = "[[ok]]"\n' + rights) as fleet:
        await fleet.until(lambda tree: tree["lead"]["tasks"]["done"] == 1)
        await fleet.ctl("fork", "[[bash:echo ran > made]]", "--parent", "lead", "--name", "reader", "--tool", "read")
        await fleet.until(lambda tree: "reader" in tree and tree["reader"]["tasks"]["done"] == 1)
        await fleet.until(lambda tree: tree["lead"]["own"]["turns"] == 2 and tree["lead"]["state"] == "standing")
        each = zip(server.asked, server.tools, strict=True)
        offered = {said.partition(" (id ")[0]: sorted(tools) for said, tools in each if said.startswith("You are ")}
        assert offered == {"You are lead": ["bash", "read"], "You are reader": ["read"]}
        assert not (tmp_path / "made").exists()
