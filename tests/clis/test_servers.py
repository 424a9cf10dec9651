"""The person's MCP servers with every real CLI: loaded are those that a grant names, and no others."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import frozen

from supervisor.kinds.pi import PI
from tests.clis import claude, codex, qwen
from tests.clis.tour import Cli, at_hand, fleet_of, home, settled
from tests.model_server import ModelServer
from tests.once import clis as once
from tests.pi import person

NOTES = Path(__file__).parent.parent / "codex" / "notes_server.py"
#: The person's servers, each of which makes a file of its name when it is started.
SERVERS = ("notes", "other")


def add(file: Path, more: dict[str, object]) -> None:
    """The person writes more into a file of theirs."""
    known = json.loads(file.read_text()) if file.exists() else {}
    once.write(file, known | more)


def command(name: str) -> dict[str, object]:
    return {"command": sys.executable, "args": [str(NOTES), str(home() / name)]}


def listed(*place: str, **more: object) -> Callable[[], None]:
    """They stand under `mcpServers` in a JSON file of the person's."""
    return lambda: add(home().joinpath(*place), {"mcpServers": {name: command(name) | more for name in SERVERS}})


def in_toml() -> None:
    with (home() / ".codex" / "config.toml").open("a") as file:
        for name in SERVERS:
            told = command(name)
            # A turn of codex does not wait for a server that takes its time, unless that is one which it needs.
            file.write(f"[mcp_servers.{name}]\nrequired = true\nstartup_timeout_sec = 60\n")
            file.write(f"command = {told['command']!r}\nargs = {json.dumps(told['args'])}\n")


def in_opencode() -> None:
    servers = {name: {"type": "local", "command": [sys.executable, str(NOTES), str(home() / name)]} for name in SERVERS}
    add(once.opencode_file(), {"mcp": servers})


def pi_of_the_person(_home: Path, url: str) -> dict[str, str]:
    person.configure(url)
    return {"PI_OFFLINE": "1"}


PI_CLI = Cli(PI, "@earendil-works/pi-coding-agent", person.CHAT, pi_of_the_person, bash="bash")


def once_cli(one: once.Cli) -> Cli:
    return Cli(one.kind, one.package, one.model, lambda _home, url: one.configure(url), bash=one.shell)


@frozen
class Person:
    """A CLI and where its person lists servers; `prefix` begins the name of a tool of the first one, "" where the model
    sees tools of servers only when it looks for them."""

    cli: Cli
    write: Callable[[], None]
    prefix: str
    #: which of them cannot be chosen: all are started when one is named
    together: bool = False
    #: a tool that is not granted of a server that is stands there, and is refused when it is called
    refuses: bool = False
    #: what it waits with for its servers, so that its first model call tells of all that they have
    waits: tuple[tuple[str, str], ...] = ()


PEOPLE = (
    Person(
        claude.CLI,
        listed(".claude.json"),
        "mcp__notes__",
        refuses=True,
        waits=(("MCP_CONNECTION_NONBLOCKING", "false"),),
    ),
    Person(codex.CLI, in_toml, "mcp__notes__"),
    Person(PI_CLI, listed(".pi", "agent", "mcp.json", exposure="direct"), "mcp__notes__", together=True),
    Person(once_cli(once.CLIS[0]), listed(".gemini", "settings.json"), "mcp_notes_"),
    Person(once_cli(once.CLIS[1]), in_opencode, "notes_", refuses=True),
    Person(qwen.CLI, listed(".qwen", "settings.json"), ""),
)


@pytest.mark.parametrize("one", PEOPLE, ids=lambda each: each.cli.name)
async def test_the_persons_servers_are_loaded_only_if_they_are_named(
    one: Person, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = at_hand(one.cli, server, monkeypatch)
    one.write()
    for variable, value in one.waits:
        monkeypatch.setenv(variable, value)
    grants = {"plain": (), "bound": ("bash",), "named": ("bash", "mcp:notes"), "part": ("bash", "mcp:notes:read")}
    found: dict[str, tuple[set[str], set[str]]] = {}
    async with fleet_of(tmp_path, '[project]\nname = "real"\n') as fleet:
        for name, tools in grants.items():
            before = len(server.tools)
            place = ("--kind", cli.name, "--model", cli.model, "--directory", str(tmp_path), "--name", name)
            await fleet.ctl("fork", "[[ok]]", *place, *(part for tool in tools for part in ("--tool", tool)))
            await settled(fleet, name, 1)
            offered = {tool for call in server.tools[before:] for tool in call}
            started = {each for each in SERVERS if (home() / each).exists()}
            found[name] = started, {tool for tool in offered if "notes" in tool or "other" in tool}
            await fleet.ctl("disband", name)
            for each in started:
                (home() / each).unlink()
    assert found["plain"] == found["bound"] == (set(), set())
    assert found["named"][0] == found["part"][0] == (set(SERVERS) if one.together else {"notes"})
    both = {f"{one.prefix}{tool}" for tool in ("read", "write")} if one.prefix else set()
    assert found["named"][1] == both
    assert found["part"][1] == (both if one.refuses else {tool for tool in both if tool.endswith("read")})
