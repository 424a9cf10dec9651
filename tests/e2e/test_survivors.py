"""Nothing of an agent outlives it: whatever its processes did to get away, and however it ended."""

from __future__ import annotations

import os
import signal
import socket
from typing import Any

import pytest

from tests.e2e.stage import Stage, alive, project, terminated
from tests.house import PATIENCE, eventually

#: Leaves a job in the background, and ends as if all were well.
LEAVES = """nohup sleep 1000 >/dev/null 2>&1 &
while read name </proc/$!/comm; [ $name != sleep ]; do :; done
echo left $!
exit 0
"""
ESCAPES = ("child", "grandchild", "session", "double", "deaf")


def gone(tree: dict[str, dict[str, Any]]) -> int:
    """How many agents in this tree are gone."""
    return sum(agent["state"] == "gone" for agent in tree.values())


async def test_a_killed_agent_takes_its_branch_with_it_and_no_one_else(stage: Stage) -> None:
    toml = [stage.victims("escaping", *ESCAPES), "[agents.lead]\n[agents.lead.agents.mid]\n[agents.bystander]"]
    await stage.fleet.up(project(*toml, grace="1s"))
    await stage.standing("lead", "mid", "bystander")
    leaf = await stage.fork("escaping", parent="mid")
    pids = await stage.pids(leaf["id"], ESCAPES)
    tree = await stage.fleet.tree()
    assert all(alive(pid) for pid in pids.values())
    os.kill(tree["lead"]["pid"], signal.SIGKILL)
    tree = await stage.fleet.until(lambda tree: gone(tree) == 3)
    assert [way for way, pid in pids.items() if not terminated(pid)] == []
    assert [process.pid for process in stage.below()] == [tree["bystander"]["pid"]]
    assert tree["bystander"]["run"] == 1


async def test_a_job_left_in_the_background_by_an_agent_that_exits_0_ends_and_is_named(stage: Stage) -> None:
    toml = stage.sh("leaving", LEAVES)
    await stage.fleet.up(project(toml))
    agent = (await stage.fleet.call("fork", kind="leaving"))["agent"]  # it may be gone before it is seen to be ready
    tree = await stage.fleet.until(lambda tree: gone(tree) == 1)
    (left,) = await stage.said(agent["id"], "left")
    exit_record = tree[agent["id"]]["exit"]
    assert exit_record["code"] == 0
    assert [(one["pid"], one["argv0"]) for one in exit_record["killed"]] == [(int(left), "sleep")]
    assert terminated(int(left))


async def test_what_left_its_group_its_session_and_its_ancestry_is_shown_and_ends(stage: Stage) -> None:
    await stage.fleet.up(project(stage.victims("escaping", *ESCAPES), '[agents.lead]\nkind = "escaping"', grace="1s"))
    lead = (await stage.standing("lead"))["lead"]
    pids = await stage.pids(lead["id"], ESCAPES)
    # To end the group, or the session, would not be enough.
    assert {os.getpgid(pids["session"]), os.getpgid(pids["double"])}.isdisjoint({lead["pid"]})
    assert {os.getsid(pids["session"]), os.getsid(pids["double"])}.isdisjoint({lead["pid"]})
    planned = await stage.fleet.call("disband", agent="lead", plan=True)
    shown = {each["pid"]: each["stray"] for each in planned["plan"]["agents"][0]["processes"]}
    assert shown[pids["double"]] is True
    assert shown[lead["pid"]] is shown[pids["session"]] is False
    assert set(pids.values()) < set(shown)
    killed = await stage.killed("lead")
    assert killed[pids["deaf"]]["how"] == "KILL"
    assert all(terminated(pid) for pid in shown)
    await stage.empty()


@pytest.mark.parametrize("way", ["stop", "disband", "SIGKILL", "crash"])
async def test_helpers_on_stdio_end_however_their_agent_does(stage: Stage, way: str) -> None:
    program = (
        "read, write = os.pipe()\n"
        "helpers = [subprocess.Popen([sys.executable, '-ISc', 'import sys; sys.stdin.read()'], stdin=subprocess.PIPE)"
        " for _ in range(3)]\n"
        "for helper in helpers: print('helper', helper.pid, flush=True)\n"
        "signal.sigwait([signal.SIGUSR1])\nos._exit(3)\n"
    )
    text = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n" + program
    await stage.fleet.up(project(stage.python("hosting", text), '[agents.lead]\nkind = "hosting"', grace="1s"))
    lead = (await stage.standing("lead"))["lead"]
    helpers = [int(pid) for pid in await stage.said(lead["id"], "helper", 3)]
    match way:
        case "SIGKILL":
            os.kill(lead["pid"], signal.SIGKILL)
        case "crash":
            os.kill(lead["pid"], signal.SIGUSR1)
        case verb:
            await stage.fleet.call(verb, agent="lead")
    await stage.fleet.until(lambda tree: all(agent["state"] in ("gone", "stopped") for agent in tree.values()))
    assert all(terminated(pid) for pid in helpers)
    await stage.empty()


async def test_a_stopped_chain_of_programs_frees_its_port(stage: Stage) -> None:
    serve = (
        "import socket, time; s = socket.create_server(('127.0.0.1', 0)); "
        "print('port', s.getsockname()[1], flush=True); time.sleep(1000)"
    )
    inner = stage.room / "inner.sh"
    inner.write_text(f'python3 -ISc "{serve}"\necho ended\n')
    await stage.fleet.up(project(stage.sh("chain", f"sh {inner}\n"), '[agents.web]\nkind = "chain"'))
    web = (await stage.standing("web"))["web"]
    (port,) = await stage.said(web["id"], "port")
    assert len(stage.below()) == 3
    await stage.fleet.call("stop", agent="web")
    assert stage.below() == []
    with socket.create_server(("127.0.0.1", int(port))):
        assert (await stage.fleet.tree())["web"]["state"] == "stopped"


async def test_an_agent_whose_child_takes_its_time_is_not_stopped_before_it_has_ended(stage: Stage) -> None:
    stage.python(
        "slow",
        "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(2), os._exit(0)))\n"
        "print('slow', os.getpid(), flush=True)\ntime.sleep(1000)\n",
    )
    await stage.fleet.up(
        project(stage.sh("quick", f"python3 -IS {stage.room}/slow.py &\nwait\n"), '[agents.lead]\nkind = "quick"')
    )
    lead = (await stage.standing("lead"))["lead"]
    (pid,) = await stage.said(lead["id"], "slow")
    ended = await stage.fleet.call("stop", agent="lead")
    assert terminated(int(pid))
    # The leader was gone at once; its child was let finish within the grace.
    assert [(one["pid"], one["how"]) for one in ended["ended"][0]["killed"]] == [(int(pid), "TERM")]


async def test_a_deaf_grandchild_that_changed_its_parent_between_the_signals_ends(stage: Stage) -> None:
    text = (
        "if os.fork() == 0:\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    print('deaf', os.getpid(), flush=True)\n"
        "    os.setsid()\n"
        "time.sleep(1000)\n"
    )
    await stage.fleet.up(project(stage.python("lone", text), '[agents.lead]\nkind = "lone"', grace="500ms"))
    lead = (await stage.standing("lead"))["lead"]
    (pid,) = await stage.said(lead["id"], "deaf")
    killed = await stage.killed("lead")
    assert killed[int(pid)]["how"] == "KILL"
    assert terminated(int(pid))
    exit_record = (await stage.fleet.tree())[lead["id"]]["exit"]
    assert exit_record["signal"] == signal.SIGTERM  # the leader itself was not killed


async def test_three_hundred_commands_put_aside_by_one_session_stay_countable_and_end_with_it(stage: Stage) -> None:
    text = (
        "i=0\nwhile [ $i -lt 300 ]; do setsid true & i=$((i+1)); done\n"
        "i=0\nwhile [ $i -lt 60 ]; do sh -c 'setsid sleep 1000 &' ; i=$((i+1)); done\n"
        "wait\necho ready\nsleep 1000\n"
    )
    await stage.fleet.up(project(stage.sh("shell", text), '[agents.lead]\nkind = "shell"'))
    lead = (await stage.standing("lead"))["lead"]
    await stage.said(lead["id"], "ready")

    async def shown() -> list[dict[str, Any]]:
        planned = await stage.fleet.call("disband", agent="lead", plan=True)
        processes: list[dict[str, Any]] = planned["plan"]["agents"][0]["processes"]
        return processes

    async def settled() -> bool:
        processes = await shown()
        strays = [each for each in processes if each["stray"] and each["argv0"] == "sleep"]
        return len(strays) == 60 and len(processes) == 62 == len(stage.below())

    await eventually(settled, PATIENCE)
    pids = {each["pid"] for each in await shown()}
    await stage.fleet.call("disband", agent="lead")
    assert all(terminated(pid) for pid in pids)
    await stage.empty()


async def test_children_end_whatever_way_their_parent_ended(stage: Stage) -> None:
    waiting = "print('on', flush=True)\ntime.sleep(1000)\n"
    crowd = "\n".join(f"[agents.WAY.agents.WAY-{number}]" for number in range(20))
    mains = "\n".join(
        f'[agents.{way}]\nkind = "{kind}"\n{more}' + crowd.replace("WAY", way)
        for way, kind, more in (
            ("exits", "exits", ""),
            ("interrupted", "waits", ""),
            ("crashes", "waits", ""),
            ("expires", "waits", 'grant = { wall = "1h" }\n'),
        )
    )
    toml = [stage.python("waits", waiting), stage.python("exits", "sys.stdin.read(1)\n"), mains]
    await stage.fleet.up(project(*toml, "[agents.bystander]"))
    tree = await stage.fleet.until(lambda tree: sum(agent["state"] == "standing" for agent in tree.values()) == 85)
    for way in ("interrupted", "crashes"):
        await stage.said(tree[way]["id"], "on")
    await stage.fleet.call("instruct", agent="exits", text="a word to end by")
    await stage.fleet.call("grant", agent="expires", wall=0.1)
    os.kill(tree["interrupted"]["pid"], signal.SIGINT)
    os.kill(tree["crashes"]["pid"], signal.SIGSEGV)
    tree = await stage.fleet.until(lambda tree: gone(tree) == 84)
    assert [process.pid for process in stage.below()] == [tree["bystander"]["pid"]]
    ways = {agent["name"]: agent["exit"] for agent in tree.values() if agent["parent"] is None}
    assert ways["exits"]["code"] == 0
    assert ways["crashes"]["signal"] == signal.SIGSEGV


async def test_ten_restarts_leave_one_process_and_all_children(stage: Stage) -> None:
    toml = [stage.victims("escaping", "child", "double"), '[agents.lead]\nkind = "escaping"\n[agents.lead.agents.kid]']
    await stage.fleet.up(project(*toml))
    kid = (await stage.standing("lead", "kid"))["kid"]
    lead = (await stage.fleet.tree())["lead"]
    for count in range(1, 11):
        await stage.said(lead["id"], "double", count)
        await stage.fleet.call("restart", agent="lead")
    await stage.said(lead["id"], "double", 11)
    tree = await stage.fleet.tree()
    assert tree["lead"]["run"] == 11
    assert (tree["kid"]["run"], tree["kid"]["pid"]) == (1, kid["pid"])
    assert len(stage.below()) == 4  # the agent, its child, its daemonised child, and the kid


async def test_a_server_that_an_agent_started_and_others_use_is_shown_beforehand_and_ends_with_it(stage: Stage) -> None:
    at = stage.room / "tmux"
    text = f"tmux -S {at} -f /dev/null new-session -d sleep 1000 && echo up\nsleep 1000\n"
    await stage.fleet.up(project(stage.sh("muxed", text), '[agents.lead]\nkind = "muxed"'))
    lead = (await stage.standing("lead"))["lead"]
    await stage.said(lead["id"], "up")
    planned = await stage.fleet.call("disband", agent="lead", plan=True)
    shown = {each["argv0"]: each for each in planned["plan"]["agents"][0]["processes"]}
    assert shown["tmux"]["stray"]
    await stage.fleet.call("disband", agent="lead")
    assert all(terminated(each["pid"]) for each in shown.values())
    await stage.empty()


async def test_stopped_processes_end_and_no_hang_up_reaches_the_daemon(stage: Stage) -> None:
    await stage.fleet.up(project(stage.victims("escaping", *ESCAPES), '[agents.lead]\nkind = "escaping"', grace="1s"))
    lead = (await stage.standing("lead"))["lead"]
    pids = await stage.pids(lead["id"], ESCAPES)
    assert os.getsid(stage.daemon) != os.getsid(lead["pid"])
    assert os.getpgid(stage.daemon) != os.getpgid(lead["pid"])
    for process in stage.below():
        os.kill(process.pid, signal.SIGSTOP)
    os.kill(pids["child"], signal.SIGKILL)
    os.kill(lead["pid"], signal.SIGKILL)
    await stage.fleet.until(lambda tree: gone(tree) == 1)
    await stage.empty()
    assert (await stage.fleet.call("status"))["pid"] == stage.daemon


async def test_agents_killed_at_once_leave_no_zombie_and_are_not_shown_as_running(stage: Stage) -> None:
    await stage.fleet.up(project(*(f"[agents.a-{number}]" for number in range(8))))
    tree = await stage.standing(*(f"a-{number}" for number in range(8)))
    for agent in list(tree.values())[:5]:
        os.kill(agent["pid"], signal.SIGKILL)
    tree = await stage.fleet.until(lambda tree: gone(tree) == 5)
    assert {agent["exit"]["signal"] for agent in tree.values() if agent["state"] == "gone"} == {signal.SIGKILL}
    assert {agent["pid"] for agent in tree.values() if agent["state"] == "gone"} == {None}
    assert len(stage.below()) == 3
    assert {process.state for process in stage.below()}.isdisjoint({"Z"})


async def test_children_that_have_finished_are_seen_with_their_age_and_are_released_by_their_task_budget(
    stage: Stage,
) -> None:
    turn = (
        "for line in sys.stdin:\n"
        """    print('{"fleet":"turn","state":"started"}', flush=True)\n"""
        """    print('{"fleet":"turn","state":"ended","text":"did it"}', flush=True)\n"""
    )
    await stage.fleet.up(project(stage.python("works", turn), "[agents.lead]"))
    await stage.standing("lead")
    idle = await stage.fork("works", parent="lead", task="once", name="idle")
    budgeted = await stage.fork("works", parent="lead", task="once", name="budgeted", max_tasks=1)
    tree = await stage.fleet.until(
        lambda tree: tree["idle"]["state"] == "standing" and tree["idle"]["tasks"]["done"] == 1 and gone(tree) == 1
    )
    assert tree["idle"]["id"] == idle["id"]
    assert tree["idle"]["elapsed"] > 0
    assert tree["idle"]["since"] > 0
    assert tree[budgeted["id"]]["tasks"] == {"done": 1, "max": 1}
    assert {process.pid for process in stage.below()} == {tree["lead"]["pid"], tree["idle"]["pid"]}


async def test_an_agent_cannot_end_itself_but_is_told_so_and_ends_what_is_below_it(stage: Stage) -> None:
    text = (
        "supervisorctl disband lead; echo own $?\n"
        "supervisorctl fork --kind sleep --name kid --wait >/dev/null; echo forked $?\n"
        "supervisorctl disband kid; echo below $?\nsleep 1000\n"
    )
    await stage.fleet.up(project(stage.sh("shell", text), '[agents.lead]\nkind = "shell"'))
    lead = (await stage.standing("lead"))["lead"]
    assert await stage.said(lead["id"], "own") == ["1"]
    assert await stage.said(lead["id"], "forked") == ["0"]
    assert await stage.said(lead["id"], "below") == ["0"]
    tree = await stage.fleet.tree()
    assert tree["lead"]["run"] == 1
    assert gone(tree) == 1
    assert await stage.fleet.call("status")
