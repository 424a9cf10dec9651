"""The scripted agent as a real process: what its steps do, and that it can be driven like any agent."""

from __future__ import annotations

import os
import re
import signal
import stat
from pathlib import Path

import psutil
import pytest
import trio
from attrs import evolve

from supervisor.core.facts import Blocked, Fact, Garbled, Ready, Said, Spent, Spoke, TurnEnded
from supervisor.core.ledger import Meter, Usage
from supervisor.core.spec import Spec
from supervisor.kinds.kind import Seat
from supervisor.kinds.scripted import SCRIPTED
from supervisor.kinds.table import KINDS
from supervisor.scripted.steps import STEPS
from tests.house import eventually
from tests.kinds.drive import Driven, booked, driven, only, seat, task

ENV = {"PATH": "/usr/bin:/bin"}


def sitting(tmp_path: Path, *, instructions: str = "", resume: bool = False) -> Seat:
    spec = Spec(kind="scripted", instructions=instructions)
    return seat(session="s-7", home=str(tmp_path), resume=resume, spec=spec)


async def play(agent: Driven, *steps: str, name: str = "m1") -> TurnEnded:
    """One turn with these steps."""
    before = len(only(agent.facts, TurnEnded))
    await agent.hand(task("\n".join(["script:", *steps]), name))
    await agent.until_count(TurnEnded, before + 1)
    return only(agent.facts, TurnEnded)[-1]


def lasts(facts: list[Fact]) -> list[str]:
    return [fact.last for fact in only(facts, Spoke)]


def test_the_table_names_every_kind_as_it_names_itself() -> None:
    assert all(kind.name == name for name, kind in KINDS.items())


async def test_it_is_ready_when_it_says_so_and_leaves_when_its_stdin_ends(tmp_path: Path) -> None:
    async with driven(SCRIPTED, sitting(tmp_path), env=ENV) as agent:
        await agent.until_count(Ready, 1)
        assert only(agent.facts, Ready) == [Ready("a7", 3, session="s-7", tells=True)]
        assert await agent.close() == 0


async def test_a_text_without_a_script_is_echoed_with_some_spending(tmp_path: Path) -> None:
    async with driven(SCRIPTED, sitting(tmp_path), env=ENV) as agent:
        await agent.hand(task("Read the notes"), words="You are worker.")
        await agent.until_count(TurnEnded, 1)
    assert only(agent.facts, TurnEnded) == [TurnEnded("a7", 3, "ok", text="echo: Read the notes")]
    assert booked(agent.facts) == Usage(input=100, output=20, calls=1)


async def test_its_instructions_are_its_start_and_its_habit(tmp_path: Path) -> None:
    script = tmp_path / "habit.txt"
    script.write_text("start:\nsay waking\ntask:\nreply about $text\n")
    async with driven(SCRIPTED, sitting(tmp_path, instructions=str(script)), env=ENV) as agent:
        await agent.until_count(Ready, 1)
        assert lasts(agent.facts) == ["waking"]
        await agent.hand(task("cats"))
        await agent.until_count(TurnEnded, 1)
        assert only(agent.facts, TurnEnded)[0].text == "about cats"


async def test_it_spends_repeats_itself_and_lies(tmp_path: Path) -> None:
    async with driven(SCRIPTED, sitting(tmp_path), env=ENV) as agent:
        await play(
            agent,
            "spend input=1200 output=80 cost=0.5 context=12.5",
            "again",
            "again",
            "spend turn input=1300 output=90",
        )
        assert booked(agent.facts) == Usage(input=1300, output=90, calls=1, cost=500_000_000)
        meter, before = Meter(), len(agent.facts)
        await play(
            agent,
            "repeat 3:",
            "  spend total epoch=e input=$n0",
            "end",
            "spend total epoch=f input=5",
            name="m2",
        )
        assert booked(agent.facts[before:], meter).input == 35
        lies = ["spend input=-5", "spend output=NaN", "spend input=true", "spend input=1e30", "garble"]
        spent = len(only(agent.facts, Spent))
        await play(agent, *lies, name="m3")
        assert len(only(agent.facts, Garbled)) == len(lies)
        assert len(only(agent.facts, Spent)) == spent


async def test_it_says_done_replies_and_fails(tmp_path: Path) -> None:
    async with driven(SCRIPTED, sitting(tmp_path), env=ENV) as agent:
        end = await play(agent, 'done "all green" verdict=pass')
        assert (end.outcome, end.text) == ("ok", "all green")
        assert only(agent.facts, Said) == [Said("a7", 3, verdict="pass", summary="all green")]
        end = await play(agent, "reply half of it", "fail no disk", name="m2")
        assert (end.outcome, end.text, end.error) == ("error", "half of it", "no disk")
        end = await play(agent, "juggle", name="m3")
        assert end.error == "no such step: juggle"


async def test_a_blocked_agent_waits_for_its_answer(tmp_path: Path) -> None:
    async with driven(SCRIPTED, sitting(tmp_path), env=ENV) as agent:
        await agent.hand(task("script:\nblock person Merge it?\nreply they said $answer"))
        await agent.until_count(Blocked, 1)
        assert only(agent.facts, Blocked) == [Blocked("a7", 3, on="person", question="Merge it?")]
        await agent.hand(task("yes", "m2"))
        await agent.until_count(TurnEnded, 1)
        assert only(agent.facts, TurnEnded)[0].text == "they said yes"


async def test_texts_that_come_during_a_turn_are_played_in_their_order(tmp_path: Path) -> None:
    async with driven(SCRIPTED, sitting(tmp_path), env=ENV) as agent:
        await agent.hand(task("script:\nwait input\nsay one"))
        await agent.hand(task("script:\nsay two\nreply second", "m2"))
        await agent.until_count(TurnEnded, 1)
        assert lasts(agent.facts) == ["one", "two"]
        assert [end.text for end in only(agent.facts, TurnEnded)] == ["second"]


async def test_an_interruption_cuts_the_turn_its_tool_and_what_is_queued(tmp_path: Path) -> None:
    async with driven(SCRIPTED, sitting(tmp_path), env=ENV) as agent:
        await agent.hand(task("script:\nsay tool\nrun sleep 1000"), task("script:\nsay never", "m2"))
        await agent.until(lambda facts: "tool" in lasts(facts))
        await agent.interrupt()
        await agent.until_count(TurnEnded, 1)
        assert only(agent.facts, TurnEnded)[0].outcome == "aborted"
        assert (await play(agent, "say after", name="m3")).outcome == "ok"
        assert lasts(agent.facts) == ["tool", "after"]
        assert psutil.Process(agent.process.pid).children(recursive=True) == []


async def test_the_end_of_stdin_ends_a_turn(tmp_path: Path) -> None:
    async with driven(SCRIPTED, sitting(tmp_path), env=ENV) as agent:
        await agent.hand(task("script:\nsay on\nwait forever"))
        await agent.until(lambda facts: "on" in lasts(facts))
        assert await agent.close() == 0
        assert [end.outcome for end in only(agent.facts, TurnEnded)] == ["aborted"]


async def test_a_tool_runs_in_a_session_of_its_own(tmp_path: Path) -> None:
    async with driven(SCRIPTED, sitting(tmp_path), env=ENV) as agent:
        await play(agent, "run ps -o sid= -p $$")
        assert int(lasts(agent.facts)[-1]) not in {0, os.getsid(0)}


async def test_it_remembers_what_it_was_given_over_its_runs(tmp_path: Path) -> None:
    async with driven(SCRIPTED, sitting(tmp_path), env=ENV) as agent:
        await play(agent, "say one")
        agent.process.kill()
        await agent.process.wait()
    async with driven(SCRIPTED, sitting(tmp_path, resume=True), env=ENV) as agent:
        assert (await play(agent, "say again")).text == "m1 had come before"
        assert (await play(agent, "reply run $run, before: $seen", name="m2")).text == "run 2, before: m1"
        assert lasts(agent.facts) == []
    kept = (tmp_path / "s-7.session").read_text().splitlines()
    assert kept == ["run 1", "input m1", "run 2", "again m1", "input m2"]


async def test_a_session_that_is_not_there_cannot_be_resumed(tmp_path: Path) -> None:
    async with driven(SCRIPTED, sitting(tmp_path, resume=True), env=ENV) as agent:
        await agent.ended.wait()
        assert await agent.process.wait() == 1
        assert not only(agent.facts, Ready)


@pytest.mark.parametrize(
    ("step", "code"), [("exit 7", 7), ("die SEGV", -signal.SIGSEGV), ("die KILL", -signal.SIGKILL)]
)
async def test_it_ends_as_its_script_says(tmp_path: Path, step: str, code: int) -> None:
    async with driven(SCRIPTED, sitting(tmp_path), env=ENV) as agent:
        await agent.hand(task(f"script:\n{step}"))
        await agent.ended.wait()
        assert await agent.process.wait() == code


async def test_a_wedged_agent_hears_neither_its_stdin_nor_a_term(tmp_path: Path) -> None:
    async with driven(SCRIPTED, sitting(tmp_path), env=ENV) as agent:
        await agent.hand(task("script:\nignore TERM INT\nsay deaf\nwedge"))
        await agent.until(lambda facts: "deaf" in lasts(facts))
        agent.process.send_signal(signal.SIGTERM)
        agent.process.send_signal(signal.SIGINT)
        with trio.move_on_after(0.3) as patience:
            await agent.close()
        assert patience.cancelled_caught


async def test_an_agent_that_lingers_cleans_up_on_a_term(tmp_path: Path) -> None:
    async with driven(SCRIPTED, sitting(tmp_path), env=ENV) as agent:
        await play(agent, "linger 50ms")
        agent.process.send_signal(signal.SIGTERM)
        await agent.ended.wait()
        assert await agent.process.wait() == 0
        assert lasts(agent.facts) == ["cleaning up", "clean"]


@pytest.mark.parametrize("way", ["child", "setsid", "daemon", "nohup", "stubborn"])
async def test_processes_it_leaves_live_on_in_their_ways(tmp_path: Path, way: str) -> None:
    async with driven(SCRIPTED, sitting(tmp_path), env=ENV) as agent:
        await play(agent, f"leave {way} sleep 1000")
        left = psutil.Process(int(lasts(agent.facts)[-1].split()[-1]))
        try:
            await eventually(lambda: left.name() == "sleep")
            assert await agent.close() == 0
            assert left.is_running()
            own = os.getsid(left.pid) == left.pid
            assert own == (way == "setsid")
            assert (left.environ() == {}) == (way == "daemon")
            left.send_signal(signal.SIGTERM)
            if way == "stubborn":
                assert left.status() != psutil.STATUS_ZOMBIE
        finally:
            left.kill()


async def test_it_floods_with_and_without_lines(tmp_path: Path) -> None:
    async with driven(SCRIPTED, sitting(tmp_path), env=ENV) as agent:
        await play(agent, "flood 1M width=100", "flood 300k unbroken", "flood 10k binary", "say over")
        assert lasts(agent.facts)[-1] == "over"
        assert len(lasts(agent.facts)) >= 10_000
        assert not only(agent.facts, Garbled)


async def test_it_asks_the_supervisor_by_its_client_and_remembers_the_answer(tmp_path: Path) -> None:
    client = tmp_path / "bin" / "supervisorctl"
    client.parent.mkdir()
    client.write_text(
        """#!/bin/sh
printf '%s\\n' "$@" >> "$FLEET_HOME/asked"
case "$4" in
greedy) echo '{"refused":{"code":"budget","field":"tokens","message":"too much"}}'; exit 1;;
esac
echo '{"agent":{"id":"a9","name":"kid"}}'
"""
    )
    client.chmod(client.stat().st_mode | stat.S_IXUSR)
    env = ENV | {"PATH": f"{client.parent}:{ENV['PATH']}"}
    async with driven(SCRIPTED, sitting(tmp_path), env=env) as agent:
        body = ["fork kid --kind scripted --tokens 50k:", "  say hello", "end"]
        end = await play(agent, *body, "expect ok", "fork greedy --tokens 9G", "expect refused", "expect tokens")
        assert (end.outcome, end.error) == ("ok", "")
        assert lasts(agent.facts) == ["fork: kid (a9)", "fork refused: too much"]
        asked = (tmp_path / "asked").read_text()
        assert asked.startswith("fork\n--json\n--name\nkid\n--kind\nscripted\n--tokens\n50k\nscript:\n  say hello\n")
        end = await play(agent, "expect refused", "ctl tree", "expect tokens", name="m2")
        assert end.error == "expected tokens, got ok"


async def test_a_slow_start_loses_no_text(tmp_path: Path) -> None:
    place = sitting(tmp_path, instructions="start:\nwait 200ms\n")
    async with driven(SCRIPTED, evolve(place, session=""), env=ENV) as agent:
        await agent.hand(task("early"))
        await agent.until_count(TurnEnded, 1)
        assert only(agent.facts, TurnEnded)[0].text == "echo: early"
        assert only(agent.facts, Ready)[0].session.startswith("scripted-")


def test_the_documentation_has_every_step_and_no_other() -> None:
    text = (Path(__file__).parents[2] / "docs" / "scripted.md").read_text()
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert {word for row in rows for word in re.findall(r"`(\w+)", row)} - {"end"} == set(STEPS)
