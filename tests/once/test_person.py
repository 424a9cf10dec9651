"""The person's own configuration of CLIs that do one task and end: it holds beside what the fleet adds, and a grant
takes from it and never adds."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from supervisor.kinds.opencode import NPM
from tests.house import below, eventually
from tests.model_server import ModelServer
from tests.once.clis import CLIS, Cli, away, billed, counted, facts, fleet_of, home, opencode_file, write

GEMINI, OPENCODE = CLIS


def asks_again(least: int, tree: dict[str, dict[str, Any]]) -> bool:
    """Whether it is shown to ask its provider again, that often or more: each time is seen for some seconds only."""
    shown = re.match(r"retry (\d+): ", tree["lead"]["last"])
    return shown is not None and int(shown[1]) >= least


def add(file: Path, more: dict[str, object]) -> None:
    """The person writes more into a file of theirs."""
    write(file, json.loads(file.read_text()) | more)


async def test_what_the_person_denies_stays_denied_under_a_grant_of_the_tool(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    if cli is GEMINI:
        rule = '[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = "touch"\ndecision = "deny"\npriority = 1\n'
        policies = home() / ".gemini" / "policies"
        policies.mkdir()
        (policies / "mine.toml").write_text(rule)
    else:
        add(opencode_file(), {"permission": {"bash": {"*": "allow", "touch *": "deny"}}})
    async with fleet_of(tmp_path, cli.toml('grant = { tools = ["bash"] }\n')) as fleet:
        await fleet.ctl("instruct", "lead", "[[bash:touch made]]", "--wait")
        assert cli.shell in server.tools[0]
        assert not (tmp_path / "made").exists()
        await fleet.ctl("instruct", "lead", "[[bash:echo ran > made]]", "--wait")
        assert (tmp_path / "made").exists()


@pytest.mark.parametrize("cli", [OPENCODE], indirect=True, ids=["opencode"])
async def test_what_an_agent_of_the_persons_may_do_ends_at_the_grant(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    allowed = {"*": "allow", "bash": "allow", "webfetch": "allow"}
    add(opencode_file(), {"permission": "allow", "agent": {"build": {"permission": allowed}}})
    async with fleet_of(tmp_path, cli.toml('grant = { tools = ["read"] }\n')) as fleet:
        await fleet.ctl("instruct", "lead", "[[bash:echo ran > made]]", "--wait")
        assert set(server.tools[0]) == {cli.reader}
        assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("cli", [OPENCODE], indirect=True, ids=["opencode"])
async def test_a_tool_that_cannot_be_hidden_is_refused_when_it_is_called(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    async with fleet_of(tmp_path, cli.toml('grant = { tools = ["edit"] }\n')) as fleet:
        call = json.dumps({"filePath": f"{tmp_path}/made", "content": "x"})
        await fleet.ctl("instruct", "lead", f"[[call:write {call}]]", "--wait")
        assert "write" in server.tools[0], "opencode has one permission for all that change files"
        assert "not in this agent's grant" in server.results[-1][0]
        assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("cli", [OPENCODE], indirect=True, ids=["opencode"])
async def test_the_persons_plugins_and_instructions_are_there_beside_ours(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.js"
    mine.write_text(f'export const Mine = async () => {{ await Bun.write("{tmp_path}/loaded", "yes"); return {{}} }}\n')
    (tmp_path / "always.md").write_text("The person is called Ada.\n")
    (tmp_path / "words.md").write_text("You keep the minutes.\n")
    add(opencode_file(), {"plugin": [mine.as_uri()], "instructions": [str(tmp_path / "always.md")]})
    async with fleet_of(tmp_path, cli.toml('instructions = "words.md"\n')) as fleet:
        await fleet.ctl("instruct", "lead", f"[[call:{cli.subagent}]]", "--wait")
        assert (tmp_path / "loaded").exists()
        assert "The person is called Ada." in server.bodies[0]
        assert "You keep the minutes." in server.bodies[0]
        assert counted((await away(fleet, tasks=1))["own"]) == billed(server), "ours is, too"


@pytest.mark.parametrize("cli", [OPENCODE], indirect=True, ids=["opencode"])
async def test_nothing_is_installed_into_the_persons_configuration(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    async with fleet_of(tmp_path, cli.toml()) as fleet:
        await fleet.ctl("instruct", "lead", "[[bash:env]]", "--wait")
        assert {file.name for file in opencode_file().parent.iterdir()} <= {"opencode.json", ".gitignore"}
        assert "HOME=" in server.results[-1][0]
        assert not [name for name, _ in NPM if name in server.results[-1][0]], "its tools' npm is the person's"


@pytest.mark.parametrize("cli", [OPENCODE], indirect=True, ids=["opencode"])
async def test_that_the_provider_is_asked_again_is_shown(cli: Cli, server: ModelServer, tmp_path: Path) -> None:
    async with fleet_of(tmp_path, cli.toml()) as fleet:
        await fleet.ctl("instruct", "lead", "[[err:429,1,seen]]")
        await fleet.until(lambda tree: tree["lead"]["last"].startswith("retry 1: "))
        server.release("seen")
        lead = await away(fleet, tasks=1)
        assert (lead["status"], lead["crashes"]) == ("done", 0)
        assert counted(lead["own"]) == billed(server)


@pytest.mark.parametrize("cli", [OPENCODE], indirect=True, ids=["opencode"])
async def test_a_provider_that_is_asked_for_ever_is_shown_and_a_stop_is_no_crash(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    async with fleet_of(tmp_path, cli.toml()) as fleet:
        await fleet.ctl("instruct", "lead", "[[err:429]]")
        tree = await fleet.until(partial(asks_again, 2))
        assert (tree["lead"]["state"], tree["lead"]["crashes"]) == ("working", 0)
        await fleet.json("stop", "lead")
        assert not below(fleet.process.pid)
        await fleet.json("start", "lead")
        assert await fleet.ctl("instruct", "lead", "[[say:Back.]]", "--wait") == "Back.\n"
        lead = await away(fleet)
        assert lead["crashes"] == 0
        assert counted(lead["own"]) == billed(server), "a call that was refused costs nothing"


@pytest.mark.parametrize("cli", [GEMINI], indirect=True, ids=["gemini"])
async def test_a_provider_that_takes_no_more_parks_it_without_a_process(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    settings = home() / ".gemini" / "settings.json"
    general = json.loads(settings.read_text())["general"]
    add(settings, {"general": general | {"maxAttempts": 1}})  # by itself gemini tries ten times, for minutes
    async with fleet_of(tmp_path, cli.toml()) as fleet:
        await fleet.ctl("instruct", "lead", "[[err:429,1]]")
        (limited,) = await facts(fleet, "Limited")
        assert limited["sort"] == "rate"
        tree = await fleet.until(lambda tree: tree["lead"]["state"] == "parked" and tree["lead"]["pid"] is None)
        assert (tree["lead"]["crashes"], tree["lead"]["tasks"]["done"]) == (0, 0), "it counts as nothing"
        await eventually(lambda: not below(fleet.process.pid))
        await fleet.ctl("start", "lead")
        lead = await away(fleet, tasks=1)
        assert (lead["status"], lead["crashes"]) == ("done", 0)
        assert counted(lead["own"]) == billed(server)


@pytest.mark.parametrize("cli", [GEMINI], indirect=True, ids=["gemini"])
async def test_a_missing_login_fails_the_task_and_says_why(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GEMINI_API_KEY")
    async with fleet_of(tmp_path, cli.toml()) as fleet:
        said = await fleet.json("instruct", "lead", "[[ok]]", "--wait", code=1)
        assert "41" in str(said)
        assert not below(fleet.process.pid)
        (log,) = fleet.state.glob("*/agents/a1/stderr.log")
        assert "GEMINI_API_KEY" in log.read_text()
