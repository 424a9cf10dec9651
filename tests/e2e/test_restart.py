"""The daemon leaves in order and comes back with the same tree; whatever else ends it, nothing of the old one lives."""

from __future__ import annotations

import json
import os
import pty
import resource
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.runtime.journal.verify import verify
from tests.e2e.conftest import start_daemon
from tests.e2e.stage import Stage, alive, project, terminated
from tests.fleet import DAEMON, Fleet, RefusedError
from tests.house import PATIENCE, eventually, over, seen

NESTED = "[agents.lead]\n[agents.lead.agents.kid]\n[agents.lead.agents.kid.agents.grandkid]\n"
NAMES = ("lead", "kid", "grandkid")


def shape(tree: dict[str, dict[str, Any]]) -> dict[str, tuple[str, str | None, str]]:
    """Id, parent and state by name."""
    return {agent["name"]: (agent["id"], agent["parent"], agent["state"]) for agent in tree.values()}


async def leave(stage: Stage) -> int:
    """Tell the daemon to leave, and wait until it has."""
    stage.fleet.process.send_signal(signal.SIGTERM)
    return await over(stage.fleet.process)


async def test_an_orderly_end_empties_the_tree_and_a_start_brings_it_back_as_it_was(tier: str, tmp_path: Path) -> None:
    crowd = "i=0; while [ $i -lt 200 ]; do setsid sleep 1000 & i=$((i+1)); done; echo on; sleep 1000\n"
    go = tmp_path / "go"
    slow = f"trap 'until [ -e {go} ]; do sleep 0.01; done; exit' TERM\necho on\nsleep 1000 & wait\n"
    ending = '[agents.ending]\nkind = "slow"\nstop_grace = "3650d"\n[agents.stopped]'
    async with start_daemon(tier, tmp_path) as stage:
        kinds = [stage.victims("escaping", "double", "deaf"), stage.sh("crowd", crowd), stage.sh("slow", slow)]
        await stage.fleet.up(project(*kinds, NESTED, ending, grace="1s"))
        agent = (await stage.standing(*NAMES, "ending", "stopped"))["ending"]
        forked = [await stage.fork(kind, parent="kid", name=kind) for kind in ("escaping", "crowd")]
        await stage.pids(forked[0]["id"], ("double", "deaf"))
        await stage.said(forked[1]["id"], "on")
        await stage.said(agent["id"], "on")
        await stage.fleet.call("stop", agent="stopped")
        before = shape(await stage.fleet.tree())
        below = stage.below()
        async with stage.fleet.events() as events, trio.open_nursery() as nursery:
            nursery.start_soon(unanswered, stage, "ending")
            await stage.fleet.state_of("ending", "stopping")
            stage.fleet.process.send_signal(signal.SIGTERM)
            await until_fact(events, "Closing")
            go.touch()  # not before: its stop would be answered
            assert await over(stage.fleet.process) == 0
        assert len(below) > 200
        assert [str(process) for process in below if seen(process.pid) == process] == []
        for journal in stage.fleet.state.glob("*/journal.jsonl"):
            assert str(verify(journal)).startswith("whole and closed")
    async with start_daemon(tier, tmp_path) as stage:
        tree = await stage.standing(*NAMES, "escaping", "crowd")
        assert shape(tree) == before | {"ending": (*before["ending"][:2], "stopped")}
        assert {agent["name"]: agent["run"] for agent in tree.values()} == {
            name: 1 if name in ("stopped", "ending") else 2 for name in before
        }


async def until_fact(events: AsyncIterator[dict[str, Any]], name: str) -> dict[str, Any]:
    """The next such fact."""
    while (event := await anext(events))["fact"] != name:
        pass
    return event


async def brought_up(stage: Stage) -> None:
    """`up`, of which the daemon that is there wants to know nothing."""
    assert "started the daemon" in await stage.fleet.ctl("up")


async def unanswered(stage: Stage, name: str) -> None:
    """Stop an agent of a daemon that leaves before it is stopped."""
    with pytest.raises(EOFError):
        await stage.fleet.call("stop", agent=name)


async def test_what_starts_while_the_daemon_leaves_holds_up_nothing_and_is_not_lost(tier: str, tmp_path: Path) -> None:
    children = "\n".join(f"[agents.lead.agents.n{number}]" for number in range(40))
    forks = 0

    async def fork() -> None:
        nonlocal forks
        while True:
            try:
                await stage.fleet.call("fork", kind="sleep", parent="lead")
            except (RefusedError, OSError, EOFError):
                return
            forks += 1

    async with start_daemon(tier, tmp_path) as stage:
        await stage.fleet.up(project("[agents.lead]", children))
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(fork)
            await stage.fleet.until(lambda tree: len(tree) > 50)
            with trio.fail_after(PATIENCE):
                assert await leave(stage) == 0
    async with start_daemon(tier, tmp_path) as stage:
        tree = await stage.fleet.until(
            lambda tree: len(tree) > 40 + forks and all(agent["state"] == "standing" for agent in tree.values())
        )
        assert {process.pid for process in stage.below()} == {agent["pid"] for agent in tree.values()}


async def test_what_a_killed_daemon_left_ends_before_anything_starts(tier: str, tmp_path: Path) -> None:
    ways = ("child", "session", "double", "deaf")
    async with start_daemon(tier, tmp_path) as stage:
        other = '[agents.other]\nkind = "escaping"'
        await stage.fleet.up(project(stage.victims("escaping", *ways), NESTED, other, grace="500ms"))
        tree = await stage.standing("lead", "kid", "grandkid", "other")
        left = list((await stage.pids(tree["other"]["id"], ways)).values())
        left += [process.pid for process in stage.below() if process.pid not in left]
        stage.fleet.process.kill()
        await over(stage.fleet.process)
        assert alive(left[ways.index("deaf")])  # nobody watches over it
        before = shape(tree)
    async with start_daemon(tier, tmp_path) as stage:
        assert not any(alive(pid) for pid in left)
        tree = await stage.standing("lead", "kid", "grandkid", "other")
        assert shape(tree) == before
        await stage.said(tree["other"]["id"], "deaf", 2)
        assert {agent["run"] for agent in tree.values()} == {2}
        assert len(stage.below()) == 4 + len(ways)
        events = (await stage.fleet.call("events", since=0))["events"]
        lost = [event["agent"] for event in events if event["fact"] == "Lost"]
        assert lost == [agent for agent, _, _ in before.values()]
        await stage.fleet.call("down")


def on_a_terminal(tier: str) -> tuple[subprocess.Popen[bytes], int, int]:
    """A daemon in the foreground of a terminal: it, the pipe on which it says that it serves, and the terminal."""
    terminal, theirs = pty.openpty()
    ready, told = os.pipe()
    daemon = subprocess.Popen(
        ["setsid", "--ctty", *DAEMON, "--no-warden", "--tier", tier],
        stdin=theirs, stdout=theirs, stderr=theirs, pass_fds=(told,),
        env=os.environ | {"SUPERVISORD_READY_FD": str(told)},
    )  # fmt: skip
    os.close(theirs)
    os.close(told)
    return daemon, ready, terminal


async def test_a_ctrl_c_on_the_daemons_terminal_is_an_ordered_stop_and_no_interrupt_of_agents(
    tier: str, tmp_path: Path
) -> None:
    text = (
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])\nprint('on', flush=True)\n"
        "print('got', signal.Signals(signal.sigwait([signal.SIGINT, signal.SIGTERM])).name, flush=True)\n"
    )
    daemon, ready, terminal = on_a_terminal(tier)
    try:
        with trio.fail_after(PATIENCE):
            await trio.to_thread.run_sync(lambda: os.read(ready, 1), abandon_on_cancel=True)
        stage = Stage(Fleet(tmp_path, daemon, tier), tmp_path)
        await stage.fleet.up(project(stage.python("notes", text), '[agents.lead]\nkind = "notes"'))
        lead = (await stage.standing("lead"))["lead"]
        await stage.said(lead["id"], "on")
        os.write(terminal, b"\x03")
        with trio.fail_after(PATIENCE):
            assert await over(daemon) == 0
        assert await stage.said(lead["id"], "got") == ["SIGTERM"]
    finally:
        os.close(ready)
        os.close(terminal)
        daemon.kill()
        daemon.wait()


async def test_a_daemon_without_a_free_descriptor_starts_nothing_and_goes_on(alone: Stage) -> None:
    stage = alone
    await stage.fleet.up(project('[agents.lead]\n[agents.late]\nrestart = "on-failure"\n[agents.deaf]'))
    tree = await stage.standing("lead", "late", "deaf")
    soft, hard = resource.prlimit(stage.daemon, resource.RLIMIT_NOFILE)
    stop = {"jsonrpc": "2.0", "id": 2, "method": "stop", "params": {"agent": "deaf", "cwd": str(stage.fleet.at)}}
    async with await trio.open_unix_socket(stage.fleet.socket) as first:
        await first.send_all(b'{"jsonrpc":"2.0","id":1,"method":"status"}\n')
        await first.receive_some(1)
        used = max(map(int, os.listdir(f"/proc/{stage.daemon}/fd"))) + 1
        resource.prlimit(stage.daemon, resource.RLIMIT_NOFILE, (used, hard))
        os.kill(tree["late"]["pid"], signal.SIGKILL)
        await first.send_all(json.dumps(stop).encode() + b"\n")
        await eventually(lambda: terminated(tree["deaf"]["pid"]) and terminated(tree["late"]["pid"]), PATIENCE)
        resource.prlimit(stage.daemon, resource.RLIMIT_NOFILE, (soft, hard))
    await stage.fleet.until(lambda tree: tree["late"]["run"] > 1 and tree["late"]["state"] == "standing")
    assert (await stage.fleet.state_of("deaf", "stopped"))["run"] == 1
    assert len(stage.below()) == 2


async def test_shutdown_returns_when_all_has_left_and_up_meanwhile_waits_for_it(alone: Stage) -> None:
    stage = alone
    deaf = stage.python(
        "deaf", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('on', flush=True)\ntime.sleep(1000)\n"
    )
    await stage.fleet.up(project(deaf, '[agents.lead]\nkind = "deaf"', grace="3650d"))
    lead = (await stage.standing("lead"))["lead"]
    await stage.said(lead["id"], "on")
    told = await stage.fleet.ctl("shutdown", "--timeout", "50ms", code=4)
    assert told == ""
    assert stage.fleet.process.poll() is None
    file = stage.room / "agents.toml"
    file.write_text(file.read_text().replace("3650d", "1s"))
    async with stage.fleet.events() as events, trio.open_nursery() as nursery:
        nursery.start_soon(brought_up, stage)
        while (await until_fact(events, "Refused"))["verb"] != "up":
            pass
        os.kill(lead["pid"], signal.SIGKILL)
    assert stage.fleet.process.poll() == 0
    assert (await stage.standing("lead"))["lead"]["id"] == lead["id"]
    second = await stage.fleet.call("status")
    assert f"(pid {second['pid']}) has left" in await stage.fleet.ctl("shutdown")
    assert not alive(second["pid"])
    assert not stage.fleet.socket.exists()
