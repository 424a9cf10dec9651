"""The real CLIs that speak stream-json, line by line as a host drives them: texts that join a turn, interruptions,
questions. Others have tests of their own."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from supervisor.core.facts import Blocked, Garbled, Read, Ready, Spent, TurnEnded, TurnStarted
from supervisor.core.spec import Spec
from tests.clis import claude, qwen
from tests.clis.tour import Cli, at_hand, made
from tests.house import below, eventually
from tests.kinds.drive import Driven, booked, context, driven, only, seat, task
from tests.model_server import ModelServer


@pytest.fixture(params=(claude.CLI, qwen.CLI), ids=lambda each: each.name)
def cli(request: pytest.FixtureRequest, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Cli:
    return at_hand(request.param, server, monkeypatch)


@asynccontextmanager
async def alive(cli: Cli, cwd: Path, *tools: str) -> AsyncIterator[Driven]:
    """A CLI with these tools, or without a grant of any; what it started ends with it, for it may be two processes."""
    seated = seat(spec=Spec(kind=cli.name, model=cli.model), tools=tools or None)
    async with driven(cli.kind, seated, cwd=str(cwd)) as live:
        try:
            yield live
        finally:
            for process in below(live.process.pid):
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)


async def ready(live: Driven) -> None:
    await live.until(lambda facts: only(facts, Ready))


async def ended(live: Driven, count: int = 1) -> TurnEnded:
    await live.until_count(TurnEnded, count)
    return only(live.facts, TurnEnded)[-1]


async def test_a_text_that_comes_during_a_tool_call_joins_the_turn_or_follows_it(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    wait = f"touch {tmp_path}/begun; until [ -e {tmp_path}/go ]; do read -t 0.05 <> <(:); done"
    async with alive(cli, tmp_path, "bash") as live:
        await ready(live)
        await live.hand(task(f"[[bash:{wait}]]"))
        await made(tmp_path / "begun")
        await live.hand(task("[[say:Second.]]", "m2"))
        (tmp_path / "go").touch()
        end = await ended(live)
        assert end.outcome == "ok"
        assert [name for fact in only(live.facts, Read) for name in fact.inputs] == ["m1", "m2"]
        assert len(only(live.facts, TurnStarted)) == 1, "one turn for the fleet, which ends when all is done"
        assert len(only(live.facts, TurnEnded)) == 1
        # One that joins is told with what the tool answered.
        heard = [*server.asked, *(answer for answers in server.results for answer in answers)]
        assert [words for words in heard if "[[say:Second.]]" in words]
        assert (end.text == "Second.") is not cli.joins
        spent, bill = booked(live.facts), cli.billed(server)
        assert (spent.input, spent.output) == (bill["input"], bill["output"])
        assert not only(live.facts, Garbled)


async def test_an_interruption_ends_a_tool_and_the_conversation_goes_on(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    async with alive(cli, tmp_path, "bash") as live:
        await ready(live)
        await live.hand(task(f"[[bash:echo $$ > {tmp_path}/pid; touch {tmp_path}/begun; read _ < <(sleep 1000)]]"))
        await made(tmp_path / "begun")
        await live.hand(task("[[say:Dropped.]]", "m2"))
        await live.interrupt()
        end = await ended(live)
        assert (end.outcome, end.error) == ("aborted", "1 queued texts were dropped unread")
        shell = Path("/proc") / (tmp_path / "pid").read_text().strip()
        await eventually(lambda: not shell.exists())
        await live.hand(task("[[say:After.]]", "m3"))
        end = await ended(live, 2)
        assert (end.outcome, end.text) == ("ok", "After.")
        assert server.bill[-1].n > 0
        assert not [said for said in server.asked if "Dropped" in said]
        spent, bill = booked(live.facts), cli.billed(server)
        assert (spent.input, spent.output) == (bill["input"], bill["output"])


async def test_an_interruption_that_comes_at_once_cuts_the_turn(cli: Cli, tmp_path: Path) -> None:
    async with alive(cli, tmp_path, "read") as live:
        await ready(live)
        await live.hand(task("[[hold:never]]"))
        await live.interrupt()
        assert (await ended(live)).outcome == "aborted"
        await live.hand(task("[[say:After.]]", "m2"))
        assert (await ended(live, 2)).text == "After."


async def test_an_answer_that_is_cut_is_booked_as_far_as_it_is_known(
    cli: Cli, server: ModelServer, tmp_path: Path
) -> None:
    async with alive(cli, tmp_path, "read") as live:
        await ready(live)
        await live.hand(task("[[hold:never]]"))
        await eventually(lambda: server.asked)
        await live.until(lambda facts: only(facts, TurnStarted))
        await live.interrupt()
        assert (await ended(live)).outcome == "aborted"
        assert sum(fact.incomplete for fact in only(live.facts, Spent)) == 1


async def test_without_a_grant_a_person_is_asked_and_what_is_denied_is_not_done(cli: Cli, tmp_path: Path) -> None:
    async with alive(cli, tmp_path) as live:
        await ready(live)
        for count, allow in enumerate((True, False), 1):
            await live.hand(task(f"[[bash:touch {tmp_path}/made{count}]]", f"m{count}"))
            await live.until_count(Blocked, count)
            asked = only(live.facts, Blocked)[-1]
            assert (asked.on, asked.question) == ("person", f"{cli.bash}: touch {tmp_path}/made{count}")
            live.conversation.answer(asked.prompt, allow=allow)
            await live.flush()
            await ended(live, count)
        assert [(tmp_path / f"made{count}").exists() for count in (1, 2)] == [True, False]


ASKING = {"claude": "AskUserQuestion", "qwen": "ask_user_question"}


async def test_a_question_is_answered_by_a_text(cli: Cli, server: ModelServer, tmp_path: Path) -> None:
    options = [{"label": "left", "description": "L"}, {"label": "right", "description": "R"}]
    question = {"question": "Which way?", "header": "Way", "options": options, "multiSelect": False}
    async with alive(cli, tmp_path) as live:
        await ready(live)
        await live.hand(task(f"[[call:{ASKING[cli.name]} {json.dumps({'questions': [question]})}]]"))
        await live.until_count(Blocked, 1)
        asked = only(live.facts, Blocked)[0]
        assert (asked.question, asked.prompt) == ("Which way? (left | right)", "")
        await live.hand(task("straight on", "m2"))
        assert (await ended(live)).outcome == "ok"
        assert "straight on" in server.results[-1][0]
        assert [fact.inputs for fact in only(live.facts, Read)] == [("m1",), ("m2",)]


async def test_its_window_and_its_session_are_known(cli: Cli, tmp_path: Path) -> None:
    async with alive(cli, tmp_path, "read") as live:
        await ready(live)
        assert only(live.facts, Ready)[0].session == "", "nothing was said that could be resumed"
        await live.hand(task("[[ok]]"))
        await ended(live)
        session = only(live.facts, Ready)[-1].session
        assert session
        await live.until(context)
        assert context(live.facts) == pytest.approx(0.6, abs=0.6)
        kept = cli.kind.reopen(cli.spec, seat(session=session)).file
        assert [*Path.home().glob(kept.removeprefix("~/"))]
