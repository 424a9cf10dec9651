"""The tour of real CLIs that do one task and end: under a real daemon, by the client's commands, and their books
against their provider's."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import trio

from tests.fleet import Fleet
from tests.house import below, eventually, over
from tests.model_server import ModelServer
from tests.once.clis import Cli, away, billed, counted, facts, fleet_of

#: As the person configured the model for opencode.
WINDOW = 100_000
BASH = 'grant = { tools = ["bash"] }\n'


async def begun(fleet: Fleet, at: Path, name: str = "lead") -> None:
    """A tool of a task runs, and will not end by itself."""
    await fleet.ctl("instruct", name, f"[[bash:touch {at}/begun; sleep 1000]]")
    await eventually((at / "begun").exists, within=90)


async def equal(fleet: Fleet, server: ModelServer, lost: int = 0) -> None:
    """The books are the bill; where so many calls were lost, what is told of them is that, and the rest is booked."""
    own = (await fleet.tree())["lead"]["own"]
    known = [call for call in server.bill if not (lost and "sleep 1000" in call.said.rpartition("[[")[2])]
    bill = {name: sum(getattr(call, name) for call in known) for name in billed(server) if name != "calls"}
    assert counted(own) == bill | {"calls": len(known)}
    assert own["incomplete"] == lost


async def after(fleet: Fleet, server: ModelServer) -> None:
    """The next task is done in the conversation that there was."""
    assert await fleet.ctl("instruct", "lead", "[[say:After.]]", "--wait") == "After.\n"
    assert "You are lead" not in server.asked[-1].rpartition("[[say:After.]]")[0][-200:], "it knows who it is"
    assert "[[say:Before.]]" in server.bodies[-1], "it knows what was said before"


async def test_tasks_are_processes_of_one_conversation_and_the_books_are_the_bill(
    cli: Cli, server: ModelServer, tmp_path: Path, tier: str
) -> None:
    async with fleet_of(tmp_path, cli.toml(), tier) as fleet:
        assert (await away(fleet))["run"] == 0
        assert await fleet.ctl("instruct", "lead", "[[say:It is green.]]", "--wait") == "It is green.\n"
        assert "You are lead (id a1), " in server.asked[0]
        lead = await away(fleet, tasks=1)
        assert lead["context_tokens"] == server.bill[-1].tokens
        if cli.name == "opencode":  # gemini says nothing of its window, and no table knows this model
            assert (lead["context_window"], lead["context_window_from"]) == (WINDOW, "program")
            assert lead["context_percent"] == round(100 * server.bill[-1].tokens / WINDOW, 2)
        await eventually(lambda: not below(fleet.process.pid), what="it stands by without a process")
        said = await fleet.json("instruct", "lead", "[[bash:echo ran > made]]", "--wait")
        assert (said["status"], said["text"]) == ("done", "It has run.")
        assert (tmp_path / "made").read_text() == "ran\n", "in its own directory, unasked"
        assert server.bodies[-1].count("You are lead (id a1), ") == 1, "who it is was said once"
        assert "It is green." in server.bodies[-1], "it knows what it said before"
        lead = await away(fleet, tasks=2)
        assert (lead["run"], lead["own"]["turns"], lead["own"]["calls"], lead["garbled"]) == (2, 2, 3, 0)
        assert cli.model in lead["model"]
        await equal(fleet, server)
        await fleet.json("disband", "lead")
        assert not below(fleet.process.pid)


async def test_quotes_and_lines_arrive_as_they_were_said(cli: Cli, server: ModelServer, tmp_path: Path) -> None:
    async with fleet_of(tmp_path, cli.toml()) as fleet:
        await fleet.ctl("instruct", "lead", "-", "--wait", stdin='say "it\'s" \\n $HOME `x`\n  é\u2028 [[ok]]'.encode())
        assert 'say "it\'s" \\n $HOME `x`\n  é\u2028 [[ok]]' in server.asked[0]


async def test_it_has_the_tools_of_its_grant_and_no_others(cli: Cli, server: ModelServer, tmp_path: Path) -> None:
    async with fleet_of(tmp_path, cli.toml('grant = { tools = ["read"] }\n')) as fleet:
        await fleet.ctl("instruct", "lead", f'[[call:{cli.shell} {{"command":"echo ran > made"}}]]', "--wait")
        assert {name for offered in server.tools for name in offered} == {cli.reader}
        assert not (tmp_path / "made").exists()


async def test_a_text_that_comes_during_a_task_waits_for_a_process_of_its_own(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    async with fleet_of(tmp_path, cli.toml(BASH)) as fleet:
        wait = f"touch {tmp_path}/begun; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
        await fleet.ctl("instruct", "lead", f"[[bash:{wait}]]")
        await eventually((tmp_path / "begun").exists, within=90)
        await fleet.ctl("instruct", "lead", "[[say:Second.]]")
        await fleet.until(lambda tree: tree["lead"]["queued"] == 1)
        assert not any("[[say:Second.]]" in said for said in server.asked)
        (tmp_path / "go").touch()
        lead = await away(fleet, tasks=2)
        assert (lead["run"], lead["own"]["turns"], lead["summary"]) == (2, 2, "Second.")
        await equal(fleet, server)


async def test_a_spent_budget_ends_the_process_of_a_task_and_a_grant_wakes_what_waits(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    grant = "grant = { tokens = 2500, fork = true }\n"
    async with fleet_of(tmp_path, cli.toml(grant)) as fleet:
        await fleet.ctl("instruct", "lead", "[[say:Before.]]", "--wait")
        async with trio.open_nursery() as nursery:
            said: list[Any] = []

            async def held() -> None:
                said.append(await fleet.json("instruct", "lead", "[[hold:first]]", "--wait", code=1))

            nursery.start_soon(held)
            await eventually(lambda: any("[[hold:first]]" in asked for asked in server.asked), within=90)
            await fleet.ctl("fork", "[[bash:true]]", "--parent", "lead", "--name", "tests")
        assert said[0]["status"] == "interrupted"
        server.release("first")  # gemini asks again for what was cut, together with the next text
        lead = (await fleet.until(lambda tree: tree["lead"]["pid"] is None))["lead"]
        assert (lead["state"], lead["crashes"], lead["run"]) == ("standing", 0, 2)
        assert (await facts(fleet, "Interrupted"))[0]["run"] == 2
        await fleet.ctl("grant", "lead", "--tokens", "1M")
        await fleet.until(lambda tree: tree["lead"]["state"] == "standing" and not tree["lead"]["queued"])
        await after(fleet, server)


async def test_a_models_failure_is_the_tasks_and_no_crash(cli: Cli, server: ModelServer, tmp_path: Path) -> None:
    async with fleet_of(tmp_path, cli.toml()) as fleet:
        await fleet.ctl("instruct", "lead", "[[say:Before.]]", "--wait")
        said = await fleet.json("instruct", "lead", "[[err:400]]", "--wait", code=1)
        assert said["status"] == "failed"
        assert "as scripted: 400" in said["error"]
        await after(fleet, server)
        lead = await away(fleet, tasks=3)
        assert (lead["run"], lead["crashes"]) == (3, 0)
        await equal(fleet, server)


async def test_a_login_that_is_refused_is_told_apart_from_a_fault(cli: Cli, tmp_path: Path) -> None:
    async with fleet_of(tmp_path, cli.toml()) as fleet:
        await fleet.ctl("instruct", "lead", "[[err:401]]")
        (limited,) = await facts(fleet, "Limited")
        assert limited["sort"] == "auth"
        assert "as scripted: 401" in limited["text"]
        await fleet.until(lambda tree: tree["lead"]["state"] == "parked" and tree["lead"]["pid"] is None)
        await eventually(lambda: not below(fleet.process.pid))


async def test_a_cli_killed_in_a_task_comes_back_with_its_conversation(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    async with fleet_of(tmp_path, cli.toml(BASH + 'restart = "on-failure"\n')) as fleet:
        await fleet.ctl("instruct", "lead", "[[say:Before.]]", "--wait")
        await begun(fleet, tmp_path)
        os.kill((await fleet.tree())["lead"]["pid"], signal.SIGKILL)
        lead = await away(fleet, tasks=2)
        assert (lead["status"], lead["crashes"]) == ("failed", 1)
        await eventually(lambda: not below(fleet.process.pid), what="its tool ended with it")
        await after(fleet, server)
        await equal(fleet, server, lost=1)


async def test_a_cli_killed_with_its_daemon_goes_on_with_its_conversation(
    cli: Cli, server: ModelServer, tmp_path: Path, tier: str
) -> None:
    async with fleet_of(tmp_path, cli.toml(BASH), tier) as fleet:
        await fleet.ctl("instruct", "lead", "[[say:Before.]]", "--wait")
        await begun(fleet, tmp_path)
        # What is not on record as read when the daemon dies is given again, and would wait for ever again.
        await facts(fleet, "Read", 2)
        fleet.process.kill()
        await over(fleet.process)
    async with fleet_of(tmp_path, cli.toml(BASH), tier) as fleet:
        assert (await away(fleet))["crashes"] == 0
        await after(fleet, server)


async def test_a_stopped_cli_leaves_nothing_and_is_started_with_its_conversation(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    async with fleet_of(tmp_path, cli.toml(BASH)) as fleet:
        await fleet.ctl("instruct", "lead", "[[say:Before.]]", "--wait")
        await begun(fleet, tmp_path)
        (ended,) = (await fleet.json("stop", "lead"))["ended"]
        assert ended["state"] == "stopped"
        assert not below(fleet.process.pid)
        await fleet.json("start", "lead")
        await after(fleet, server)
        await equal(fleet, server, lost=1)


async def test_what_a_subagent_uses_is_its_agents(cli: Cli, server: ModelServer, tmp_path: Path) -> None:
    async with fleet_of(tmp_path, cli.toml()) as fleet:
        await fleet.ctl("instruct", "lead", f"[[call:{cli.subagent}]]", "--wait")
        assert any(said.endswith("Look around.") for said in server.asked)
        own = counted((await away(fleet, tasks=1))["own"])
        bill = billed(server)
        # gemini tells what it used in full, and of how many calls that is nothing.
        assert own.pop("calls") == (2 if cli.name == "gemini" else bill["calls"])
        del bill["calls"]
        assert own == bill


async def test_the_persons_words_and_the_agents_instructions_both_reach_it(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / cli.context).write_text("The person likes short answers.\n")
    (tmp_path / "words.md").write_text("You keep the minutes.\n")
    async with fleet_of(tmp_path, cli.toml('instructions = "words.md"\n')) as fleet:
        await fleet.ctl("instruct", "lead", "[[ok]]", "--wait")
        assert "You keep the minutes." in server.bodies[0]
        assert "The person likes short answers." in server.bodies[0]


async def test_instructions_that_are_not_there_fail_the_start_by_their_name(cli: Cli, tmp_path: Path) -> None:
    async with fleet_of(tmp_path, cli.toml('instructions = "words.md"\n')) as fleet:
        said = await fleet.json("instruct", "lead", "[[ok]]", "--wait", code=1)
        assert "words.md: No such file or directory" in str(said)
