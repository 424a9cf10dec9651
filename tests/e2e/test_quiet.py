"""Silence in a turn: shown with its age, and never a reason to end anything but where the file says so."""

from __future__ import annotations

import os
import signal

import pytest

from tests.e2e.stage import Stage, alive, project
from tests.fleet import RefusedError
from tests.house import eventually

#: Begins a turn with each text, and then does nothing that anyone could see.
IDLE = """print('{"fleet":"ready"}', flush=True)
for line in sys.stdin:
    print('{"fleet":"turn","state":"started"}', flush=True)
"""
#: The same, with a child that works, in a session of its own and saying nothing, until a file is there.
BUSY = """print('{"fleet":"ready"}', flush=True)
for line in sys.stdin:
    print('{"fleet":"turn","state":"started"}', flush=True)
    work = "import os\\nwhile not os.path.exists('GO'): pass"
    subprocess.run([sys.executable, "-IS", "-c", work], start_new_session=True)
    time.sleep(1000)
"""
#: Prints to stderr alone, again and again.
STDERR = """print('{"fleet":"ready"}', flush=True)
for line in sys.stdin:
    print('{"fleet":"turn","state":"started"}', flush=True)
    while True:
        print("retrying", file=sys.stderr, flush=True)
        time.sleep(0.05)
"""


def kid(program: str, **values: str) -> str:
    """A fleet with one agent that has a task."""
    lines = "".join(f'{key} = "{value}"\n' for key, value in values.items())
    return project(program, f'[agents.kid]\nkind = "program"\ntask = "Go."\n{lines}')


async def quiet(stage: Stage) -> dict[str, object]:
    """The agent as soon as it is quiet, having said something; it may begin late."""

    async def look() -> dict[str, object] | None:
        agent = (await stage.fleet.tree())["kid"]
        return agent if agent["quiet"] and agent["ages"]["line"] is not None else None

    return await eventually(look)  # type: ignore[arg-type]  # until there is one


async def test_a_silent_turn_is_marked_quiet_with_its_age_and_left_alone(stage: Stage) -> None:
    await stage.fleet.up(kid(stage.python("program", IDLE), quiet_after="300ms"))
    before = await stage.fleet.state_of("kid", "working")
    assert before["quiet_after"] == 0.3
    assert before["quiet"] == (before["silent"] >= 0.3)
    agent = await quiet(stage)
    ages = agent["ages"]
    assert isinstance(ages, dict)
    assert ages["process"] >= ages["turn"] >= 0.3
    assert ages["line"] >= 0.3
    assert "quiet for" in await stage.fleet.ctl("tree")
    assert (agent["state"], agent["pid"]) == ("working", before["pid"])
    assert alive(before["pid"])
    recorded = (await stage.fleet.call("events", since=0))["events"]
    assert "Silent" not in {event["fact"] for event in recorded}, "what is only shown is no fact"


async def test_an_agent_that_stands_by_or_waits_for_a_person_is_never_quiet(stage: Stage) -> None:
    asks = "script:\nprompt p1 May I?\nwait answer p1\nwait forever"
    agents = f"""[agents.idle]\nkind = 'scripted'\nquiet_kill = '200ms'\nquiet_after = '1ms'\nrestart = 'always'
[agents.asks]\nkind = 'scripted'\nquiet_kill = '1s'\nquiet_after = '1ms'\nrestart = 'always'\ntask = '''{asks}'''\n"""
    await stage.fleet.up(project(agents))
    await stage.fleet.state_of("asks", "waiting")
    idle = await stage.fleet.state_of("idle", "standing")

    async def old() -> bool:
        tree = await stage.fleet.tree()
        assert not tree["idle"]["quiet"]
        assert not tree["asks"]["quiet"]
        assert tree["asks"]["state"] == "waiting"
        return bool(tree["idle"]["ages"]["process"] > 1.5)

    await eventually(old)
    tree = await stage.fleet.tree()
    assert tree["idle"]["ages"]["turn"] is None
    assert (tree["idle"]["pid"], tree["idle"]["crashes"]) == (idle["pid"], 0)
    await stage.fleet.call("approve", agent="asks")
    agent = await stage.fleet.state_of("asks", "backoff")
    assert "silent for" in agent["last"], "from the answer on it may be silent no longer than others"


async def test_a_run_that_is_silent_for_too_long_is_ended_and_has_failed(stage: Stage) -> None:
    await stage.fleet.up(kid(stage.python("program", IDLE), quiet_kill="300ms", restart="on-failure"))
    pid = (await stage.fleet.state_of("kid", "working"))["pid"]
    agent = await stage.fleet.state_of("kid", "backoff")
    assert not alive(pid)
    assert (agent["status"], agent["crashes"]) == ("failed", 1)
    assert agent["summary"].startswith("silent for ")
    assert agent["last"] == agent["summary"]


async def test_who_works_in_silence_is_left_alone_until_it_stops(stage: Stage) -> None:
    go = stage.room / "go"
    program = stage.python("program", BUSY.replace("GO", str(go)))
    # Of a busy machine it needs 20 ms of a processor in one of four looks, which are a quarter of this apart.
    await stage.fleet.up(kid(program, quiet_kill="1s", quiet_after="200ms", restart="on-failure"))
    pid = (await stage.fleet.state_of("kid", "working"))["pid"]

    async def long() -> bool:
        agent = (await stage.fleet.tree())["kid"]
        assert (agent["pid"], agent["state"]) == (pid, "working")
        return bool(agent["ages"]["turn"] > 3 and agent["quiet"] and agent["ages"]["progress"] < 1)

    await eventually(long, what="quiet for long, and working all the time")
    go.touch()
    assert (await stage.fleet.state_of("kid", "backoff"))["status"] == "failed"


async def test_what_is_printed_to_stderr_is_no_silence(stage: Stage) -> None:
    await stage.fleet.up(kid(stage.python("program", STDERR), quiet_kill="500ms", restart="on-failure"))

    async def long() -> bool:
        agent = (await stage.fleet.tree())["kid"]
        assert agent["state"] in ("starting", "standing", "working")
        return bool((agent["ages"]["turn"] or 0) > 2)

    await eventually(long)


async def test_a_daemon_that_was_stopped_takes_nobody_for_silent(stage: Stage) -> None:
    """As after a suspended machine: what was said meanwhile is heard first."""
    await stage.fleet.up(kid(stage.python("program", STDERR), quiet_kill="2s", restart="on-failure"))
    agent = await stage.fleet.state_of("kid", "working")
    os.kill(stage.daemon, signal.SIGSTOP)
    start = stage.transcript(agent["id"]).with_name("stderr.log")
    size = start.stat().st_size
    os.kill(agent["pid"], signal.SIGSTOP)
    os.kill(stage.daemon, signal.SIGCONT)
    os.kill(agent["pid"], signal.SIGCONT)
    await eventually(lambda: start.stat().st_size > size)
    assert (await stage.fleet.tree())["kid"]["pid"] == agent["pid"]


async def test_a_reload_sets_the_silence_of_a_turn_that_runs(stage: Stage) -> None:
    await stage.fleet.up(kid(stage.python("program", IDLE), restart="on-failure"))
    await stage.fleet.state_of("kid", "working")
    await stage.fleet.up(kid(stage.python("program", IDLE), restart="on-failure", quiet_kill="300ms"))
    agent = await stage.fleet.state_of("kid", "backoff")
    assert agent["last"].startswith("silent for ")
    assert agent["run"] == 1, "it is not restarted for that"


async def test_a_silence_that_cannot_be_is_refused(stage: Stage) -> None:
    with pytest.raises(RefusedError, match="is not accepted") as refused:
        await stage.fleet.up(kid(stage.python("program", IDLE), quiet_kill="0s"))
    assert 'Not at all is written "never"' in str(refused.value.data)
