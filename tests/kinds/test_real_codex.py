"""The real codex over pipes, against our model server: what its conversation books is what the server billed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import asdict

from supervisor.core.facts import Blocked, Fact, Garbled, Limited, Read, Ready, Spent, Spoke, TurnEnded, TurnStarted
from supervisor.core.ledger import Meter, Usage
from supervisor.core.spec import Spec
from supervisor.kinds.codex import CODEX
from supervisor.kinds.kind import Seat
from tests.codex.person import MODEL, WINDOW, configure
from tests.house import eventually
from tests.kinds.drive import Driven, booked, context, driven, only, seat, task
from tests.model_server import BILLED, ModelServer
from tests.npm import agent_cli

MCP = Path(__file__).parent.parent / "codex" / "notes_server.py"


@pytest.fixture
def env(server: ModelServer, tmp_path: Path) -> dict[str, str]:
    """A person's home with a configured codex, and a directory to work in."""
    configure(tmp_path / "home", server.url)
    (tmp_path / "work").mkdir()
    return {
        "HOME": str(tmp_path / "home"),
        "PATH": agent_cli("@openai/codex"),
        "OPENAI_API_KEY": "no-secret",
        "NO_PROXY": "127.0.0.1",
        "WORK": str(tmp_path / "work"),
    }


def sitting(env: dict[str, str], session: str = "", tools: tuple[str, ...] | None = ("bash",), **more: object) -> Seat:
    spec = Spec(kind="codex", directory=env["WORK"])
    return seat(session=session, spec=spec, resume=bool(session), tools=tools, **more)


def counted(usage: Usage) -> dict[str, int]:
    return {name: value for name, value in asdict(usage).items() if name in BILLED}


async def turn(codex: Driven, text: str, name: str = "m1", words: str = "") -> TurnEnded:
    """Hand one text and wait for the end of its turn."""
    before = len(only(codex.facts, TurnEnded))
    await codex.hand(task(text, name), words=words)
    await codex.until_count(TurnEnded, before + 1)
    return only(codex.facts, TurnEnded)[-1]


def spoke(words: str) -> Callable[[list[Fact]], bool]:
    def found(facts: list[Fact]) -> bool:
        return any(words in fact.last for fact in only(facts, Spoke))

    return found


def thread(codex: Driven) -> str:
    return only(codex.facts, Ready)[-1].session


async def test_tasks_and_a_tool_are_booked_as_they_are_billed(server: ModelServer, env: dict[str, str]) -> None:
    async with driven(CODEX, sitting(env), env=env, cwd=env["WORK"]) as codex:
        await codex.until_count(Ready, 1)
        assert only(codex.facts, Ready) == [Ready("a7", 3, session="", model=MODEL, fresh=True, tells=True)]
        first = await turn(codex, "[[say:It is green.]]", words="You are worker (a7).")
        assert (first.outcome, first.text) == ("ok", "It is green.")
        assert server.asked == ["You are worker (a7).\n\n[[say:It is green.]]"]
        assert thread(codex), "a thread is kept from its first turn on"
        second = await turn(codex, "[[bash:echo ran > made; cat made]]", "m2")
        assert (second.outcome, second.text) == ("ok", "It has run.")
        assert (Path(env["WORK"]) / "made").read_text() == "ran\n"
        assert await codex.close() == 0
    assert len(server.bill) == 3
    assert counted(booked(codex.facts)) == server.total()
    assert context(codex.facts) == pytest.approx(100 * server.bill[-1].tokens / WINDOW)
    assert [fact.inputs for fact in only(codex.facts, Read)] == [("m1",), ("m2",)]
    assert len(only(codex.facts, TurnStarted)) == 2
    assert not only(codex.facts, Garbled)
    assert not sum(fact.incomplete for fact in only(codex.facts, Spent))


async def test_a_text_during_a_tool_call_joins_the_turn(server: ModelServer, env: dict[str, str]) -> None:
    gate = Path(env["WORK"]) / "gate"
    async with driven(CODEX, sitting(env), env=env, cwd=env["WORK"]) as codex:
        await codex.hand(task("[[bash:echo begun > begun; until test -e gate; do sleep 0.05; done; echo go]]"))
        await eventually((Path(env["WORK"]) / "begun").exists)
        await codex.hand(task("[[say:Joined.]]", "m2"))
        gate.touch()
        await codex.until_count(TurnEnded, 1)
        (end,) = only(codex.facts, TurnEnded)
        assert (end.outcome, end.text) == ("ok", "Joined.")
        assert [fact.inputs for fact in only(codex.facts, Read)] == [("m1",), ("m2",)]
        assert await codex.close() == 0
    assert server.asked[-1] == "[[say:Joined.]]"
    assert counted(booked(codex.facts)) == server.total()


async def test_texts_that_are_handed_before_the_turn_has_begun_are_one_turn(
    server: ModelServer, env: dict[str, str]
) -> None:
    async with driven(CODEX, sitting(env), env=env, cwd=env["WORK"]) as codex:
        await codex.hand(task("[[say:One.]]"))
        await codex.hand(task("[[say:Two.]]", "m2"))
        await codex.until(lambda facts: {name for fact in only(facts, Read) for name in fact.inputs} == {"m1", "m2"})
        await codex.until(lambda facts: any(end.text == "Two." for end in only(facts, TurnEnded)))
        assert len(only(codex.facts, TurnStarted)) == len(only(codex.facts, TurnEnded)) == 1
    if len(server.bill) == 2 and server.bill[1].n == 0:
        del server.bill[0]  # codex gave it up, for the second text came before its answer, and tells nothing of it
    assert counted(booked(codex.facts)) == server.total()


async def test_an_interrupted_model_call_ends_the_turn_and_the_next_one_runs(
    server: ModelServer, env: dict[str, str]
) -> None:
    async with driven(CODEX, sitting(env), env=env, cwd=env["WORK"]) as codex:
        await turn(codex, "[[say:Before.]]", "m0")
        await codex.hand(task("[[hold:never]]"))
        await eventually(lambda: len(server.asked) == 2)
        await codex.interrupt()
        await codex.until_count(TurnEnded, 2)
        assert only(codex.facts, TurnEnded)[-1].outcome == "aborted"
        assert sum(fact.incomplete for fact in only(codex.facts, Spent)) == 1, "what it cost is not known"
        end = await turn(codex, "[[say:Back.]]", "m2")
        assert (end.outcome, end.text) == ("ok", "Back.")
        assert await codex.close() == 0
    assert counted(booked(codex.facts)) == server.total()


async def test_an_interruption_before_the_turn_has_begun_cuts_it(server: ModelServer, env: dict[str, str]) -> None:
    async with driven(CODEX, sitting(env), env=env, cwd=env["WORK"]) as codex:
        await codex.until_count(Ready, 1)
        codex.conversation.hand((task("[[hold:never]]"),), "")
        await codex.interrupt()
        await codex.until_count(TurnEnded, 1)
        assert only(codex.facts, TurnEnded)[0].outcome == "aborted"
        assert (await turn(codex, "[[say:Back.]]", "m2")).text == "Back."
        assert await codex.close() == 0
    assert counted(booked(codex.facts)) == server.total()


async def test_an_interrupted_tool_is_ended_and_its_call_is_booked(server: ModelServer, env: dict[str, str]) -> None:
    pid = Path(env["WORK"]) / "pid"
    async with driven(CODEX, sitting(env), env=env, cwd=env["WORK"]) as codex:
        await codex.hand(task("[[bash:sh -c 'echo $$ > pid; sleep 1000; echo x'; echo y]]"))
        sleeper = int(await eventually(lambda: pid.exists() and pid.read_text().strip()))
        await codex.until(spoke("$ "))  # until then codex itself does not know how to end it
        await codex.interrupt()
        await codex.until_count(TurnEnded, 1)
        assert only(codex.facts, TurnEnded)[0].outcome == "aborted"
        await eventually(lambda: not Path(f"/proc/{sleeper}").exists())
        assert await codex.close() == 0
    assert counted(booked(codex.facts)) == server.total()
    assert not sum(fact.incomplete for fact in only(codex.facts, Spent))


async def test_a_stop_in_a_tool_is_orderly_and_its_call_is_booked_when_the_thread_is_resumed(
    server: ModelServer, env: dict[str, str]
) -> None:
    meter = Meter()
    async with driven(CODEX, sitting(env), env=env, cwd=env["WORK"]) as codex:
        await codex.hand(task("[[bash:touch begun; sleep 1000; echo x]]"))
        await eventually((Path(env["WORK"]) / "begun").exists)
        assert await codex.close() == 0
    async with driven(CODEX, sitting(env, thread(codex)), env=env, cwd=env["WORK"]) as resumed:
        await turn(resumed, "[[say:After.]]", "m2")
        assert await resumed.close() == 0
    assert counted(booked(codex.facts, meter) + booked(resumed.facts, meter)) == server.total()


async def test_a_failing_model_ends_the_turn_in_error_and_the_next_one_runs(
    server: ModelServer, env: dict[str, str]
) -> None:
    async with driven(CODEX, sitting(env), env=env, cwd=env["WORK"]) as codex:
        failed = await turn(codex, "[[err:400]]")
        assert (failed.outcome, failed.error) == ("error", "as scripted: 400")
        assert not only(codex.facts, Limited)
        recovered = await turn(codex, "[[err:503,1]]", "m2")
        assert recovered.outcome == "ok"
        assert not only(codex.facts, Limited), "what codex tries again by itself is no limit"
        assert spoke("Reconnecting... 1/1")(codex.facts)
        assert await codex.close() == 0
    assert counted(booked(codex.facts)) == server.total()


@pytest.mark.parametrize(("code", "sort"), [(401, "auth"), (429, "rate"), (503, "overload"), (500, None)])
async def test_a_limit_is_one_when_codex_has_given_up(env: dict[str, str], code: int, sort: str | None) -> None:
    async with driven(CODEX, sitting(env), env=env, cwd=env["WORK"]) as codex:
        assert (await turn(codex, f"[[err:{code}]]")).outcome == "error"
        assert [fact.sort for fact in only(codex.facts, Limited)] == ([sort] if sort else [])


async def test_without_a_key_the_turn_ends_as_a_failed_login(server: ModelServer, env: dict[str, str]) -> None:
    del env["OPENAI_API_KEY"]
    async with driven(CODEX, sitting(env), env=env, cwd=env["WORK"]) as codex:
        assert (await turn(codex, "[[ok]]")).outcome == "error"
        assert [fact.sort for fact in only(codex.facts, Limited)] == ["auth"]
    assert not server.bill


async def test_a_killed_thread_is_resumed_without_booking_anything_again(
    server: ModelServer, env: dict[str, str]
) -> None:
    meter = Meter()
    async with driven(CODEX, sitting(env), env=env, cwd=env["WORK"]) as killed:
        await turn(killed, "[[say:Before.]]")
        killed.process.kill()
        await killed.process.wait()
    async with driven(CODEX, sitting(env, thread(killed)), env=env, cwd=env["WORK"]) as resumed:
        await resumed.until_count(Ready, 1)
        assert only(resumed.facts, Ready)[0].session == thread(killed)
        await turn(resumed, "[[say:After.]]", "m2")
        assert await resumed.close() == 0
    assert [call.n for call in server.bill] == [0, 1]
    assert counted(booked(killed.facts, meter) + booked(resumed.facts, meter)) == server.total()


async def test_a_call_whose_tool_it_was_killed_in_is_the_one_that_codex_never_tells(
    server: ModelServer, env: dict[str, str]
) -> None:
    meter = Meter()
    async with driven(CODEX, sitting(env), env=env, cwd=env["WORK"]) as killed:
        await turn(killed, "[[say:Before.]]")
        await killed.hand(task("[[bash:touch begun; sleep 1000]]", "m2"))
        await eventually((Path(env["WORK"]) / "begun").exists)
        killed.process.kill()
        await killed.process.wait()
        await killed.ended.wait()
    assert sum(fact.incomplete for fact in only(killed.facts, Spent)) == 1
    async with driven(CODEX, sitting(env, thread(killed)), env=env, cwd=env["WORK"]) as resumed:
        await turn(resumed, "[[say:After.]]", "m3")
        assert await resumed.close() == 0
    untold = server.bill.pop(1)
    assert untold.said.startswith("[[bash:")
    assert counted(booked(killed.facts, meter) + booked(resumed.facts, meter)) == server.total()


async def test_a_thread_that_is_not_there_is_said_and_codex_is_to_be_ended(env: dict[str, str]) -> None:
    missing = "01a22dc9-d389-7bb0-bff7-992f031a7187"
    async with driven(CODEX, sitting(env, missing), env=env, cwd=env["WORK"]) as codex:
        await codex.until(spoke("no rollout found"))
        assert codex.conversation.finished
        assert not only(codex.facts, Ready)
        assert await codex.close() == 0


def asks_for_touch(env: dict[str, str]) -> None:
    """The person has codex ask before a `touch`."""
    rules = Path(env["HOME"]) / ".codex" / "rules"
    rules.mkdir()
    config = Path(env["HOME"]) / ".codex" / "config.toml"
    config.write_text('sandbox_mode = "danger-full-access"\napproval_policy = "on-request"\n' + config.read_text())
    (rules / "person.rules").write_text('prefix_rule(pattern = ["touch"], decision = "prompt")\n')


async def test_an_approval_is_asked_of_the_person_and_answered(env: dict[str, str]) -> None:
    asks_for_touch(env)
    async with driven(CODEX, sitting(env, tools=None), env=env, cwd=env["WORK"]) as codex:
        await codex.hand(task("[[bash:touch one]]"))
        await codex.until_count(Blocked, 1)
        (asked,) = only(codex.facts, Blocked)
        assert (asked.on, asked.prompt) == ("person", "codex-0")
        assert "touch one" in asked.question
        codex.conversation.answer(asked.prompt, allow=True)
        await codex.flush()
        await codex.until_count(TurnEnded, 1)
        assert (Path(env["WORK"]) / "one").exists()
        await codex.hand(task("[[bash:touch two]]", "m2"))
        await codex.until_count(Blocked, 2)
        codex.conversation.answer("codex-1", allow=False)
        await codex.flush()
        await codex.until_count(TurnEnded, 2)
        assert only(codex.facts, TurnEnded)[-1].outcome == "ok"
        assert not (Path(env["WORK"]) / "two").exists()
        assert await codex.close() == 0


async def test_an_interruption_takes_an_approval_back(env: dict[str, str]) -> None:
    asks_for_touch(env)
    async with driven(CODEX, sitting(env, tools=None), env=env, cwd=env["WORK"]) as codex:
        await codex.hand(task("[[bash:touch one]]"))
        await codex.until_count(Blocked, 1)
        await codex.interrupt()
        await codex.until_count(TurnEnded, 1)
        assert only(codex.facts, TurnEnded)[0].outcome == "aborted"
        codex.conversation.answer("codex-0", allow=True)
        assert codex.conversation.outgoing() == b""


SANDBOXES = [(("read",), 0), (("read", "edit"), 1), (("bash",), 2)]


@pytest.mark.parametrize(("tools", "reach"), SANDBOXES)
async def test_a_grant_of_tools_is_a_sandbox(
    server: ModelServer, env: dict[str, str], tools: tuple[str, ...], reach: int
) -> None:
    outside = Path(env["HOME"]) / "outside"
    config = Path(env["HOME"]) / ".codex" / "config.toml"
    with config.open("a") as file:  # what is temporary may be written to, and here everything is
        file.write("[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n")
    async with driven(CODEX, sitting(env, tools=tools), env=env, cwd=env["WORK"]) as codex:
        await turn(codex, f"[[bash:touch inside; touch {outside}]]")
    assert (Path(env["WORK"]) / "inside").exists() == (reach > 0)
    assert outside.exists() == (reach > 1)
    assert "exec_command" in server.tools[0]


async def test_without_a_tool_that_needs_one_there_is_no_shell(server: ModelServer, env: dict[str, str]) -> None:
    async with driven(CODEX, sitting(env, tools=()), env=env, cwd=env["WORK"]) as codex:
        await turn(codex, "[[bash:touch made]]")
    assert not (Path(env["WORK"]) / "made").exists()
    assert not {"exec_command", "write_stdin", "web_search"} & set(server.tools[0])
    assert not [name for name in server.tools[0] if "agent" in name or "goal" in name]


@pytest.mark.parametrize(
    ("tools", "offered"),
    [
        (None, set[str]()),
        (("bash",), set[str]()),
        (("bash", "codex:mcp__notes__*"), {"mcp__notes__read", "mcp__notes__write"}),
        (("bash", "codex:mcp__notes__read"), {"mcp__notes__read"}),
    ],
)
async def test_the_persons_mcp_servers_are_loaded_only_if_they_are_named(
    server: ModelServer, env: dict[str, str], tools: tuple[str, ...] | None, offered: set[str]
) -> None:
    config = Path(env["HOME"]) / ".codex" / "config.toml"
    for name in ("notes", "others"):
        with config.open("a") as file:
            file.write(f'[mcp_servers.{name}]\ncommand = "python3"\nargs = ["{MCP}", "{env["WORK"]}/{name}"]\n')
            file.write("required = true\nstartup_timeout_sec = 60\n")  # else no turn waits for one that is slow
    async with driven(CODEX, sitting(env, tools=tools), env=env, cwd=env["WORK"]) as codex:
        await turn(codex, "[[ok]]")
    assert {name for name in server.tools[0] if name.startswith("mcp__")} == offered
    assert (Path(env["WORK"]) / "notes").exists() == bool(offered)
    assert not (Path(env["WORK"]) / "others").exists()


async def test_instructions_and_the_persons_agents_md_reach_the_model(server: ModelServer, env: dict[str, str]) -> None:
    (Path(env["WORK"]) / "AGENTS.md").write_text("Words of AGENTS.md.")
    place = sitting(env, instructions="Words of the instructions.")
    async with driven(CODEX, place, env=env, cwd=env["WORK"]) as codex:
        await turn(codex, "[[ok]]")
    told = server.bodies[0]
    assert "Words of the instructions." in told
    assert "Words of AGENTS.md." in told
