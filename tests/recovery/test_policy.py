"""What a crash leads to, with real programs: another run after a wait, within a budget that outlives the daemon."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import trio
import trio.lowlevel
from hypothesis import given
from hypothesis import strategies as st

from supervisor.core import facts
from supervisor.core.decide.run import CRASHES
from supervisor.core.requests import Fork
from tests.core.play import Play
from tests.core.play import agent as declared
from tests.core.play import fleet as declaring
from tests.recovery.lives import agent, alone, events, habit, kill, life, pids, project, settled

DIES = "start:\nexit 3\n"
RESTARTS = {"restart": "on-failure"}


def waits_or_gone(crashes: int, tree: dict[str, dict[str, Any]]) -> bool:
    """Whether it waits after more crashes than that, or waits no more."""
    return "bad" not in tree or (tree["bad"]["state"] == "backoff" and tree["bad"]["crashes"] > crashes)


async def test_a_crash_budget_outlives_the_daemon_and_its_end_is_shown_and_told(tmp_path: Path) -> None:
    bad = agent("bad", under="lead", instructions=habit(tmp_path, DIES), **RESTARTS)
    lives, crashes = 0, 0
    while crashes <= CRASHES:  # a machine that is very busy sees two crashes in one life
        async with life(tmp_path) as fleet:
            if not lives:
                await fleet.up(project(agent("lead"), bad))
            lives += 1
            tree = await fleet.until(partial(waits_or_gone, crashes))
            if waits := tree.get("bad"):
                crashes = waits["crashes"]
                assert (waits["state"], waits["run"], waits["pid"]) == ("backoff", crashes, None)
                assert waits["until"] > waits["since"]
                await kill(fleet)
                continue
            gone = tree["a2"]
            assert (gone["state"], gone["run"], gone["crashes"]) == ("gone", CRASHES + 1, CRASHES)
            assert gone["exit"]["code"] == 3
            told = [event["input"]["text"] for event in await events(fleet, "Queued") if event["agent"] == "a1"]
            assert "bad (a2) failed 6 times in a row and is given up. The last time it exited with 3." in told[-1]
            lead = (await settled(fleet, "lead"))["lead"]
            await alone(fleet, lead)
            break
    assert lives > 2


async def test_children_stay_while_their_parent_waits_to_be_started_again(tier: str, tmp_path: Path) -> None:
    async with life(tmp_path, tier) as fleet:
        await fleet.up(project(agent("lead", **RESTARTS), agent("kid", under="lead")))
        before = await settled(fleet, "lead", "kid")
        os.kill(before["lead"]["pid"], signal.SIGKILL)
        waits = await fleet.state_of("lead", "backoff")
        assert (waits["exit"]["signal"], waits["crashes"]) == (signal.SIGKILL, 1)
        assert before["kid"]["pid"] in pids(fleet)
        after = await settled(fleet, "lead", "kid")
        assert (after["kid"]["pid"], after["kid"]["run"]) == (before["kid"]["pid"], 1)
        assert (after["lead"]["run"], after["lead"]["id"]) == (2, before["lead"]["id"])


async def test_an_agent_stopped_while_it_waits_is_stopped_at_once_and_for_good(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("bad", instructions=habit(tmp_path, DIES), **RESTARTS), agent("other")))
        await fleet.state_of("bad", "backoff")
        assert (await fleet.call("stop", agent="bad"))["ended"][0]["state"] == "stopped"
        stopped = (await settled(fleet, "other"))["bad"]
        await kill(fleet)
    async with life(tmp_path) as fleet:
        tree = await settled(fleet, "other")
        assert (tree["bad"]["state"], tree["bad"]["run"]) == ("stopped", stopped["run"])
        assert (await events(fleet, "Starting"))[-1]["agent"] == tree["other"]["id"]


async def test_what_is_ended_on_purpose_counts_as_no_crash(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("lead", restart="always")))
        await settled(fleet, "lead")
        await fleet.call("restart", agent="lead")
        await fleet.call("stop", agent="lead")
        await fleet.call("start", agent="lead")
        await fleet.call("restart", agent="lead", branch=True)
        lead = (await settled(fleet, "lead"))["lead"]
        assert (lead["run"], lead["crashes"]) == (4, 0)
        assert await events(fleet, "BackedOff") == []


async def test_starts_of_one_name_at_the_same_time_are_one_process(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("lead")))
        await settled(fleet, "lead")
        await fleet.call("stop", agent="lead")
        answers: list[str] = []

        async def start() -> None:
            answers.append((await fleet.call("start", agent="lead"))["agent"]["id"])

        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(start)
        lead = (await settled(fleet, "lead"))["lead"]
        assert answers == ["a1"] * 8
        assert (lead["run"], pids(fleet)) == (2, {lead["pid"]})


async def test_a_program_that_never_says_that_it_is_ready_is_shown_and_nothing_is_done_about_it(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        silent = agent("silent", instructions=habit(tmp_path, "start:\nwait forever\n"), restart="always")
        await fleet.up(project(silent, agent("other")))
        tree = await fleet.until(
            lambda tree: tree["silent"]["pid"] is not None and tree["other"]["state"] == "standing"
        )

        async def of_it() -> list[dict[str, Any]]:
            recorded = (await fleet.call("events", since=0))["events"]
            return [event for event in recorded if event.get("agent") == tree["silent"]["id"]]

        before = await of_it()
        for _ in range(20):
            assert (await fleet.tree())["silent"]["state"] == "starting"
        assert await of_it() == before != []
        assert (await fleet.call("stop", agent="silent"))["ended"][0]["state"] == "stopped"


async def test_a_branch_that_restarts_is_no_end_of_the_daemon_or_of_what_is_above_it(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("lead"), agent("kid", under="lead"), agent("leaf", under="lead.agents.kid")))
        before = await settled(fleet, "lead", "kid", "leaf")
        await fleet.call("restart", agent="kid", branch=True)
        after = await settled(fleet, "lead", "kid", "leaf")
        assert {name: each["run"] for name, each in after.items()} == {"lead": 1, "kid": 2, "leaf": 2}
        assert after["lead"]["pid"] == before["lead"]["pid"]
        await fleet.call("restart", agent="lead")  # for a moment nobody runs above
        await settled(fleet, "lead", "kid", "leaf")


@given(st.randoms(use_true_random=True))
def test_budgets_of_a_chain_add_up_and_do_not_multiply(rnd: Random) -> None:
    """Each agent has its own: three levels that fail for ever come to at most three times the runs of one."""
    play = Play(declaring(declared("lead", restart="on-failure")))
    play.facts(Fork(kind="lines", name="kid", parent="lead", restart="on-failure"))
    play.facts(Fork(kind="lines", name="leaf", parent="kid", restart="on-failure"))
    agents = [*play.project.agents.values()]
    while living := [node for node in agents if node.live]:
        node = rnd.choice(living)
        if node.state == "backoff":
            play.tell(facts.Due(node.id, node.run))
        elif node.alive:
            play.tell(facts.Exited(node.id, node.run, 1, None, 5.0))
        for leaving in [each for each in agents if each.state == "stopping" and each.alive]:
            play.tell(facts.Exited(leaving.id, leaving.run, 0, None, 5.0))
    assert all(node.run <= CRASHES + 1 for node in agents)
    assert any(node.run == CRASHES + 1 for node in agents)
