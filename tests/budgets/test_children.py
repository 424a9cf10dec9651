"""A task that waits for those of the agent's children, with real programs: who is told what, and when a caller that
waits hears of the end."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import trio

from tests.budgets.conftest import Lead
from tests.budgets.puppet import PUPPET, TURN_ENDED, Puppet
from tests.e2e.stage import Stage, project
from tests.fleet import running
from tests.house import PATIENCE, over


def said(text: str) -> dict[str, Any]:
    """The end of a turn, with these words."""
    return TURN_ENDED | {"text": text}


async def test_a_caller_that_waits_hears_one_end_after_the_last_child_and_the_turn_that_it_wakes(
    lead: Lead, stage: Stage
) -> None:
    top = await lead()
    answers: list[Any] = []

    async def instruct() -> None:
        answers.append(await stage.fleet.call("instruct", agent="lead", text="Build it.", wait=True))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(instruct)
        await top.hears("task", "Build it.")
        first, second = await top.child("Left.", name="left"), await top.child("Right.", name="right")
        await top.say(said("I have asked both."))
        shown = await top.becomes("waiting")
        assert shown["waiting_on"] == f"left ({first.id}), right ({second.id})"
        assert "on left" in await stage.fleet.ctl("tree")
        for child, words in ((first, "left is done"), (second, "right is done")):
            await child.hears("brief")
            await child.say(said(words))
            await top.hears("digest", words)
            assert answers == []
            await top.say(said(f"I know that {words}."))
    (answer,) = answers
    assert (answer["status"], answer["text"]) == ("done", "I know that right is done.")
    assert (await top.shown())["tasks"]["done"] == 1


async def test_a_child_that_a_person_ends_is_told_of_and_the_task_ends_with_that(lead: Lead, stage: Stage) -> None:
    top = await lead(more='task = "Build it."\n')
    child = await top.child("Go.", name="child")
    await child.hears("brief")
    await top.hears("brief")
    await top.say(said("Asked."))
    await top.becomes("waiting")
    await stage.fleet.call("disband", agent="child")
    await top.hears("digest", "interrupted")
    await top.say(said("So be it."))
    shown = await top.becomes("standing")
    assert (shown["status"], shown["summary"], shown["tasks"]["done"]) == ("done", "So be it.", 1)


async def test_a_task_that_is_given_meanwhile_is_not_kept_waiting_by_children(lead: Lead, stage: Stage) -> None:
    top = await lead(more='task = "Build it."\n')
    await (await top.child("Watch for ever.", name="watch")).hears("brief")
    await top.hears("brief")
    await top.say(said("It watches."))
    await top.becomes("waiting")
    await stage.fleet.call("instruct", agent="lead", text="Something else.")
    await top.hears("task", "Something else.")
    ends = [event for event in (await stage.fleet.call("events", since=0))["events"] if event["fact"] == "TaskEnded"]
    assert [(end["agent"], end["status"]) for end in ends] == [(top.id, "superseded")]


async def test_no_wait_outlives_the_daemon(tmp_path: Path) -> None:
    toml = project(PUPPET, '[agents.lead]\nkind = "puppet"\ntask = "Build it."\n')
    with trio.fail_after(3 * PATIENCE):
        async with running(tmp_path) as fleet:
            stage = Stage(fleet, tmp_path)
            await fleet.up(toml)
            top = Puppet(stage, (await stage.standing("lead"))["lead"]["id"], "lead")
            await top.hears("brief")
            await (await top.child("Go.", name="child")).hears("brief")
            await top.say(said("Asked."))
            await top.becomes("waiting")
            os.kill(fleet.process.pid, signal.SIGKILL)
            await over(fleet.process)
        async with running(tmp_path) as fleet:
            stage = Stage(fleet, tmp_path)
            tree = await fleet.until(lambda tree: {agent["state"] for agent in tree.values()} == {"standing"})
            assert {agent["status"] for agent in tree.values()} == {"interrupted"}
