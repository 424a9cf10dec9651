"""Turns of a real pi: what waits for them, what cuts them, and what a model's failure makes of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import trio

from tests.fleet import Fleet
from tests.house import below, eventually
from tests.model_server import ModelServer
from tests.pi.person import LEAD, MESSAGES, billed, counted, fleet_of, settled


async def failed(fleet: Fleet, text: str) -> dict[str, Any]:
    """What a task that does not end well comes to."""
    said: dict[str, Any] = await fleet.json("instruct", "lead", text, "--wait", code=1)
    return said


async def test_waiting_for_a_task_prints_its_final_text(server: ModelServer, tmp_path: Path) -> None:
    async with fleet_of(tmp_path) as fleet:
        assert await fleet.ctl("instruct", "lead", "[[say:It is green.]]", "--wait") == "It is green.\n"
        assert server.asked[0].startswith("You are lead (id a1), ")
        assert "\n\n[[say:" in server.asked[0]
        assert await fleet.ctl("instruct", "lead", "[[bash:echo ran > made]]", "--wait") == "It has run.\n"
        assert (tmp_path / "made").read_text() == "ran\n", "a main stands where its agents.toml says"
        assert server.asked[1] == "[[bash:echo ran > made]]", "who it is was said once"
        lead = (await fleet.tree())["lead"]
        assert counted(lead["own"]) == billed(server)
        assert (lead["own"]["turns"], lead["own"]["calls"], lead["tasks"]["done"]) == (2, 3, 2)


async def test_a_task_during_a_turn_waits_for_a_turn_of_its_own(server: ModelServer, tmp_path: Path) -> None:
    async with fleet_of(tmp_path) as fleet:
        await fleet.ctl("instruct", "lead", "[[hold:first]]")
        await eventually(lambda: server.asked)
        await fleet.state_of("lead", "working")
        async with trio.open_nursery() as nursery:
            told: list[str] = []

            async def second() -> None:
                told.append(await fleet.ctl("instruct", "lead", "[[say:Second.]]", "--wait"))

            nursery.start_soon(second)
            await fleet.until(lambda tree: tree["lead"]["queued"] == 1)
            assert len(server.asked) == 1
            server.release("first")
        assert told == ["Second.\n"]
        assert server.asked[1:] == ["[[say:Second.]]"]
        lead = (await settled(fleet, "lead"))["lead"]
        assert (lead["own"]["turns"], lead["tasks"]["done"]) == (2, 2)
        assert counted(lead["own"]) == billed(server)


async def test_a_spent_budget_cuts_the_turn_and_a_grant_wakes_what_waited(server: ModelServer, tmp_path: Path) -> None:
    async with fleet_of(tmp_path, LEAD + "grant = { tokens = 1000 }\n") as fleet:
        said = await failed(fleet, "[[bash:sleep 1000]]")
        assert said["status"] == "interrupted"
        await eventually(lambda: all("sleep" not in seen.argv for seen in below(fleet.process.pid)))
        lead = (await fleet.tree())["lead"]
        assert (lead["state"], lead["grant"]["tokens"]["over"]) == ("standing", billed_tokens(server) - 1000)
        assert counted(lead["own"]) == billed(server), "the call that used it up is booked"
        await fleet.ctl("instruct", "lead", "[[say:Awake.]]")
        tree = await fleet.until(lambda tree: tree["lead"]["queued"] > 0)
        assert (tree["lead"]["state"], len(server.asked)) == ("standing", 1)
        await fleet.ctl("grant", "lead", "--tokens", "10k")
        await fleet.until(lambda tree: tree["lead"]["tasks"]["done"] == 2)
        assert "[[say:Awake.]]" in server.asked[-1]
        assert "100 % of the tokens budget" in server.asked[-1], "it is told why it was cut"
        lead = (await settled(fleet, "lead"))["lead"]
        assert counted(lead["own"]) == billed(server)


async def test_a_budget_that_a_child_uses_up_cuts_its_parents_model_call(server: ModelServer, tmp_path: Path) -> None:
    async with fleet_of(tmp_path, LEAD + "grant = { tokens = 1000, fork = true }\n") as fleet:
        async with trio.open_nursery() as nursery:
            said: list[dict[str, Any]] = []

            async def held() -> None:
                said.append(await failed(fleet, "[[hold:never]]"))

            nursery.start_soon(held)
            await eventually(lambda: server.asked)
            await fleet.ctl("fork", "[[ok]]", "--parent", "lead", "--name", "tests", "--model", MESSAGES)
        assert said[0]["status"] == "interrupted"
        tree = await fleet.until(lambda tree: tree["tests"]["tasks"]["done"] == 1)
        # A call that was cut before its provider told a number has none.
        assert counted(tree["lead"]["own"]) == billed(server, "local/chat-model")
        assert counted(tree["tests"]["own"]) == billed(server, MESSAGES)
        assert len(server.asked) == 2, "the digest of the child's end waits: there is nothing left for a turn"


async def test_a_models_failure_is_the_tasks_and_no_crash(server: ModelServer, tmp_path: Path) -> None:
    async with fleet_of(tmp_path) as fleet:
        began = await fleet.state_of("lead", "standing")
        for code in (400, 500):
            said = await failed(fleet, f"[[err:{code}]]")
            assert said["status"] == "failed"
            assert f"as scripted: {code}" in said["error"]
            lead = await fleet.state_of("lead", "standing")
            assert f"as scripted: {code}" in lead["last"]
        assert server.asked.count("[[err:500]]") == 4, "pi tries a 500 again"
        assert await fleet.ctl("instruct", "lead", "[[say:Back.]]", "--wait") == "Back.\n"
        lead = (await fleet.tree())["lead"]
        assert (lead["pid"], lead["run"], lead["crashes"]) == (began["pid"], 1, 0)
        assert (lead["own"]["turns"], lead["own"]["calls"]) == (3, 1)
        assert counted(lead["own"]) == billed(server)


async def test_a_login_that_is_refused_parks_it(tmp_path: Path) -> None:
    async with fleet_of(tmp_path) as fleet:
        await fleet.ctl("instruct", "lead", "[[err:401]]")
        lead = await fleet.state_of("lead", "parked")
        assert (lead["crashes"], lead["tasks"]["done"]) == (0, 0)


async def test_a_rate_limit_is_shown_while_pi_waits_and_recovered_from(server: ModelServer, tmp_path: Path) -> None:
    settings = Path(os.environ["HOME"]) / ".pi" / "agent" / "settings.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"retry": {"baseDelayMs": 1500}}))
    async with fleet_of(tmp_path) as fleet:
        await fleet.ctl("instruct", "lead", "[[err:429,1,seen]]")
        # It stays until the next answer's end, however late we look.
        tree = await fleet.until(lambda tree: tree["lead"]["last"].startswith("retry 1 of 3 in 1.5s"))
        assert tree["lead"]["state"] == "working"
        server.release("seen")
        lead = (await fleet.until(lambda tree: tree["lead"]["tasks"]["done"] == 1))["lead"]
        assert (lead["status"], lead["state"], lead["crashes"]) == ("done", "standing", 0)
        assert (lead["own"]["turns"], lead["own"]["calls"]) == (1, 1)
        assert counted(lead["own"]) == billed(server)


async def test_a_pi_that_does_not_come_up_says_why(tmp_path: Path) -> None:
    async with fleet_of(tmp_path) as fleet:
        fork = ("fork", "Go", "--kind", "pi", "--name", "tests", "--model", "nowhere/nothing", "--wait")
        refused = (await fleet.json(*fork, code=1))["refused"]
        assert refused["message"].startswith(
            'tests did not come up: its program exited with 1: Error: Model "nowhere/nothing" not found.'
        )


def billed_tokens(server: ModelServer) -> int:
    """Every token of the bill."""
    return sum(call.tokens for call in server.bill)
