"""Whoever stands still holds up nobody else: an agent that was stopped by a signal, or a client that reads nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from functools import partial

import trio

from tests.e2e.stage import Stage, alive, project
from tests.fleet import CTL
from tests.house import PATIENCE, eventually, seen

#: Begins a turn with each text, and says something for ever.
TALKS = """print('{"fleet":"ready"}', flush=True)
for line in sys.stdin:
    print('{"fleet":"turn","state":"started"}', flush=True)
    while True:
        print("a line", flush=True)
        time.sleep(0.01)
"""


def stands_still(pid: int) -> bool:
    """Whether the kernel says that it is stopped."""
    found = seen(pid)
    return found is not None and found.state == "T"


async def test_an_agent_whose_process_was_stopped_is_called_wedged_and_answers_go_on(stage: Stage) -> None:
    await stage.fleet.up(project(stage.python("talks", TALKS), '[agents.kid]\nkind = "talks"\ntask = "Go."\n'))
    await stage.fork(parent="kid", name="below")
    agent = await stage.fleet.state_of("kid", "working")
    assert agent["wedged"] is False
    os.kill(agent["pid"], signal.SIGSTOP)

    async def wedged() -> bool:
        with trio.fail_after(PATIENCE):
            tree = await stage.fleet.tree()
        assert not tree["below"]["wedged"]
        return bool(tree["kid"]["wedged"])

    await eventually(wedged)
    drawn = await stage.fleet.ctl("tree")
    assert "wedged" in drawn
    assert (await stage.fleet.json("tree"))["agents"][0]["wedged"] is True
    # Others are served, and it is not taken for dead.
    await stage.fork(parent="kid", name="another")
    assert (await stage.fleet.tree())["kid"]["state"] == "working"
    os.kill(agent["pid"], signal.SIGCONT)

    async def goes_on() -> bool:
        return not (await stage.fleet.tree())["kid"]["wedged"]

    await eventually(goes_on)
    assert alive(agent["pid"])


async def test_an_agent_that_was_stopped_is_ended_like_any_other(stage: Stage) -> None:
    await stage.fleet.up(project('[agents.kid]\nkind = "sleep"\n', grace="300ms"))
    pid = (await stage.standing("kid"))["kid"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    await stage.fleet.call("disband", agent="kid")
    assert not alive(pid)


async def test_a_client_that_was_stopped_and_reads_nothing_holds_up_nobody(stage: Stage) -> None:
    await stage.fleet.up(project(stage.python("talks", TALKS), '[agents.kid]\nkind = "talks"\ntask = "Go."\n'))
    await stage.fleet.state_of("kid", "working")
    clients = [
        subprocess.Popen([*CTL, *verb], cwd=stage.fleet.at, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        for verb in (["logs", "kid", "--follow"], ["events", "--follow", "--json"])
    ]
    try:
        for client in clients:
            assert client.stdout is not None
            await trio.to_thread.run_sync(client.stdout.readline, abandon_on_cancel=True)
            client.send_signal(signal.SIGSTOP)
            await eventually(partial(stands_still, client.pid))
        for number in range(30):
            with trio.fail_after(PATIENCE):
                await stage.fork(parent="kid", name=f"n{number}")
                tree = await stage.fleet.tree()
            assert f"n{number}" in tree
        assert json.loads(await stage.fleet.ctl("status", "--json"))["projects"]
    finally:
        for client in clients:
            client.kill()
            client.communicate()
