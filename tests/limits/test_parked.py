"""A provider that takes no more, met by real programs under the real daemon: parked with an end, counted as nothing, and
the task goes on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.fleet import Fleet, RefusedError
from tests.house import eventually
from tests.recovery.lives import agent, alone, events, habit, kill, life, memory, pids, project, recorded, settled

#: Meets the limit that the file names when it is there, else does its task.
MEETS = "run test -e {} && echo limited || echo free\nexpect-free"
LATER = "in 2 hours"


def limited(sort: str = "quota", until: str = LATER, end: str = "fail 429") -> str:
    """A task that meets a limit."""
    return f'script:\nlimit {sort} "until={until}" "usage limit reached"\n{end}\n'


async def texts(fleet: Fleet, name: str) -> list[str]:
    """The digests that were queued for an agent."""
    return [event["input"]["text"] for event in await events(fleet, "Queued") if event["agent"] == name]


def parked(shown: dict[str, Any], sort: str) -> None:
    assert shown["state"] == "parked"
    assert shown["limit"]["sort"] == sort
    assert shown["until"] > time.time() + 3000
    assert (shown["crashes"], shown["tasks"]["done"]) == (0, 0)


async def test_a_limit_parks_until_its_end_and_the_task_goes_on_in_the_same_conversation(
    tier: str, tmp_path: Path
) -> None:
    async with life(tmp_path, tier) as fleet:
        await fleet.up(project(agent("lead"), agent("kid", under="lead", instructions=habit(tmp_path, "done went-on"))))
        await settled(fleet, "lead", "kid")
        await fleet.call("instruct", agent="kid", text=limited())
        shown = await fleet.state_of("kid", "parked")
        parked(shown, "quota")
        assert shown["pid"] is not None, "its program lives on"
        assert "usage limit reached" in shown["limit"]["text"]
        await fleet.call("instruct", agent="kid", text="And then this.")
        assert (await fleet.tree())["kid"]["queued"] == 1, "what is asked meanwhile waits"
        assert "parked" in await fleet.ctl("tree")
        await fleet.call("start", agent="kid")
        after = (await fleet.until(lambda tree: tree["kid"]["tasks"]["done"] == 2))["kid"]
        assert (after["run"], after["pid"], after["crashes"]) == (1, shown["pid"], 0)
        assert after["own"]["turns"] == 2, "the turn that met the limit is not charged twice"
        (told,) = [text for text in await texts(fleet, "a1") if "parked" in text]
        assert "kid (a2) is parked for" in told
        assert "UTC" in told
        (on,) = [text for text in await texts(fleet, "a2") if "provider" in text]
        assert "Go on with your task where you were: script: limit quota" in on


async def test_a_program_that_exits_at_its_limit_starts_again_when_that_ends_and_not_before(
    tier: str, tmp_path: Path
) -> None:
    at = tmp_path / "open"
    async with life(tmp_path, tier) as fleet:
        once = agent("once", instructions=habit(tmp_path, "done went-on"), restart="never")
        await fleet.up(project(once))
        await settled(fleet, "once")
        await fleet.call("instruct", agent="once", text=limited("rate", "in 2s", "exit 1"))
        shown = await fleet.state_of("once", "parked")
        assert shown["limit"]["sort"] == "rate"
        after = (await fleet.until(lambda tree: tree["once"]["tasks"]["done"] == 1))["once"]
        assert (after["run"], after["crashes"], after["state"]) == (2, 0, "standing")
        (started, again) = await events(fleet, "Started")
        (over,) = await events(fleet, "Due")
        assert started["at"] < shown["until"] <= over["at"] <= again["at"]
        assert await events(fleet, "BackedOff") == []
        assert [event["status"] for event in await events(fleet, "TaskEnded")] == ["done"]
    assert not at.exists()
