"""Real fleets with a codex: what its sandbox lets it reach, and a tree of three programs with a bill each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clis import claude, codex
from tests.clis.tour import counted, fleet_of, home
from tests.codex.person import MODEL
from tests.fleet import Fleet
from tests.house import below, eventually, gone
from tests.model_server import BILLED, ModelServer
from tests.npm import agent_cli
from tests.pi import person

TOML = """
[project]
name = "mixed"

[agents.lead]
kind = "claude"
directory = "."
model = "claude-sonnet-4-5"
grant = { tools = ["bash", "read"], tokens = 1_000_000, descendants = 4, depth = 2, fork = true }
"""
#: Who is forked, with which model and how many tokens.
CHILDREN = {"coder": ("codex", MODEL, 60_000), "tests": ("pi", person.CHAT, 40_000)}


@pytest.fixture(autouse=True)
def programs(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """claude, codex and pi on PATH, as a person has them."""
    for package in (claude.CLI.package, codex.CLI.package, "@earendil-works/pi-coding-agent"):
        monkeypatch.setenv("PATH", agent_cli(package))
        agent_cli.cache_clear()  # the next one's PATH is led by it and has this one
    monkeypatch.setenv("NODE_DISABLE_COMPILE_CACHE", "1")
    monkeypatch.setenv("PI_OFFLINE", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    person.configure(server.url)
    given = claude.CLI.configure(home(), server.url)
    (home() / "tmp").rmdir()  # both make one
    for name, value in (given | codex.CLI.configure(home(), server.url)).items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(("tools", "reaches"), [('"bash"', True), ('"read"', False)])
async def test_only_a_shell_without_a_sandbox_reaches_the_fleet(
    server: ModelServer, tmp_path: Path, tools: str, reaches: bool
) -> None:
    toml = f'[agents.coder]\nkind = "codex"\ndirectory = "."\ngrant = {{ tools = [{tools}] }}\n'
    async with fleet_of(tmp_path, toml) as fleet:
        await fleet.ctl("instruct", "coder", "[[bash:supervisorctl whoami --json]]", "--wait")
        (told,) = server.results[-1]
        assert "command not found" not in told
        assert ('"coder"' in told) == reaches, told


async def forked(fleet: Fleet, at: Path) -> None:
    """The lead has forked both out of its shell, each with a brief that runs a command."""
    for name, (kind, model, tokens) in CHILDREN.items():
        (at / name).write_text(f"[[bash:echo {name} > {name}.made]]")
        command = f"supervisorctl fork - --kind {kind} --name {name} --model {model} --tokens {tokens} < {name}"
        await fleet.json("instruct", "lead", f"[[bash:{command}]]", "--wait")
    await fleet.until(
        lambda tree: (
            all(name in tree and tree[name]["tasks"]["done"] == 1 for name in CHILDREN)
            and all(each["state"] == "standing" and not each["queued"] for each in tree.values())
        )
    )


def billed(server: ModelServer, name: str) -> dict[str, int]:
    model = "claude-sonnet-4-5" if name == "lead" else CHILDREN[name][1].rpartition("/")[2]
    return server.total(model)


#: When a command of codex has ended, codex kills its process group: what is to stay must have left it by then.
ASIDE = "setsid sh -c 'touch away; exec sleep 1000' </dev/null >/dev/null 2>&1 & until test -e away; do :; done"


async def test_a_claude_forks_a_codex_and_a_pi_with_budgets_and_they_are_disbanded_as_one(
    server: ModelServer, tmp_path: Path, tier: str
) -> None:
    async with fleet_of(tmp_path, TOML, tier) as fleet:
        await forked(fleet, tmp_path)
        assert {name: (tmp_path / f"{name}.made").read_text() for name in CHILDREN} == {
            name: f"{name}\n" for name in CHILDREN
        }

        async def equal() -> bool:
            tree = await fleet.tree()
            return all(counted(tree[name]["own"]) == billed(server, name) for name in ("lead", *CHILDREN))

        await eventually(equal)
        tree = await fleet.tree()
        assert {each["kind"] for each in tree.values()} == {"claude", "codex", "pi"}
        whole = {name: sum(billed(server, each)[name] for each in ("lead", *CHILDREN)) for name in BILLED}
        assert counted(tree["lead"]["branch"]) == whole == server.total()
        for name, (_, _, tokens) in CHILDREN.items():
            held = tree[name]["grant"]["tokens"]
            spent = sum(billed(server, name)[part] for part in ("input", "cache_read", "cache_write", "output"))
            assert (held["held"], held["spent"], held["over"]) == (tokens, spent, 0)
        assert tree["lead"]["grant"]["tokens"]["reserved"] == sum(tokens for _, _, tokens in CHILDREN.values())

        await fleet.ctl("instruct", "coder", f"[[bash:{ASIDE}]]", "--wait")
        await eventually(lambda: any(seen.argv == "sleep 1000" for seen in below(fleet.process.pid)))
        living = below(fleet.process.pid)
        ended = (await fleet.json("disband", "lead"))["ended"]
        assert {agent["name"] for agent in ended} == {"lead", *CHILDREN}
        assert not gone(living, within=0)
        assert not below(fleet.process.pid)
