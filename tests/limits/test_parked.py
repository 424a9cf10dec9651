"""A provider that takes no more, met by real programs under the real daemon: parked with an end, counted as nothing,
and the task goes on."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.fleet import RefusedError
from tests.limits.fleets import WORKS, is_parked, meets, texts
from tests.recovery.lives import agent, alone, events, habit, kill, life, notes, pids, project, settled


async def test_a_limit_parks_until_its_end_and_the_task_goes_on_in_the_same_conversation(
    tier: str, tmp_path: Path
) -> None:
    async with life(tmp_path, tier) as fleet:
        kid = agent("kid", under="lead", instructions=habit(tmp_path, WORKS), grant={"turns": 10})
        await fleet.up(project(agent("lead"), kid))
        await settled(fleet, "lead", "kid")
        await fleet.call("instruct", agent="kid", text=meets())
        shown = await fleet.state_of("kid", "parked")
        is_parked(shown, "quota")
        assert shown["pid"] is not None, "its program lives on"
        assert "usage limit reached" in shown["limit"]["text"]
        await fleet.call("instruct", agent="kid", text="And then this.")
        assert (await fleet.tree())["kid"]["queued"] == 1, "what is asked meanwhile waits"
        drawn = await fleet.ctl("tree")
        assert "parked until " in drawn
        assert "(quota)" in drawn
        assert (await fleet.json("tree"))["agents"][0]["children"][0]["limit"]["sort"] == "quota"
        await fleet.call("start", agent="kid")
        after = (await fleet.until(lambda tree: tree["kid"]["tasks"]["done"] == 2))["kid"]
        assert (after["run"], after["pid"], after["crashes"]) == (1, shown["pid"], 0)
        assert after["own"]["turns"] == 2, "the turn that met the limit is not charged twice"
        assert (after["grant"]["turns"]["spent"], after["grant"]["turns"]["held"]) == (2, 10)
        (told,) = [text for text in await texts(fleet, "a1") if "parked" in text]
        assert "kid (a2) is parked for 1h5" in told or "kid (a2) is parked for 2h" in told
        assert "UTC" in told
        (on,) = [text for text in await texts(fleet, "a2") if "provider" in text]
        assert "Go on with your task where you were: script: limit quota" in on


async def test_a_program_that_exits_at_its_limit_starts_again_when_that_ends_and_not_before(
    tier: str, tmp_path: Path
) -> None:
    async with life(tmp_path, tier) as fleet:
        await fleet.up(project(agent("once", instructions=habit(tmp_path, WORKS), restart="never")))
        await settled(fleet, "once")
        await fleet.call("instruct", agent="once", text=meets("rate", "in 2s", "exit 1"))
        shown = await fleet.state_of("once", "parked")
        assert shown["limit"]["sort"] == "rate"
        after = (await fleet.until(lambda tree: tree["once"]["tasks"]["done"] == 1))["once"]
        assert (after["run"], after["crashes"], after["state"]) == (2, 0, "standing")
        (started, again) = await events(fleet, "Started")
        (over,) = await events(fleet, "Due")
        assert started["at"] < shown["until"] <= over["at"] <= again["at"]
        assert await events(fleet, "BackedOff") == []
        assert [event["status"] for event in await events(fleet, "TaskEnded")] == ["done"]


@pytest.mark.parametrize("named", ["", " (Asia/Tokyo)"])
async def test_an_exit_that_says_until_a_time_of_day_parks_until_then_in_its_zone_and_is_no_restart(
    tmp_path: Path, named: str
) -> None:
    # Neither zone ever sets its clock.
    zone = ZoneInfo(named.strip(" ()") or "Asia/Kolkata")
    end = datetime.fromtimestamp(time.time() + 7200, zone).replace(second=0, microsecond=0)
    says = f"limit until {end:%H:%M}{named}"
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("kid", restart="on-failure", env={"TZ": "Asia/Kolkata"})))
        await settled(fleet, "kid")
        await fleet.call("instruct", agent="kid", text=f'script:\nlimit quota "{says}"\nexit 1')
        shown = await fleet.state_of("kid", "parked")
        assert shown["until"] == end.timestamp()
        assert says in shown["limit"]["text"]
        assert (shown["run"], shown["crashes"], shown["tasks"]["done"]) == (1, 0, 0)
        shown = (await fleet.until(lambda tree: tree["kid"]["pid"] is None))["kid"]
        assert (shown["state"], shown["until"], shown["run"]) == ("parked", end.timestamp(), 1)
        assert await events(fleet, "BackedOff") == []
        assert "parked until " in await fleet.ctl("tree")


#: Meets a limit with the first text it is given, and leaves; keeps no conversation.
FORGETS = """
while read -r line; do
  if [ -e met ]; then printf '%s' "$line" >given; echo '{"fleet":"done"}'; continue; fi
  touch met
  echo '{"fleet":"limited","sort":"rate","until":"in 1s"}'
  exit 1
done
"""


async def test_a_program_that_keeps_no_conversation_is_given_the_whole_task_again(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        kind = f"[kinds.forgets]\ncommand = {json.dumps(['sh', '-c', FORGETS])}\nprotocol = 'lines'\n"
        await fleet.up(project(agent("any", kind="forgets", directory=str(tmp_path)), kind))
        await fleet.state_of("any", "standing")
        await fleet.call("instruct", agent="any", text="Count them.\nThen say how many.")
        after = (await fleet.until(lambda tree: tree["any"]["tasks"]["done"] == 1))["any"]
        assert (after["run"], after["crashes"], after["own"]["turns"]) == (2, 0, 1)
        given = json.loads((tmp_path / "given").read_text())
        assert "do this task.\nCount them.\nThen say how many." in given["text"]
        assert given["you"]["words"], "and is told who it is"


async def test_stop_start_restart_and_disband_find_a_parked_agent_as_any_other(tier: str, tmp_path: Path) -> None:
    async with life(tmp_path, tier) as fleet:
        names = ("stops", "restarts", "leaves")
        await fleet.up(project(*(agent(name, instructions=habit(tmp_path, WORKS)) for name in names)))
        await settled(fleet, *names)
        for name in names:
            await fleet.call("instruct", agent=name, text=meets())
            is_parked(await fleet.state_of(name, "parked"), "quota")
        await fleet.call("stop", agent="stops")
        stopped = (await fleet.tree())["stops"]
        assert (stopped["state"], stopped["tasks"]["done"], stopped["status"]) == ("stopped", 1, "interrupted")
        assert (stopped["until"], stopped["limit"]) == (None, None)
        await fleet.call("start", agent="stops")
        await fleet.call("restart", agent="restarts")
        on = (await fleet.until(lambda tree: tree["restarts"]["tasks"]["done"] == 1))["restarts"]
        assert (on["run"], on["status"]) == (2, "done")
        await fleet.call("disband", agent="leaves")
        shown = await settled(fleet, "stops", "restarts")
        await alone(fleet, shown["stops"], shown["restarts"])


async def test_only_a_person_has_a_parked_agent_tried_before_its_time(tmp_path: Path) -> None:
    tries = habit(tmp_path, "ctl start kid\nexpect state\nctl restart kid\nexpect state\ndone refused")
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("lead", instructions=tries), agent("kid", under="lead")))
        await settled(fleet, "lead", "kid")
        await fleet.call("instruct", agent="kid", text=meets())
        await fleet.state_of("kid", "parked")
        await fleet.call("instruct", agent="lead", text="Try it.")
        lead = (await fleet.until(lambda tree: tree["lead"]["tasks"]["done"] == 1))["lead"]
        assert lead["status"] == "done", lead["last"]
        assert (await fleet.tree())["kid"]["state"] == "parked"
        with pytest.raises(RefusedError):
            await fleet.call("start", agent="nobody")


async def test_children_stay_and_digests_wait_while_their_parent_is_parked(tier: str, tmp_path: Path) -> None:
    async with life(tmp_path, tier) as fleet:
        await fleet.up(project(agent("lead", instructions=habit(tmp_path, WORKS)), agent("kid", under="lead")))
        before = await settled(fleet, "lead", "kid")
        await fleet.call("instruct", agent="lead", text=meets(end="exit 1"))
        await fleet.until(lambda tree: tree["lead"]["state"] == "parked" and tree["lead"]["pid"] is None)
        assert pids(fleet) == {before["kid"]["pid"]}
        await fleet.call("instruct", agent="kid", text="Go on.")
        await fleet.until(lambda tree: tree["kid"]["tasks"]["done"] == 1)
        waits = (await fleet.tree())["lead"]
        assert (waits["state"], waits["queued"]) == ("parked", 1)
        await fleet.call("start", agent="lead")
        await settled(fleet, "lead", "kid")
        (_, handed) = [event["inputs"] for event in await events(fleet, "Handed") if event["agent"] == "a1"]
        assert len(handed) == 2, "the digest that waited, and the task that goes on"


async def test_a_death_of_the_daemon_ends_no_park_and_starts_nothing(tier: str, tmp_path: Path) -> None:
    async with life(tmp_path, tier) as fleet:
        await fleet.up(project(agent("lead", instructions=habit(tmp_path, WORKS)), agent("kid", under="lead")))
        await settled(fleet, "lead", "kid")
        await fleet.call("instruct", agent="lead", text=meets())
        before = await fleet.state_of("lead", "parked")
        await kill(fleet)
    async with life(tmp_path, tier) as fleet:
        shown = await settled(fleet, "kid")
        lead = shown["lead"]
        is_parked(lead, "quota")
        assert (lead["until"], lead["pid"], lead["run"]) == (before["until"], None, before["run"])
        await alone(fleet, shown["kid"])
        await fleet.call("start", agent="lead")
        await fleet.until(lambda tree: tree["lead"]["tasks"]["done"] == 1)
        assert not any(line.startswith("again ") for line in notes(fleet, "a1"))


async def test_a_parked_program_that_dies_is_no_crash(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("kid", restart="on-failure", instructions=habit(tmp_path, WORKS))))
        await settled(fleet, "kid")
        await fleet.call("instruct", agent="kid", text=meets())
        shown = await fleet.state_of("kid", "parked")
        os.kill(shown["pid"], signal.SIGKILL)
        await fleet.until(lambda tree: tree["kid"]["pid"] is None)
        is_parked((await fleet.tree())["kid"], "quota")
        await fleet.call("start", agent="kid")
        after = (await fleet.until(lambda tree: tree["kid"]["tasks"]["done"] == 1))["kid"]
        assert (after["run"], after["crashes"]) == (2, 0)


@pytest.mark.parametrize("until", ["whenever", "3pm (Mars/Base)", "2199-01-01T00:00:00Z", "in 400 weeks", ""])
async def test_an_end_that_nobody_understands_is_ours_and_shown(tmp_path: Path, until: str) -> None:
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("kid")))
        await settled(fleet, "kid")
        await fleet.call("instruct", agent="kid", text=meets(until=until))
        is_parked(await fleet.state_of("kid", "parked"), "quota")


async def test_a_program_that_says_it_meets_limits_for_ever_is_bounded_and_shown(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        lies = habit(tmp_path, 'limit rate "until=in 0s" again\nlimit whatever\nfail 429')
        await fleet.up(project(agent("kid", instructions=lies)))
        await settled(fleet, "kid")
        await fleet.call("instruct", agent="kid", text="Go.")
        # Each wait is twice the one before, however soon it says to come back.
        await fleet.until(lambda tree: tree["kid"]["garbled"] >= 3)
        parks = [event["until"] - event["at"] for event in await events(fleet, "Parked")]
        assert [round(wait) for wait in parks[:3]] == [1, 2, 4]
        assert (await fleet.tree())["kid"]["crashes"] == 0
        assert "unreadable lines" in await fleet.ctl("status")
