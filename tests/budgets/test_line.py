"""Forks that wait in line, asked for by real clients: who is first, who hangs up, and what ends a wait."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.budgets.conftest import Lead
from tests.budgets.puppet import TURN_ENDED, Puppet
from tests.e2e.stage import Stage, project
from tests.fleet import CTL, Fleet, RefusedError, running
from tests.house import PATIENCE, eventually


async def line(fleet: Fleet) -> list[dict[str, Any]]:
    """The forks that wait now."""
    found: list[dict[str, Any]] = (await fleet.call("tree"))["line"]
    return found


async def waits(fleet: Fleet, many: int) -> None:
    """Until so many wait."""

    async def so_many() -> bool:
        return len(await line(fleet)) == many

    await eventually(so_many, PATIENCE, f"{many} wait in line")


@asynccontextmanager
async def asking(fleet: Fleet, *args: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    """A person's client that waits with its fork; ended at the latest here."""
    command = [*CTL, "fork", "--kind", "sleep", "--queue", *args]
    client = subprocess.Popen(
        command, cwd=fleet.at, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        yield client
    finally:
        client.kill()
        client.communicate()


async def ended(client: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Its exit code, stdout and stderr."""
    out, err = await trio.to_thread.run_sync(client.communicate, abandon_on_cancel=True)
    return client.returncode, out.decode(), err.decode()


async def full(lead: Lead, stage: Stage, grant: str = "children = 1") -> Puppet:
    """The lead, with the one child that it may have: `taken`."""
    top = await lead(grant)
    await stage.fork(parent="lead", name="taken")
    return top


async def test_who_waits_in_line_is_born_in_the_order_of_asking_as_soon_as_there_is_room(
    lead: Lead, stage: Stage
) -> None:
    await full(lead, stage)
    names = ["first", "second", "third"]
    born: list[str] = []

    async def fork(name: str) -> None:
        answer = await stage.fleet.call("fork", kind="sleep", parent="lead", name=name, queue=True)
        assert answer["waited"] > 0
        born.append(answer["agent"]["name"])

    async with trio.open_nursery() as nursery:
        for number, name in enumerate(names, 1):
            nursery.start_soon(fork, name)
            await waits(stage.fleet, number)
        shown = await line(stage.fleet)
        assert [one["limit"] for one in shown] == ["children"] * 3
        assert {one["holder"]["name"] for one in shown} == {"lead"}
        assert "3 forks wait for room: children of lead" in await stage.fleet.ctl("tree")
        assert "3 forks wait for room" in await stage.fleet.ctl("status")
        for number, name in enumerate(["taken", *names[:-1]]):
            await stage.fleet.call("disband", agent=name)
            await waits(stage.fleet, len(names) - number - 1)
            await stage.standing(names[number])
    assert born == names


async def test_a_client_that_is_interrupted_leaves_the_line(lead: Lead, stage: Stage) -> None:
    await full(lead, stage)
    for number in (signal.SIGINT, signal.SIGKILL):
        async with asking(stage.fleet, "--parent", "lead") as client:
            await waits(stage.fleet, 1)
            client.send_signal(number)
            code, _, _ = await ended(client)
            assert code in (130, -signal.SIGKILL)
            await waits(stage.fleet, 0)
    await stage.fleet.call("disband", agent="taken")
    tree = await stage.fleet.tree()
    assert [agent["name"] for agent in tree.values() if agent["state"] != "gone"] == ["lead"], "nobody asks any more"


async def test_an_agents_own_fork_waits_in_its_shell_until_there_is_room(lead: Lead, stage: Stage) -> None:
    top = await full(lead, stage, "descendants = 1")
    answers: list[Any] = []

    async def fork() -> None:
        answers.append(await top.ctl("fork", "--kind", "sleep", "--name", "next", "--queue", "--wait"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(fork)
        await waits(stage.fleet, 1)
        assert (await line(stage.fleet))[0]["by"] == top.id
        await stage.fleet.call("disband", agent="taken")
    code, answer = answers[0]
    assert (code, answer["agent"]["name"]) == (0, "next")
    assert (await stage.standing("next"))["next"]["parent"] == top.id


async def test_the_end_of_the_parent_is_the_answer_to_those_who_wait_under_it(lead: Lead, stage: Stage) -> None:
    for verb, refusal in (("stop", "takes no children"), ("disband", "takes no children"), ("down", "not up")):
        await full(lead, stage)
        async with asking(stage.fleet, "--parent", "lead", "--json") as client:
            await waits(stage.fleet, 1)
            await stage.fleet.call(verb, **({} if verb == "down" else {"agent": "lead"}))
            code, out, _ = await ended(client)
            assert code == 1
            assert refusal in json.loads(out)["refused"]["message"]
            if verb != "down":
                assert await line(stage.fleet) == []
                await stage.fleet.call("down")


async def test_a_timeout_ends_the_wait_and_gives_the_place_up(lead: Lead, stage: Stage) -> None:
    await full(lead, stage)
    said = await stage.fleet.ctl(
        "fork", "--kind", "sleep", "--parent", "lead", "--queue", "--timeout", "50ms", "--json", code=4
    )
    assert "no room became free" in said
    assert await line(stage.fleet) == []


async def test_more_room_by_a_grant_or_by_a_reload_is_taken_at_once(lead: Lead, stage: Stage) -> None:
    await full(lead, stage)
    async with asking(stage.fleet, "--parent", "lead", "--name", "granted") as client:
        await waits(stage.fleet, 1)
        await stage.fleet.ctl("grant", "lead", "--children", "2")
        assert (await ended(client))[0] == 0
    file = stage.room / "agents.toml"
    capped = file.read_text().replace("forks_per_minute = 100000", "forks_per_minute = 100000\nagents = 3")
    await stage.fleet.up(capped)
    async with asking(stage.fleet, "--name", "reloaded") as client:
        await waits(stage.fleet, 1)
        assert "agents of the project" in await stage.fleet.ctl("tree")
        file.write_text(capped.replace("agents = 3", "agents = 4"))
        await stage.fleet.ctl("reload")
        code, out, _ = await ended(client)
        assert code == 0
        assert out.startswith("reloaded (a")
    assert {"granted", "reloaded"} <= (await stage.fleet.tree()).keys()


async def test_a_release_by_its_task_budget_makes_room_for_who_waits(lead: Lead, stage: Stage) -> None:
    top = await lead("children = 1")
    child = await top.child("Only this.", max_tasks=1, name="taken")
    await child.hears("brief")
    async with asking(stage.fleet, "--parent", "lead", "--name", "next") as client:
        await waits(stage.fleet, 1)
        await child.say(TURN_ENDED)
        assert (await ended(client))[0] == 0
    await stage.standing("next")


async def test_who_has_waited_is_refused_for_what_is_not_allowed_any_more(lead: Lead, stage: Stage) -> None:
    await full(lead, stage)
    async with asking(stage.fleet, "--parent", "lead", "--json") as client, asking(stage.fleet, "--parent", "lead"):
        await waits(stage.fleet, 2)
        await stage.fleet.ctl("grant", "lead", "--may-fork", "no")
        await stage.fleet.call("disband", agent="taken")
        code, out, _ = await ended(client)
        assert code == 1
        assert json.loads(out)["refused"]["code"] == "rights"
        await waits(stage.fleet, 0)


async def test_a_program_that_went_away_meanwhile_is_found_missing_when_it_is_its_turn(
    lead: Lead, stage: Stage, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    top = await lead("children = 1", f'[kinds.own]\nprotocol = "lines"\ncommand = ["{program}"]\n')
    await stage.fork(parent="lead", name="taken")
    async with trio.open_nursery() as nursery:

        async def fork() -> None:
            with pytest.raises(RefusedError, match="program"):
                await stage.fleet.call("fork", kind="own", parent=top.id, queue=True)

        nursery.start_soon(fork)
        await waits(stage.fleet, 1)
        program.unlink()
        await stage.fleet.call("disband", agent="taken")
    assert await line(stage.fleet) == []


async def test_nobody_waits_in_line_after_the_daemon_was_killed(tmp_path: Path) -> None:
    toml = project('[agents.lead]\nkind = "sleep"\ngrant = { children = 0 }\n')
    with trio.fail_after(3 * PATIENCE):
        async with running(tmp_path) as fleet:
            await fleet.up(toml.replace("children = 0", "children = 1"))
            await fleet.call("fork", kind="sleep", parent="lead", wait=True)
            async with asking(fleet, "--parent", "lead") as client:
                await waits(fleet, 1)
                os.kill(fleet.process.pid, signal.SIGKILL)
                assert (await ended(client))[0] != 0
        async with running(tmp_path) as fleet:
            assert await line(fleet) == []
            await fleet.until(lambda tree: len(tree) == 2)
