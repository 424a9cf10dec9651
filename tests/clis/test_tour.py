"""The tour: a real agent CLI under a real daemon, by the client's commands, and its books against its provider's."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.clis.tour import Cli, counted, fleet_of, made, settled
from tests.fleet import Fleet
from tests.house import below, eventually, over
from tests.model_server import ModelServer
from tests.once.clis import facts

AGAIN = 'restart = "on-failure"\n'


async def equal(
    fleet: Fleet, cli: Cli, server: ModelServer, unknown: frozenset[str] = frozenset(), killed: str = ""
) -> None:
    """The books once they are the bill; of what is unknown they hold no more than it. `killed` are words of the text in
    whose tool it was killed."""
    unknown |= cli.unsaid

    async def booked() -> bool:
        own = (await fleet.tree())["lead"]["own"]
        # Whoever loses its stdin before it is killed may have had the time to leave in order: then nothing is missing.
        return any(
            all(own[name] == bill[name] for name in bill if name not in unknown)
            and all(own[name] <= bill[name] for name in unknown)
            for bill in (cli.billed(server, killed), cli.billed(server))
        )

    try:
        await eventually(booked)
    except AssertionError:
        own = counted((await fleet.tree())["lead"]["own"])
        raise AssertionError(f"booked {own}, billed {cli.billed(server, killed)}") from None


async def written(fleet: Fleet, calls: int) -> None:
    """Wait until so many calls are on disk: what a daemon was told a moment before its death is lost with it, where it
    is not told again."""
    async with fleet.events(0) as events:
        async for event in events:
            if event.get("fact") == "Spent":
                calls -= sum(report["usage"].get("calls", 0) for report in event["reports"])
            if calls <= 0:
                return


async def test_tasks_are_done_in_one_conversation_and_the_books_are_the_bill(
    cli: Cli, server: ModelServer, tmp_path: Path, tier: str
) -> None:
    async with fleet_of(
        tmp_path, cli.toml(f'model = "{cli.model}"\ngrant = {{ tools = ["bash", "read"] }}\n'), tier
    ) as fleet:
        assert await fleet.ctl("instruct", "lead", "[[say:One.]]", "--wait") == "One.\n"
        assert "You are lead (id a1), " in server.asked[0]
        said = await fleet.json("instruct", "lead", "[[bash:echo ran > made]]", "--wait")
        assert (said["status"], said["text"]) == ("done", "It has run.")
        assert (tmp_path / "made").read_text() == "ran\n", "in its own directory, unasked"
        assert await fleet.ctl("instruct", "lead", "[[say:Three.]]", "--wait") == "Three.\n"
        lead = await settled(fleet, "lead", 3)
        assert (lead["run"], lead["own"]["turns"], lead["garbled"]) == (1, 3, 0)
        assert cli.model in lead["model"]
        assert max(call.n for call in server.bill) >= 2, "it knows what it said before"
        await equal(fleet, cli, server)
        await full(fleet, cli, server)
        await fleet.json("disband", "lead")
        assert not below(fleet.process.pid)


async def full(fleet: Fleet, cli: Cli, server: ModelServer) -> None:
    """The window is as full as the last call of the conversation made it, by the program's own word."""
    last = [call for call in server.bill if "[[say:Three.]]" in call.said][-1]

    async def told() -> bool:
        lead = (await fleet.tree())["lead"]
        held, window = lead["context_tokens"], lead["context_window"]
        if not held or not window or lead["context_window_from"] != "program":
            return False
        # qwen counts for itself; whether the last answer is in it is each program's own way.
        right = cli.name == "qwen" or held in (last.tokens, last.tokens - last.output)
        return bool(right and lead["context_percent"] == round(100 * held / window, 2))

    await eventually(told)

    async def alike() -> bool:  # qwen tells its own count a moment later
        (row,) = (await fleet.call("usage"))["agents"]
        lead = (await fleet.tree())["lead"]
        return all(row[key] == lead[key] for key in lead if key.startswith("context"))

    await eventually(alike)


async def test_it_has_the_tools_of_its_grant_and_no_others(cli: Cli, server: ModelServer, tmp_path: Path) -> None:
    async with fleet_of(tmp_path, cli.toml('grant = { tools = ["read"] }\n')) as fleet:
        await fleet.ctl("instruct", "lead", "[[bash:echo ran > made]]", "--wait")
        assert server.tools
        assert cli.sandboxed or not any(cli.bash in offered for offered in server.tools)
        assert not (tmp_path / "made").exists()


async def test_a_text_that_comes_during_a_tool_call_waits_for_the_next_turn(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    async with fleet_of(tmp_path, cli.toml('grant = { tools = ["bash"] }\n')) as fleet:
        wait = f"touch {tmp_path}/begun; while [ ! -e {tmp_path}/go ]; do read -t 0.05 <> <(:); done"
        await fleet.ctl("instruct", "lead", f"[[bash:{wait}]]")
        await made(tmp_path / "begun")
        await fleet.ctl("instruct", "lead", "[[say:Two.]]")
        (tmp_path / "go").touch()
        lead = await settled(fleet, "lead", 2)
        assert lead["own"]["turns"] == 2
        assert sum("[[say:Two.]]" in said for said in server.asked) >= 1
        await equal(fleet, cli, server)


async def test_a_failed_model_call_fails_the_task_and_the_next_one_is_done(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    async with fleet_of(tmp_path, cli.toml()) as fleet:
        said = await fleet.json("instruct", "lead", "[[err:400]]", "--wait", code=1)
        assert said["status"] == "failed"
        assert "as scripted: 400" in said["error"]
        assert await fleet.ctl("instruct", "lead", "[[say:After.]]", "--wait") == "After.\n"
        lead = await settled(fleet, "lead", 2)
        assert (lead["run"], lead["crashes"]) == (1, 0)
        await equal(fleet, cli, server)


async def test_a_cli_killed_in_a_turn_comes_back_with_its_conversation(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    async with fleet_of(tmp_path, cli.toml(AGAIN + 'grant = { tools = ["bash"] }\n')) as fleet:
        await fleet.ctl("instruct", "lead", "[[say:Before.]]", "--wait")
        await fleet.ctl("instruct", "lead", f"[[bash:touch {tmp_path}/begun; read _ < <(sleep 1000)]]")
        await made(tmp_path / "begun")
        os.kill((await fleet.tree())["lead"]["pid"], signal.SIGKILL)
        await fleet.until(lambda tree: tree["lead"]["run"] == 2)
        lead = await settled(fleet, "lead", 2)
        assert (lead["crashes"], lead["run"]) == (1, 2)
        assert await fleet.ctl("instruct", "lead", "[[say:After.]]", "--wait") == "After.\n"
        assert "You are lead" not in server.asked[-1], "it knows who it is"
        assert server.bill[-1].n > 0, "it knows what it said before"
        await equal(fleet, cli, server, cli.unknown, killed="sleep 1000")
        assert not [seen for seen in below(fleet.process.pid) if "sleep 1000" in seen.argv], "its tool is gone"


async def test_a_cli_killed_with_its_daemon_goes_on_with_its_conversation(
    cli: Cli, server: ModelServer, tmp_path: Path, tier: str
) -> None:
    toml = cli.toml('grant = { tools = ["bash"] }\n')
    async with fleet_of(tmp_path, toml, tier) as fleet:
        await fleet.ctl("instruct", "lead", "[[say:Before.]]", "--wait")
        await fleet.ctl("instruct", "lead", f"[[bash:touch {tmp_path}/begun; read _ < <(sleep 1000)]]")
        await made(tmp_path / "begun")
        # What is not on record as read when the daemon dies is given again, and would wait for ever again.
        await facts(fleet, "Read", 2)
        if not cli.forgets:
            await written(fleet, calls=2)
        fleet.process.kill()
        await over(fleet.process)
    async with fleet_of(tmp_path, toml, tier) as fleet:
        lead = await fleet.state_of("lead", "standing")
        assert (lead["run"], lead["crashes"]) == (2, 0)
        assert await fleet.ctl("instruct", "lead", "[[say:After.]]", "--wait") == "After.\n"
        assert "You are lead" not in server.asked[-1], "it knows who it is"
        assert server.bill[-1].n > 0, "it knows what it said before"
        await equal(fleet, cli, server, cli.unknown, killed="sleep 1000")


async def test_a_stopped_cli_leaves_nothing_and_is_started_with_its_conversation(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    async with fleet_of(tmp_path, cli.toml('grant = { tools = ["bash"] }\n')) as fleet:
        await fleet.ctl("instruct", "lead", "[[say:Before.]]", "--wait")
        await fleet.ctl("instruct", "lead", f"[[bash:touch {tmp_path}/begun; read _ < <(sleep 1000)]]")
        await made(tmp_path / "begun")
        (ended,) = (await fleet.json("stop", "lead"))["ended"]
        assert ended["state"] == "stopped"
        assert not below(fleet.process.pid)
        if not cli.late:
            await equal(fleet, cli, server)
        await fleet.json("start", "lead")
        assert await fleet.ctl("instruct", "lead", "[[say:After.]]", "--wait") == "After.\n"
        assert "You are lead" not in server.asked[-1], "it knows who it is"
        assert server.bill[-1].n > 0, "it knows what it said before"
        await equal(fleet, cli, server)


async def test_one_that_was_never_told_anything_is_started_again(cli: Cli, server: ModelServer, tmp_path: Path) -> None:
    async with fleet_of(tmp_path, cli.toml()) as fleet:
        await fleet.state_of("lead", "standing")
        await fleet.ctl("restart", "lead")
        lead = await fleet.state_of("lead", "standing")
        assert (lead["run"], lead["crashes"]) == (2, 0)
        assert await fleet.ctl("instruct", "lead", "[[say:First.]]", "--wait") == "First.\n"
        assert "You are lead (id a1), " in server.asked[0]


@pytest.mark.parametrize(("status", "sort"), [(401, "auth"), (429, "rate"), (529, "overload")])
async def test_a_provider_that_takes_no_more_is_told_apart_from_a_fault(
    cli: Cli, server: ModelServer, tmp_path: Path, status: int, sort: str
) -> None:
    if (status, sort) not in cli.limits:
        pytest.skip(f"{cli.name} tries again for longer than a test can wait")
    server.retry_after = 1
    async with fleet_of(tmp_path, cli.toml()) as fleet:
        await fleet.ctl("instruct", "lead", f"[[err:{status}]]")
        async with fleet.events(0) as events:
            async for event in events:
                if event.get("fact") == "Limited":
                    break
        lead = await fleet.state_of("lead", "parked")
        assert (lead["crashes"], lead["tasks"]["done"]) == (0, 0), "it counts as nothing"
        assert event["sort"] == sort
        assert str(status) in event["text"]
