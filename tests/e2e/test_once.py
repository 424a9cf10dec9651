"""Programs that do one task and end, as real processes: none between tasks, one a task, and nothing of it left."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from tests.e2e.stage import Stage, alive, project
from tests.house import eventually

#: Reads its task to the end of stdin, leaves a job behind, and says what it read.
COUNTS = """read -r line
cat >/dev/null
sleep 1000 >/dev/null 2>&1 &
echo "job $!"
echo "${#line} characters, run $FLEET_RUN_FILE"
"""
#: Speaks of its turn, and ends it, but stays until somebody ends it.
LINGERS = """print('{"fleet":"turn","state":"started"}', flush=True)
sys.stdin.read()
print('{"fleet":"turn","state":"ended","text":"through"}', flush=True)
while True: time.sleep(1000)
"""
#: Begins its turn, and goes on for ever.
WORKS = """print('{"fleet":"turn","state":"started"}', flush=True)
sys.stdin.read()
print("at work", flush=True)
while True: time.sleep(1000)
"""


def once(table: str) -> str:
    """The kind of a program that does one task and ends."""
    return table + "once = true\n"


async def until_away(stage: Stage, name: str) -> dict[str, Any]:
    """The agent once it has no process."""
    tree = await stage.fleet.until(lambda tree: tree[name]["pid"] is None and tree[name]["state"] == "standing")
    return tree[name]


async def test_each_task_is_a_process_and_what_it_left_is_ended_and_named(stage: Stage) -> None:
    await stage.fleet.up(project(once(stage.sh("script", COUNTS)), '[agents.boy]\nkind = "script"\n'))
    agent = await until_away(stage, "boy")
    assert (agent["run"], stage.below()) == (0, [])
    for number in (1, 2):
        said = await stage.fleet.call("instruct", agent="boy", text="Go.", wait=True)
        assert said["status"] == "done"
        assert said["text"].endswith("characters, run")
        agent = await until_away(stage, "boy")
        (job,) = (await stage.said(agent["id"], "job ", number))[number - 1 :]
        assert [killed["pid"] for killed in agent["exit"]["killed"]] == [int(job)]
        assert not alive(int(job))
        assert (agent["run"], agent["crashes"], agent["own"]["turns"]) == (number, 0, number)


async def test_a_script_that_fails_has_failed_its_task_and_takes_the_next(stage: Stage) -> None:
    script = once(stage.sh("script", "read -r line\necho trying\nexit 3\n"))
    await stage.fleet.up(project(script, '[agents.boy]\nkind = "script"\n'))
    for _ in range(2):
        said = await stage.fleet.call("instruct", agent="boy", text="Go.", wait=True)
        assert (said["status"], said["error"], said["text"]) == ("failed", "exited with 3", "trying")
    assert (await until_away(stage, "boy"))["crashes"] == 0


async def test_one_that_hears_nothing_and_ends_at_once_has_done_its_task(stage: Stage) -> None:
    await stage.fleet.up(project(once(stage.sh("script", "exit 0\n")), '[agents.boy]\nkind = "script"\n'))
    for _ in range(5):
        assert (await stage.fleet.call("instruct", agent="boy", text="Go.", wait=True))["status"] == "done"


async def test_a_fork_is_ready_at_once_and_children_live_under_one_without_a_process(stage: Stage) -> None:
    await stage.fleet.up(project(once(stage.sh("script", COUNTS)), '[agents.lead]\nkind = "script"\n'))
    born = await stage.fork("script", name="boy", parent="lead")
    tree = await stage.fleet.tree()
    assert (tree["boy"]["state"], tree["boy"]["pid"], tree["boy"]["id"]) == ("standing", None, born["id"])
    child = await stage.fork("sleep", name="kid", parent="boy")
    assert len(stage.below()) == 1
    await stage.fleet.call("disband", agent="lead")
    assert stage.below() == []
    assert (await stage.fleet.tree())[child["id"]]["state"] == "gone"


async def test_a_process_that_is_killed_in_its_turn_has_failed_its_task_and_the_agent_is_there_again(
    stage: Stage,
) -> None:
    program = once(stage.python("script", WORKS))
    await stage.fleet.up(project(program, '[agents.boy]\nkind = "script"\nrestart = "on-failure"\ntask = "Go."\n'))
    agent = await stage.fleet.state_of("boy", "working")
    await stage.said(agent["id"], "at work")
    await stage.fleet.call("instruct", agent="boy", text="Then this.")
    os.kill(agent["pid"], signal.SIGKILL)
    agent = await stage.fleet.state_of("boy", "backoff")
    assert (agent["crashes"], agent["status"]) == (1, "failed")
    assert "was ended by signal 9 in the middle of its turn; its last line: at work" in agent["summary"]
    agent = await stage.fleet.state_of("boy", "working")
    assert agent["run"] == 2


async def test_one_that_stays_after_its_turn_is_ended_after_its_grace_and_that_is_no_crash(stage: Stage) -> None:
    program = once(stage.python("script", LINGERS))
    await stage.fleet.up(project(program, '[agents.boy]\nkind = "script"\nstop_grace = "200ms"\n'))
    for _ in range(2):
        said = await stage.fleet.call("instruct", agent="boy", text="Go.", wait=True)
        assert said["text"] == "through"
    agent = await until_away(stage, "boy")
    assert (agent["crashes"], agent["tasks"]["done"], stage.below()) == (0, 2, [])


@pytest.mark.parametrize("verb", ["stop", "disband", "restart"])
async def test_what_ends_one_in_its_turn_ends_all_of_it(stage: Stage, verb: str) -> None:
    program = once(stage.python("script", WORKS))
    await stage.fleet.up(project(program, '[agents.boy]\nkind = "script"\ntask = "Go."\n'))
    agent = await stage.fleet.state_of("boy", "working")
    await stage.said(agent["id"], "at work")
    await stage.fleet.call(verb, agent="boy")
    assert stage.below() == []
    after = (await stage.fleet.tree())[agent["id"] if verb == "disband" else "boy"]
    state = {"stop": "stopped", "disband": "gone", "restart": "standing"}[verb]
    assert (after["state"], after["status"], after["crashes"]) == (state, "interrupted", 0)
    if verb == "stop":
        await stage.fleet.call("start", agent="boy")
        assert (await stage.fleet.tree())["boy"]["state"] == "standing"
        assert stage.below() == []


async def test_verbs_on_one_without_a_process_answer_at_once_and_start_none(stage: Stage) -> None:
    await stage.fleet.up(project(once(stage.sh("script", COUNTS)), '[agents.boy]\nkind = "script"\n'))
    for verb, state in (("restart", "standing"), ("stop", "stopped"), ("start", "standing"), ("disband", "gone")):
        agent = (await until_away(stage, "boy"))["id"] if verb != "start" else "boy"
        await stage.fleet.call(verb, agent="boy")
        tree = await stage.fleet.tree()
        assert (tree["boy"] if state != "gone" else tree[agent])["state"] == state
    assert stage.below() == []


async def test_a_missing_program_is_told_at_the_first_task(stage: Stage) -> None:
    broken = '[kinds.broken]\ncommand = ["./none"]\nprotocol = "lines"\nonce = true\n'
    await stage.fleet.up(project(broken, '[agents.boy]\nkind = "broken"\n'))
    said = await stage.fleet.call("instruct", agent="boy", text="Go.", wait=True)
    assert said["status"] == "left"
    assert said["error"].endswith("none: No such file or directory")


async def test_one_that_is_given_up_fails_no_faster_than_its_waits(stage: Stage) -> None:
    """Were there no wait, fifty texts would be fifty processes at once."""
    program = once(stage.python("script", WORKS.replace("while True: time.sleep(1000)", "os.abort()")))
    await stage.fleet.up(project(program, '[agents.boy]\nkind = "script"\nrestart = "always"\n'))
    for number in range(10):
        await stage.fleet.call("instruct", agent="boy", text=f"Go {number}.")
    agent = await stage.fleet.state_of("boy", "backoff")
    assert agent["run"] + agent["queued"] == 10, "each process had one"
    runs: list[tuple[str, float]] = []
    async with stage.fleet.events(since=0) as events:
        while len(runs) < 3:
            event = await anext(events)
            if event.get("fact") in ("Starting", "BackedOff"):
                runs.append((event["fact"], event["at"]))
    assert [fact for fact, _ in runs] == ["Starting", "BackedOff", "Starting"]
    assert runs[2][1] - runs[1][1] >= 1
    await eventually(lambda: not stage.below())
