"""The real pi over pipes, against our model server: what its conversation books is what the server billed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import asdict

from supervisor.core.facts import Fact, Garbled, Ready, Spoke, TurnEnded, TurnStarted
from supervisor.core.ledger import Usage
from supervisor.core.spec import Spec
from supervisor.kinds.kind import Seat
from supervisor.kinds.pi import PI
from tests.house import eventually
from tests.kinds.drive import Driven, booked, context, driven, only, seat, task
from tests.model_server import BILLED, ModelServer
from tests.npm import agent_cli

CHAT, MESSAGES = "local/chat-model", "local-messages/messages-model"


@pytest.fixture
def env(server: ModelServer, tmp_path: Path) -> dict[str, str]:
    """A person's home with a configured pi, and a directory to work in."""
    cost = {"input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 1.25}
    model = {"reasoning": False, "input": ["text"], "contextWindow": 100_000, "maxTokens": 4096, "cost": cost}
    key = {"apiKey": "$TEST_MODEL_KEY"}
    chat = {
        "baseUrl": f"{server.url}/v1",
        "api": "openai-completions",
        "models": [model | {"id": "chat-model"}],
    }
    messages = {
        "baseUrl": server.url,
        "api": "anthropic-messages",
        "models": [model | {"id": "messages-model"}],
    }
    home = tmp_path / "home" / ".pi" / "agent"
    home.mkdir(parents=True)
    providers = {"local": chat | key, "local-messages": messages | key}
    (home / "models.json").write_text(json.dumps({"providers": providers}))
    (tmp_path / "work").mkdir()
    return {
        "HOME": str(tmp_path / "home"),
        "PATH": agent_cli("@earendil-works/pi-coding-agent"),
        "TEST_MODEL_KEY": "no-secret",
        "PI_OFFLINE": "1",
        "NO_PROXY": "127.0.0.1",
        "WORK": str(tmp_path / "work"),
    }


def sitting(model: str = CHAT, *, resume: bool = False, tools: tuple[str, ...] | None = ("bash", "read")) -> Seat:
    return seat(session="fleet-a7", spec=Spec(kind="pi", model=model), resume=resume, tools=tools)


def billed(server: ModelServer) -> dict[str, int]:
    return server.total()


def counted(usage: Usage) -> dict[str, int]:
    return {name: value for name, value in asdict(usage).items() if name in BILLED}


async def turn(pi: Driven, text: str, name: str = "m1", words: str = "") -> TurnEnded:
    """Hand one text and wait for the end of its turn and for what pi says of its context after it."""
    before = len(only(pi.facts, TurnEnded))
    await pi.hand(task(text, name), words=words)
    await pi.until_count(TurnEnded, before + 1)
    return only(pi.facts, TurnEnded)[-1]


def spoke(words: str) -> Callable[[list[Fact]], bool]:
    def found(facts: list[Fact]) -> bool:
        return any(words in fact.last for fact in only(facts, Spoke))

    return found


@pytest.mark.parametrize("model", [CHAT, MESSAGES])
async def test_tasks_and_a_tool_are_booked_as_they_are_billed(
    server: ModelServer, env: dict[str, str], model: str
) -> None:
    async with driven(PI, sitting(model), env=env, cwd=env["WORK"]) as pi:
        await pi.until_count(Ready, 1)
        assert only(pi.facts, Ready) == [Ready("a7", 3, session="fleet-a7", model=model, fresh=True, tells=True)]
        first = await turn(pi, "[[say:It is green.]]", words="You are worker (a7).")
        assert (first.outcome, first.text) == ("ok", "It is green.")
        assert server.asked == ["You are worker (a7).\n\n[[say:It is green.]]"]
        second = await turn(pi, "[[bash:echo ran > made; cat made]]", "m2")
        assert (second.outcome, second.text) == ("ok", "It has run.")
        assert (Path(env["WORK"]) / "made").read_text() == "ran\n"
        full = pytest.approx(server.bill[-1].tokens / 1000)
        await pi.until(lambda facts: context(facts) == full)
        assert await pi.close() == 0
    assert len(server.bill) == 3
    assert counted(booked(pi.facts)) == billed(server)
    assert booked(pi.facts).cost > 0
    assert len(only(pi.facts, TurnStarted)) == 2
    assert not only(pi.facts, Garbled)


async def test_a_text_during_a_tool_call_joins_the_turn(server: ModelServer, env: dict[str, str]) -> None:
    gate = Path(env["WORK"]) / "gate"
    async with driven(PI, sitting(), env=env, cwd=env["WORK"]) as pi:
        await pi.hand(task("[[bash:echo begun > begun; until test -e gate; do sleep 0.05; done; echo go]]"))
        await eventually((Path(env["WORK"]) / "begun").exists)
        await pi.hand(task("[[say:Joined.]]", "m2"))
        gate.touch()
        await pi.until_count(TurnEnded, 1)
        (end,) = only(pi.facts, TurnEnded)
        assert (end.outcome, end.text) == ("ok", "Joined.")
        assert await pi.close() == 0
    assert server.asked[-1] == "[[say:Joined.]]"
    assert counted(booked(pi.facts)) == billed(server)


@pytest.mark.parametrize("model", [CHAT, MESSAGES])
async def test_an_interrupted_model_call_ends_the_turn_and_the_next_one_runs(
    server: ModelServer, env: dict[str, str], model: str
) -> None:
    async with driven(PI, sitting(model), env=env, cwd=env["WORK"]) as pi:
        await pi.hand(task("[[hold:never]]"))
        await pi.until_count(TurnStarted, 1)
        await pi.until_printed(b"held ")  # before it has read a word it knows nothing of what the call has cost
        await pi.interrupt()
        await pi.until_count(TurnEnded, 1)
        assert only(pi.facts, TurnEnded)[0].outcome == "aborted"
        end = await turn(pi, "[[say:Back.]]", "m2")
        assert (end.outcome, end.text) == ("ok", "Back.")
        assert await pi.close() == 0
    # On the one wire a cut call was told nothing; on the other its input, billed when the cut is seen.
    await eventually(lambda: len(server.bill) == (1 if model == CHAT else 2))
    assert counted(booked(pi.facts)) == billed(server)


async def test_an_interrupted_tool_is_ended(server: ModelServer, env: dict[str, str]) -> None:
    async with driven(PI, sitting(), env=env, cwd=env["WORK"]) as pi:
        await pi.hand(task("[[bash:sleep 1000]]"))
        await pi.until(spoke("bash: sleep 1000"))
        await pi.interrupt()
        await pi.until_count(TurnEnded, 1)
        assert only(pi.facts, TurnEnded)[0].outcome == "aborted"
        assert await pi.close() == 0
    assert counted(booked(pi.facts)) == billed(server)


async def test_a_failing_model_ends_the_turn_in_error_and_the_next_one_runs(
    server: ModelServer, env: dict[str, str]
) -> None:
    async with driven(PI, sitting(), env=env, cwd=env["WORK"]) as pi:
        failed = await turn(pi, "[[err:400]]")
        assert failed.outcome == "error"
        assert "as scripted: 400" in failed.error
        recovered = await turn(pi, "[[err:500,1]]", "m2")
        assert recovered.outcome == "ok"
        assert any(fact.last.startswith("retry 1 of ") for fact in only(pi.facts, Spoke))
        assert await pi.close() == 0
    assert len(only(pi.facts, TurnStarted)) == 2
    assert counted(booked(pi.facts)) == billed(server)


async def test_without_a_key_the_turn_ends_in_error(server: ModelServer, env: dict[str, str]) -> None:
    del env["TEST_MODEL_KEY"]
    async with driven(PI, sitting(), env=env, cwd=env["WORK"]) as pi:
        end = await turn(pi, "[[ok]]")
        assert end.outcome == "error"
        assert end.error
    assert not server.bill


async def test_a_killed_session_is_resumed_without_booking_anything_again(
    server: ModelServer, env: dict[str, str]
) -> None:
    async with driven(PI, sitting(), env=env, cwd=env["WORK"]) as killed:
        await turn(killed, "[[say:Before.]]")
        killed.process.kill()
        await killed.process.wait()
    async with driven(PI, sitting(resume=True), env=env, cwd=env["WORK"]) as resumed:
        await resumed.until_count(Ready, 1)
        assert only(resumed.facts, Ready)[0].session == "fleet-a7"
        await turn(resumed, "[[say:After.]]", "m2")
        assert await resumed.close() == 0
    assert [call.n for call in server.bill] == [0, 1]
    assert counted(booked(killed.facts + resumed.facts)) == billed(server)


async def test_only_granted_tools_reach_the_model(server: ModelServer, env: dict[str, str]) -> None:
    async with driven(PI, sitting(tools=("read",)), env=env, cwd=env["WORK"]) as pi:
        await turn(pi, "[[bash:echo ran > made]]")
    assert not (Path(env["WORK"]) / "made").exists()
    assert server.tools[0] == ["read"]


async def test_a_compaction_is_booked_as_it_is_billed(server: ModelServer, env: dict[str, str]) -> None:
    settings = Path(env["HOME"]) / ".pi" / "agent" / "settings.json"
    settings.write_text(json.dumps({"compaction": {"keepRecentTokens": 1}}))
    async with driven(PI, sitting(), env=env, cwd=env["WORK"]) as pi:
        await turn(pi, "[[say:One.]] " + "word " * 2000)
        await turn(pi, "[[say:Two.]]", "m2")
        await pi.write(b'{"type":"compact"}\n')
        await pi.until(spoke("compacting its conversation"))
        await turn(pi, "[[say:Three.]]", "m3")
        assert await pi.close() == 0
    assert len(server.bill) > 3
    # pi tells one sum for all calls of a compaction.
    assert counted(booked(pi.facts)) | {"calls": 0} == billed(server) | {"calls": 0}
