"""Accepting another content, and what agents get of the daemon's environment: only what changed is touched."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import start_daemon
from tests.e2e.stage import Stage, kind, lines_of, project
from tests.fleet import RefusedError
from tests.house import PATIENCE, eventually

THREE = "[agents.lead]\n[agents.lead.agents.one]\n[agents.lead.agents.two]\n"
#: Meant for the daemon by whoever started it.
DAEMONS_OWN = {
    "NOTIFY_SOCKET": "/nowhere", "LISTEN_FDS": "1", "LISTEN_PID": "1", "LISTEN_FDNAMES": "x", "WATCHDOG_PID": "1",
    "WATCHDOG_USEC": "1000000", "INVOCATION_ID": "0", "JOURNAL_STREAM": "1:1",
}  # fmt: skip


def runs(tree: dict[str, dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Run and pid of each agent."""
    return {name: (agent["run"], agent["pid"]) for name, agent in tree.items()}


async def reload(stage: Stage, content: str) -> Any:
    """Change the file and take it up."""
    return await stage.fleet.call("reload", file=str(stage.room / "agents.toml"), content=content, path="/bin:/usr/bin")


async def test_a_reload_restarts_only_what_changed_and_starts_only_what_is_new(stage: Stage) -> None:
    await stage.fleet.up(project(THREE))
    before = runs(await stage.standing("lead", "one", "two"))
    told = await reload(stage, project(THREE, 'env = { A = "b" }\n'))
    assert [agent["name"] for agent in told["restarted"]] == ["two"]
    await stage.fleet.until(lambda tree: tree["two"]["run"] == 2 and tree["two"]["state"] == "standing")
    await reload(stage, project(THREE, 'env = { A = "b" }\n[agents.lead.agents.three]\n'))
    after = runs(await stage.standing("lead", "one", "two", "three"))
    assert {name: after[name] for name in ("lead", "one")} == {name: before[name] for name in ("lead", "one")}
    assert (after["two"][0], after["three"][0]) == (2, 1)
    told = await reload(stage, project(THREE, 'env = { A = "b" }\n'))
    assert [agent["name"] for agent in told["stopped"]] == ["three"]
    tree = await stage.fleet.until(lambda tree: "three" not in tree)
    assert {name: runs(tree)[name] for name in ("lead", "one", "two")} == {
        name: after[name] for name in ("lead", "one", "two")
    }
    assert len(stage.below()) == 3


async def test_a_changed_restart_policy_holds_for_the_run_that_is_there(stage: Stage) -> None:
    await stage.fleet.up(project("[agents.lead]\n"))
    before = runs(await stage.standing("lead"))
    await reload(stage, project('[agents.lead]\nrestart = "always"\nstop_grace = "5s"\n'))
    assert runs(await stage.fleet.tree()) == before
    os.kill(before["lead"][1], signal.SIGKILL)
    tree = await stage.fleet.until(lambda tree: "lead" in tree and tree["lead"]["run"] == 2)
    assert tree["lead"]["crashes"] == 1
    await stage.standing("lead")


async def test_a_broken_content_changes_nothing_and_says_where(stage: Stage) -> None:
    await stage.fleet.up(project(THREE))
    before = runs(await stage.standing("lead", "one", "two"))
    forked = await stage.fork(parent="lead", name="forked")
    head = (await stage.fleet.call("status"))["projects"][-1]["journal"]
    for broken, wrong in (("[agents.lead\n", "[agents.lead"), ("[agents.lead]\ntols = 1\n", "tols = 1")):
        content = project(broken)
        line = content.splitlines().index(wrong) + 1
        with pytest.raises(RefusedError) as no:
            await reload(stage, content)
        assert no.value.data["code"] == "config"
        (problem,) = no.value.data["problems"]
        assert (problem["file"], problem["line"]) == (str(stage.room / "agents.toml"), line)
    tree = await stage.fleet.tree()
    assert {name: runs(tree)[name] for name in before} == before
    assert (await stage.fleet.call("status"))["projects"][-1]["journal"] == head
    # What no file declares is not taken away by one.
    await reload(stage, project(THREE, 'description = "new"\n'))
    assert (await stage.fleet.tree())["forked"]["id"] == forked["id"]


async def test_many_reloads_leave_the_daemon_as_large_as_it_was(stage: Stage) -> None:
    tables = "\n".join(f"[agents.lead.agents.n{number}]" for number in range(30))

    async def change(turns: int) -> None:
        for turn in range(turns):
            await reload(stage, project(f'[agents.lead]\ndescription = "turn {turn}"\n', tables))

    def resident() -> int:
        (line,) = (line for line in lines_of(f"/proc/{stage.daemon}/status") if "VmRSS" in line)
        return int(line.split()[1])

    await stage.fleet.up(project("[agents.lead]", tables))
    await stage.standing("lead", *(f"n{number}" for number in range(30)))
    await change(20)
    before = resident()
    await change(40)
    assert resident() - before < 4_000  # kB
    assert len(stage.below()) == 31


async def test_arguments_reach_the_program_as_they_were_written(stage: Stage) -> None:
    words = ["foo ; bar", "a#b", "$HOME", "'\"", "", "ü\n%d"]
    program = "import sys; print(repr(sys.argv[1:]), flush=True); sys.stdin.read()"
    await stage.fleet.up(project(kind("says", sys.executable, "-ISc", program, *words), '[agents.lead]\nkind = "says"'))
    lead = (await stage.standing("lead"))["lead"]
    assert await stage.said(lead["id"], "[") == [repr(words)[1:]]


async def test_what_was_meant_for_the_daemon_and_what_is_secret_reaches_nobody_else(
    tier: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text('TOKEN = "very-secret"\n')
    secrets.chmod(0o600)
    monkeypatch.setenv("NOT_SECRET", "passed")
    async with start_daemon(tier, tmp_path, DAEMONS_OWN) as stage:
        text = "env | sort\necho end\nsleep 1000\n"
        await stage.fleet.up(project(stage.sh("shows", text), f'[agents.lead]\nkind = "shows"\nenv_file = "{secrets}"'))
        lead = (await stage.standing("lead"))["lead"]
        await stage.said(lead["id"], "end")
        given = dict(line.partition("=")[::2] for line in stage.printed(lead["id"]).decode().splitlines())
        assert given.keys().isdisjoint(DAEMONS_OWN)
        assert (given["NOT_SECRET"], given["TOKEN"]) == ("passed", "very-secret")
        shown = [await stage.fleet.ctl(*verb, "--json") for verb in (["tree"], ["status"], ["events"], ["config"])]
        shown.append("".join(lines_of(f"/proc/{lead['pid']}/cmdline")))
        assert not any("very-secret" in text for text in shown)
        await stage.fleet.call("down")
        kept = [path for path in stage.fleet.state.rglob("*") if path.is_file() and path.name != "transcript.jsonl"]
        assert kept
        assert not any(b"very-secret" in path.read_bytes() for path in kept)


async def test_a_program_that_cannot_be_started_is_tried_again_with_its_reason_and_hurts_nobody(stage: Stage) -> None:
    busy, plain, folder = stage.room / "busy", stage.room / "plain", stage.room / "folder"
    shutil.copy("/bin/true", busy)
    plain.write_text("no program")
    folder.mkdir()
    kinds = "\n".join(
        kind(name, str(program)) + f'[agents.{name}]\nkind = "{name}"\nrestart = "on-failure"'
        for name, program in (("missing", "/nowhere/x"), ("plain", plain), ("folder", folder), ("busy", busy))
    )
    with busy.open("ab"):
        await stage.fleet.up(project(kinds, "[agents.other]"))
        tree = await stage.fleet.until(
            lambda tree: all(tree[name]["state"] == "backoff" for name in ("missing", "plain", "folder", "busy"))
        )
    for name, why in (("missing", "No such file"), ("plain", "Permission"), ("folder", "Permission"), ("busy", "busy")):
        assert why.lower() in tree[name]["last"].lower(), tree[name]["last"]
        assert tree[name]["until"] > tree[name]["since"]
    assert (await stage.standing("other"))["other"]["run"] == 1
    await eventually(lambda: len(stage.below()) == 1, PATIENCE)
