"""Ending agents: one or many at once, in their order, within their grace, and whatever else is asked meanwhile."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from typing import Any

import pytest
import trio

from tests.e2e.stage import Stage, alive, project, terminated
from tests.fleet import RefusedError
from tests.house import PATIENCE

#: Notes each signal, with its name, in a file; ends after so many seconds.
NOTING = """
notes, wait = sys.argv[1], float(sys.argv[2])
watched = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
signal.pthread_sigmask(signal.SIG_BLOCK, watched)
def note(what):
    with open(notes, "a") as file:
        file.write(f"{os.environ['FLEET_NAME']} {what} {os.getpid()}\\n")
print("on", os.getpid(), flush=True)
end = time.monotonic() + 1000
while (left := end - time.monotonic()) > 0:
    came = signal.sigtimedwait(watched, left)
    if came is not None:
        note(signal.Signals(came.si_signo).name)
        end = min(end, time.monotonic() + wait)
note("ended")
"""
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('on', flush=True)\nwhile True: time.sleep(1000)\n"


class Notes:
    """What the processes of a `noting` kind wrote down, in order."""

    def __init__(self, stage: Stage) -> None:
        self.path = stage.room / "notes"
        self.kind = stage.python("noting", NOTING, str(self.path), "0")

    def taking(self, seconds: float) -> str:
        """The kind whose programs take so long to end."""
        return self.kind.replace('"0"]', f'"{seconds}"]')

    def lines(self) -> list[tuple[str, str]]:
        """(agent, what) pairs."""
        return [(line.split()[0], line.split()[1]) for line in self.path.read_text().splitlines()]


async def all_on(stage: Stage, tree: dict[str, dict[str, Any]], *names: str) -> None:
    """Wait until the programs of these agents say that they are ready for signals."""
    for name in names:
        await stage.said(tree[name]["id"], "on")


async def test_a_clean_up_within_the_grace_is_finished_and_what_is_deaf_is_killed_after_it(stage: Stage) -> None:
    notes = Notes(stage)
    mains = '[agents.cleans]\nkind = "noting"\nstop_grace = "60s"\n[agents.deaf]\nkind = "deaf"\nstop_grace = "500ms"'
    await stage.fleet.up(project(notes.taking(1.5), stage.python("deaf", DEAF), mains))
    await all_on(stage, await stage.standing("cleans", "deaf"), "cleans", "deaf")
    await stage.fleet.call("stop", agent="cleans")
    await stage.fleet.call("stop", agent="deaf")
    tree = await stage.fleet.tree()
    assert notes.lines() == [("cleans", "SIGTERM"), ("cleans", "ended")]
    assert (tree["cleans"]["exit"]["code"], tree["cleans"]["exit"]["killed"]) == (0, [])
    assert tree["deaf"]["exit"]["signal"] == signal.SIGKILL


async def test_a_deaf_agent_is_ended_by_the_clock_with_each_step_on_record_once(stage: Stage) -> None:
    await stage.fleet.up(project(stage.python("deaf", DEAF), '[agents.deaf]\nkind = "deaf"\nstop_grace = "300ms"'))
    await all_on(stage, await stage.standing("deaf"), "deaf")
    for _ in range(3):
        await stage.fleet.call("stop", agent="deaf")
    events = (await stage.fleet.call("events"))["events"]
    told = [event["fact"] for event in events if event["fact"] in ("Leaving", "Exited", "Left")]
    assert told == ["Leaving", "Exited", "Left"]


async def test_every_process_of_every_level_gets_one_sigterm_and_nothing_else(stage: Stage) -> None:
    notes = Notes(stage)
    text = notes.kind.split('", "')[2]
    chain = f"{{ {{ python3 -IS {text} {notes.path} 0.3; }} & python3 -IS {text} {notes.path} 0.3 & wait; }} & wait\n"
    shell = "trap 'echo shell SIGTERM 0 >>NOTES; exit' TERM\n".replace("NOTES", str(notes.path)) + chain
    await stage.fleet.up(project(notes.taking(0.3), stage.sh("levels", shell), '[agents.lead]\nkind = "levels"'))
    tree = await stage.standing("lead")
    await stage.said(tree["lead"]["id"], "on", 2)
    await stage.fleet.call("stop", agent="lead")
    assert sorted(notes.lines()) == sorted([("shell", "SIGTERM")] + [("lead", "SIGTERM")] * 2 + [("lead", "ended")] * 2)


async def test_a_branch_ends_deepest_first_and_its_siblings_are_left_alone(stage: Stage) -> None:
    notes = Notes(stage)
    tables = "\n".join(
        f'[agents.{".agents.".join(path)}]\nkind = "noting"'
        for path in (["top"], ["top", "mid"], ["top", "mid", "low"], ["top", "mid", "low2"], ["beside"])
    )
    await stage.fleet.up(project(notes.taking(0.1), tables))
    names = ("top", "mid", "low", "low2", "beside")
    await all_on(stage, await stage.standing(*names), *names)
    await stage.fleet.call("disband", agent="top")
    order = notes.lines()
    assert {name for name, what in order[:4]} == {"low", "low2"}
    assert order[4:] == [("mid", "SIGTERM"), ("mid", "ended"), ("top", "SIGTERM"), ("top", "ended")]
    beside = (await stage.fleet.tree())["beside"]
    assert (beside["state"], beside["run"]) == ("standing", 1)
    assert alive(beside["pid"])


async def test_a_hundred_agents_that_need_their_time_to_end_take_it_together(stage: Stage) -> None:
    text = "trap 'sleep 1; exit 0' TERM\necho on\nsleep 1000 & wait\n"
    children = "\n".join(f'[agents.top.agents.n{number}]\nkind = "slow"' for number in range(100))
    await stage.fleet.up(project(stage.sh("slow", text), "[agents.top]", children, grace="60s"))
    names = [f"n{number}" for number in range(100)]
    await all_on(stage, await stage.standing(*names), *names)
    with trio.fail_after(30):  # one after the other they would take more than three times that
        ended = await stage.fleet.call("disband", agent="top")
    assert {one["how"] for agent in ended["ended"] for one in agent["killed"]} <= {"TERM"}


async def test_a_grace_is_a_maximum(stage: Stage) -> None:
    children = "\n".join(f"[agents.top.agents.n{number}]" for number in range(20))
    await stage.fleet.up(project("[agents.top]", children, grace="3650d"))
    await stage.standing("top", *(f"n{number}" for number in range(20)))
    with trio.fail_after(PATIENCE):
        await stage.fleet.call("disband", agent="top")


async def test_an_endless_grace_holds_up_nobody_else(stage: Stage) -> None:
    patient = 'kind = "deaf"\nstop_grace = "3650d"'
    await stage.fleet.up(project(stage.python("deaf", DEAF), f"[agents.patient]\n{patient}\n[agents.other]"))
    tree = await stage.standing("patient", "other")
    await all_on(stage, tree, "patient")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: stage.fleet.call("stop", agent="patient"))
        await stage.fleet.state_of("patient", "stopping")
        await stage.fleet.call("stop", agent="other")
        assert (await stage.fleet.tree())["patient"]["state"] == "stopping"
        os.kill(tree["patient"]["pid"], signal.SIGKILL)


async def test_a_stop_under_way_is_shortened_by_the_end_of_the_branch_above_it(stage: Stage) -> None:
    kid = '[agents.lead.agents.kid]\nkind = "deaf"\nstop_grace = "3650d"'
    await stage.fleet.up(project(stage.python("deaf", DEAF), '[agents.lead]\nstop_grace = "1s"', kid))
    tree = await stage.standing("lead", "kid")
    await all_on(stage, tree, "kid")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: stage.fleet.call("stop", agent="kid"))
        await stage.fleet.state_of("kid", "stopping")
        await stage.fleet.call("disband", agent="lead")
    assert terminated(tree["kid"]["pid"])


async def test_a_restart_under_way_is_shortened_by_a_stop(stage: Stage) -> None:
    await stage.fleet.up(project(stage.python("deaf", DEAF), '[agents.lead]\nkind = "deaf"\nstop_grace = "3650d"'))
    tree = await stage.standing("lead")
    await all_on(stage, tree, "lead")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: stage.fleet.call("restart", agent="lead"))
        await stage.fleet.state_of("lead", "starting")
        await stage.fleet.up((stage.room / "agents.toml").read_text().replace("3650d", "300ms"))
        await stage.fleet.call("stop", agent="lead")
    assert (await stage.fleet.tree())["lead"]["run"] == 1


async def test_a_process_outside_that_holds_an_agents_stdout_and_writes_for_ever_does_not_hold_up_its_end(
    stage: Stage,
) -> None:
    at = stage.room / "given"
    text = (
        "import socket\n"
        f"s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM); s.connect({str(at)!r})\n"
        "socket.send_fds(s, [b'x'], [1]); s.recv(1)\nprint('on', flush=True)\ntime.sleep(1000)\n"
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(at))
        listener.listen()
        await stage.fleet.up(project(stage.python("gives", text), '[agents.lead]\nkind = "gives"'))
        lead = (await stage.standing("lead"))["lead"]
        taken, _ = await trio.to_thread.run_sync(listener.accept, abandon_on_cancel=True)
        with taken:
            _, (held,), _, _ = socket.recv_fds(taken, 1, 1)
            taken.send(b"x")
        await stage.said(lead["id"], "on")
        os.set_blocking(held, False)
        written = trio.Event()

        async def write() -> None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # until nobody listens any more
                while True:
                    await trio.lowlevel.wait_writable(held)
                    os.write(held, b"still here\n")
                    written.set()

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(write)
                await written.wait()
                with trio.fail_after(PATIENCE):
                    await stage.fleet.call("disband", agent="lead")
        finally:
            os.close(held)


async def test_a_grandchild_that_holds_stdout_ends_within_the_grace(stage: Stage) -> None:
    text = (
        "if os.fork() == 0:\n    os.setsid()\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    print('on', os.getpid(), flush=True)\ntime.sleep(1000)\n"
    )
    await stage.fleet.up(project(stage.python("holds", text), '[agents.lead]\nkind = "holds"', grace="500ms"))
    lead = (await stage.standing("lead"))["lead"]
    (pid,) = await stage.said(lead["id"], "on")
    with trio.fail_after(PATIENCE):
        await stage.fleet.call("stop", agent="lead")
    assert terminated(int(pid))


async def test_a_program_that_speaks_is_stopped_by_the_end_of_its_input(stage: Stage) -> None:
    text = (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        """print('{"fleet":"status","text":"here"}', flush=True)\n"""
        "for line in sys.stdin: pass\nprint('input ended', flush=True)\n"
    )
    await stage.fleet.up(project(stage.python("reads", text), '[agents.lead]\nkind = "reads"', grace="60s"))
    lead = await stage.fleet.until(lambda tree: "lead" in tree and tree["lead"]["last"] == "here")
    await stage.fleet.call("stop", agent="lead")
    ended = (await stage.fleet.tree())["lead"]
    assert (ended["exit"]["code"], ended["exit"]["killed"]) == (0, [])
    assert stage.printed(lead["lead"]["id"]).endswith(b"input ended\n")


async def test_an_agent_that_exits_while_it_is_being_stopped_is_stopped(stage: Stage) -> None:
    text = "signal.signal(signal.SIGTERM, lambda *_: os._exit(7))\nprint('on', flush=True)\ntime.sleep(1000)\n"
    toml = [stage.python("exits", text), '[agents.lead]\nkind = "exits"\nrestart = "always"']
    await stage.fleet.up(project(*toml))
    await all_on(stage, await stage.standing("lead"), "lead")
    await stage.fleet.call("stop", agent="lead")
    lead = (await stage.fleet.tree())["lead"]
    assert (lead["state"], lead["exit"]["code"], lead["run"], lead["crashes"]) == ("stopped", 7, 1, 0)


@pytest.mark.parametrize("verb", ["stop", "disband"])
async def test_an_end_that_comes_during_the_start_leaves_nothing(stage: Stage, verb: str) -> None:
    children = "\n".join(f"[agents.lead.agents.n{number}]" for number in range(30))
    await stage.fleet.up(project("[agents.lead]", children))
    ended = await stage.fleet.call(verb, agent="lead")
    assert {agent["state"] for agent in ended["ended"]} == {"stopped" if verb == "stop" else "gone"}
    assert stage.below() == []


async def test_a_start_that_comes_during_the_end_is_refused_and_works_after_it(stage: Stage) -> None:
    kid = '[agents.lead.agents.kid]\nkind = "deaf"\nstop_grace = "3650d"'
    await stage.fleet.up(project(stage.python("deaf", DEAF), '[agents.lead]\nstop_grace = "3650d"', kid))
    before = await stage.standing("lead", "kid")
    await all_on(stage, before, "kid")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: stage.fleet.call("stop", agent="lead"))
        await stage.fleet.state_of("lead", "stopping")
        with pytest.raises(RefusedError, match="still stopping"):
            await stage.fleet.call("start", agent="lead")
        with pytest.raises(RefusedError, match="takes no children"):
            await stage.fleet.call("fork", kind="sleep", parent="lead")
        os.kill(before["kid"]["pid"], signal.SIGKILL)  # not before: it would be over
        await stage.fleet.state_of("kid", "stopped")
        if (await stage.fleet.tree())["lead"]["state"] == "stopping":
            with pytest.raises(RefusedError, match="start that first"):
                await stage.fleet.call("start", agent="kid")
    await stage.fleet.call("start", agent="lead")
    tree = await stage.standing("lead", "kid")
    assert (tree["lead"]["run"], tree["kid"]["run"]) == (2, 2)
    os.kill(tree["kid"]["pid"], signal.SIGKILL)


async def test_a_stop_keeps_declared_children_and_ends_forked_ones_for_good(stage: Stage) -> None:
    await stage.fleet.up(project("[agents.lead]\n[agents.lead.agents.kid]"))
    await stage.standing("lead", "kid")
    forked = await stage.fork(parent="lead", name="forked")
    await stage.fleet.call("stop", agent="lead")
    tree = await stage.fleet.tree()
    assert (tree["lead"]["state"], tree["kid"]["state"], tree[forked["id"]]["state"]) == ("stopped", "stopped", "gone")
    await stage.fleet.call("start", agent="lead")
    tree = await stage.standing("lead", "kid")
    assert len(stage.below()) == 2


async def test_whatever_is_asked_at_the_same_time_there_is_one_process_or_none(stage: Stage) -> None:
    toml = project("[agents.lead]\n[agents.lead.agents.kid]", grace="5s")
    await stage.fleet.up(toml)
    await stage.standing("lead", "kid")
    outcomes: list[str] = []

    async def ask(verb: str, agent: str, turn: int) -> None:
        try:
            if verb == "reload":
                await stage.fleet.up(toml.replace('"5s"', f'"{5 + turn}s"'))
            else:
                await stage.fleet.call(verb, agent=agent)
            outcomes.append("done")
        except RefusedError as no:
            outcomes.append(no.data["code"])

    with trio.fail_after(2 * PATIENCE):
        for turn in range(6):
            async with trio.open_nursery() as nursery:
                for verb in ("stop", "start", "restart", "start", "reload", "restart", "stop", "start"):
                    for agent in ("lead", "kid"):
                        nursery.start_soon(ask, verb, agent, turn)
    assert set(outcomes) <= {"done", "state"}
    assert outcomes.count("done") > len(outcomes) / 4
    # A start is answered when the one that was asked for is ready; the child that comes along may still begin.
    tree = await stage.fleet.until(lambda tree: {agent["state"] for agent in tree.values()} <= {"standing", "stopped"})
    assert {process.pid for process in stage.below()} == {agent["pid"] for agent in tree.values() if agent["pid"]}
    assert sum(agent["state"] == "standing" for agent in tree.values()) == len(stage.below())
