"""What of the person's environment reaches an agent's program, and where no secret may stand: seen on living processes
and on disk."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.core.private import looks_secret
from supervisor.kinds.pi import Pi
from supervisor.kinds.table import KINDS
from supervisor.runtime.environment import BASE, ORDINARY, matches, needs
from tests.e2e.conftest import start_daemon
from tests.e2e.stage import Stage, kind
from tests.fleet import CTL
from tests.house import below, eventually

#: Whatever arguments its kind gives it, it stays.
STAYS = [sys.executable, "-IS", "-c", "import signal; signal.pause()"]
#: The person's environment: a variable of each sort, and each with a value that can be looked for.
NAMES = (
    *("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY", "CODEX_API_KEY", "GEMINI_API_KEY"),
    *("SOME_API_KEY", "AWS_SECRET_ACCESS_KEY", "PI_CODING_AGENT_DIR", "AWS_PROFILE", "DEPLOY_TARGET", "DEPLOY_TOKEN"),
    *("HTTPS_PROXY", "SSH_AUTH_SOCK", "LC_PAPER", "NOTIFY_SOCKET_OF_NOBODY"),
)
PERSONS = {name: f"value-of-{name.lower()}" for name in NAMES}


@pytest.fixture
def agents() -> str:
    """An agents.toml with every kind there is, each a program that only stays."""
    tables = [
        kind(f"own-{name}" if name == "lines" else name, *STAYS, protocol=name) for name in KINDS
    ]  # `lines` is no kind by itself
    return '[project]\nname = "t"\n' + "\n".join(tables)


def environ(pid: int) -> dict[str, str]:
    """What a process was started with; nothing before its program is in place."""
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


async def started(stage: Stage, **asked: Any) -> dict[str, str]:
    """The environment of a fresh agent's program. It has a task: some kinds have no process before one."""
    agent = (await stage.fleet.call("fork", task="Stay.", **asked))["agent"]
    pid = (await stage.fleet.until(lambda tree: bool(tree[agent["name"]]["pid"])))[agent["name"]]["pid"]
    return await eventually(lambda: environ(pid))


def named(name: str) -> str:
    return "own-lines" if name == "lines" else name


def test_a_broad_pattern_takes_no_key_that_another_program_logs_in_with() -> None:
    class Broad(Pi):
        env: tuple[str, ...] = ("BROAD_*", "CLOUD_*")
        credential: tuple[str, ...] = ("BROAD_KEY",)

    class Other(Pi):
        env: tuple[str, ...] = ("CLOUD_*",)
        credential: tuple[str, ...] = ("CLOUD_API_KEY", "CLOUD_HOME")

    need = needs(Broad(), [Broad(), Other(), *KINDS.values()])
    passed = {
        name for name in ("BROAD_KEY", "CLOUD_API_KEY", "CLOUD_HOME", "CLOUD_SECRET", "HOME") if need.passes(name)
    }
    assert passed == {"BROAD_KEY", "CLOUD_HOME", "CLOUD_SECRET"}


async def test_a_program_gets_the_base_and_its_own_names_and_no_key_of_another(
    tier: str, tmp_path: Path, agents: str
) -> None:
    async with start_daemon(tier, tmp_path, PERSONS) as stage:
        await stage.fleet.up(agents)
        for name, its in KINDS.items():
            passed = await started(stage, kind=named(name))
            need = needs(its, KINDS.values())
            for variable in NAMES:
                wanted = matches(variable, (*BASE, *ORDINARY)) or need.passes(variable)
                assert (variable in passed) == wanted, f"{variable} and {name}"
            others = [
                variable
                for variable in passed.keys() & PERSONS.keys()
                if looks_secret(variable)
                and not matches(variable, [own for own in its.env if own != "*"])
                and any(matches(variable, [own for own in other.env if own != "*"]) for other in KINDS.values())
            ]
            assert others == [], f"{name} has what another program calls its own"


async def test_a_persons_own_program_has_what_the_shell_has_but_no_key_of_an_agents(
    tier: str, tmp_path: Path, agents: str
) -> None:
    async with start_daemon(tier, tmp_path, PERSONS) as stage:
        await stage.fleet.up(agents)
        passed = await started(stage, kind="own-lines")
        assert {"DEPLOY_TARGET", "DEPLOY_TOKEN", "AWS_PROFILE", "HTTPS_PROXY"} <= passed.keys()
        assert not {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "SOME_API_KEY"} & passed.keys()


async def test_a_named_right_is_all_there_is_beside_the_base_and_what_is_given_is_added(
    tier: str, tmp_path: Path, agents: str
) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text("OPENAI_API_KEY=from-the-file\nexport QUOTED='of it'\n")
    secrets.chmod(0o600)
    given = f'env_file = "{secrets}"\nenv = {{ FLAVOUR = "sweet" }}'
    mains = (
        f'[agents.named]\nkind = "pi"\ntask = "Stay."\n{given}\ngrant = {{ env = ["DEPLOY_TARGET"] }}\n'
        '[agents.nothing]\nkind = "own-lines"\ntask = "Stay."\ngrant = { env = [] }\n'
    )
    async with start_daemon(tier, tmp_path, PERSONS) as stage:
        await stage.fleet.up(agents + mains)
        tree = await stage.fleet.until(lambda tree: all(tree[name]["pid"] for name in ("named", "nothing")))
        passed = await eventually(lambda: environ(tree["named"]["pid"]))
        assert passed.keys() & {*NAMES, "QUOTED", "FLAVOUR"} == {
            *("DEPLOY_TARGET", "HTTPS_PROXY", "LC_PAPER"),  # named, and the base
            *("OPENAI_API_KEY", "QUOTED", "FLAVOUR"),  # given
        }
        assert (passed["OPENAI_API_KEY"], passed["QUOTED"]) == ("from-the-file", "of it")
        nothing = await eventually(lambda: environ(tree["nothing"]["pid"]))
        assert nothing.keys() & {*NAMES} == {"HTTPS_PROXY", "LC_PAPER"}


async def test_no_secret_stands_in_an_argv_an_answer_a_journal_or_a_log(tier: str, tmp_path: Path, agents: str) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text("DEPLOY_KEY=value-of-the-file\n")
    secrets.chmod(0o600)
    lead = f'[agents.lead]\nkind = "pi"\ntask = "Stay."\nenv_file = "{secrets}"\n'
    values = [*(value for name, value in PERSONS.items() if looks_secret(name)), "value-of-the-file"]
    async with start_daemon(tier, tmp_path, PERSONS) as stage:
        await stage.fleet.up(agents + lead)
        pid = (await stage.fleet.until(lambda tree: bool(tree["lead"]["pid"])))["lead"]["pid"]
        await eventually(lambda: environ(pid).get("DEPLOY_KEY"))
        said = [
            str(await stage.fleet.call(verb, **more))
            for verb, more in (
                ("tree", {}), ("status", {}), ("config", {}), ("usage", {}), ("about", {"agent": "lead"}),
                ("events", {"since": 0}),
            )
        ]  # fmt: skip
        asked = await trio.run_process([*CTL, "doctor", "--json"], cwd=tmp_path, capture_stdout=True, check=False)
        said += [asked.stdout.decode(), *(process.argv for process in below(stage.daemon))]
        kept = [path for path in files(stage.fleet.state) if path.name != "accepted.toml"]
        assert any(path.name == "journal.jsonl" for path in kept)
        said += [path.read_bytes().decode(errors="replace") for path in (*kept, tmp_path / "daemon.log")]
        for value in values:
            assert not [text[:200] for text in said if value in text]


def files(directory: Path) -> Iterator[Path]:
    return (path for path in directory.rglob("*") if path.is_file())


async def test_a_secret_that_stands_in_the_file_is_warned_of_and_not_shown(stage: Stage, agents: str) -> None:
    lead = '[agents.lead]\nkind = "pi"\nenv = { MY_API_KEY = "do-not-show", FLAVOUR = "sweet" }\n'
    warned = (await stage.fleet.up(agents + lead))["warnings"]
    assert [(each["where"], each["field"]) for each in warned] == [("lead", "env.MY_API_KEY")]
    assert "env_file" in warned[0]["what"]
    shown = {each["key"]: each["value"] for each in (await stage.fleet.call("config"))["values"]}
    assert shown["agents.lead.env.MY_API_KEY"] == "(hidden)"
    assert shown["agents.lead.env.FLAVOUR"] == '"sweet"'
    assert "do-not-show" not in str(await stage.fleet.call("tree"))


async def test_logins_are_told_apart_and_nothing_of_them_is_kept(tier: str, tmp_path: Path, agents: str) -> None:
    mains = "".join(
        f'[agents.{name}]\nkind = "pi"\ntask = "Stay."\nenv_file = "{tmp_path / key}"\n'
        for name, key in (("one", "a"), ("two", "a"), ("other", "b"))
    )
    for key in ("a", "b"):
        (tmp_path / key).write_text(f"SOME_API_KEY=secret-{key}\n")
        (tmp_path / key).chmod(0o600)
    async with start_daemon(tier, tmp_path) as stage:
        await stage.fleet.up(agents + mains)
        await stage.fleet.until(lambda tree: all(tree[name]["pid"] for name in ("one", "two", "other")))
        logins = [(await stage.fleet.call("about", agent=name))["login"] for name in ("one", "two", "other")]
        assert logins[0] == logins[1] != logins[2]
        kept = stage.fleet.state / "credential.key"
        assert (kept.stat().st_mode & 0o777, kept.stat().st_size) == (0o600, 32)
