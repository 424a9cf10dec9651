"""The kind `codex` without its program: what is said to it, and what its lines mean in every order."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from attrs import evolve

from supervisor.core.facts import (
    Blocked,
    Fact,
    Garbled,
    Limited,
    Read,
    Ready,
    Spent,
    Spoke,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from supervisor.core.ledger import Meter
from supervisor.core.spec import KindSpec, Spec
from supervisor.kinds.codex import CODEX
from supervisor.kinds.codex_talk import CodexConversation
from supervisor.kinds.kind import LINE_LIMIT, Seat
from tests.kinds.drive import SEAT, booked, context, only, seat, task

KIND = KindSpec("codex", "codex")
THREAD, OTHER = "0000-ours", "0000-another"
SIZE = LINE_LIMIT + 1


def said(talk: CodexConversation) -> list[dict[str, object]]:
    return [json.loads(line) for line in talk.outgoing().splitlines()]


def event(method: str, thread: str = THREAD, **params: object) -> bytes:
    return json.dumps({"method": method, "params": {"threadId": thread, **params}}, separators=(",", ":")).encode()


def request(method: str, number: int = 0, **params: object) -> bytes:
    params = {"threadId": THREAD, **params}
    return json.dumps({"method": method, "id": number, "params": params}, separators=(",", ":")).encode()


def answer(command: dict[str, object], result: object = None, error: str = "") -> bytes:
    told = {"error": {"code": -32600, "message": error}} if error else {"result": {} if result is None else result}
    return json.dumps({"id": command["id"], **told}).encode()


def started(turn: str = "t1", thread: str = THREAD) -> bytes:
    return event("turn/started", thread, turn={"id": turn, "status": "inProgress", "error": None})


def completed(turn: str = "t1", status: str = "completed", error: object = None, thread: str = THREAD) -> bytes:
    return event("turn/completed", thread, turn={"id": turn, "status": status, "error": error})


def item(kind: str, *, done: bool = False, thread: str = THREAD, **more: object) -> bytes:
    method = "item/completed" if done else "item/started"
    return event(method, thread, item={"type": kind, "id": f"{kind}-1", **more}, turnId="t1")


def began(name: str = "m1") -> bytes:
    return item("userMessage", clientId=name, content=[])


def count(tokens: Sequence[int]) -> dict[str, int]:
    entered, cached, output, reasoning = tokens
    return {
        "totalTokens": entered + output, "inputTokens": entered, "cachedInputTokens": cached,
        "cacheWriteInputTokens": 0, "outputTokens": output, "reasoningOutputTokens": reasoning,
    }  # fmt: skip


def used(total: Sequence[int], last: Sequence[int], thread: str = THREAD, turn: str = "t1") -> bytes:
    usage = {"total": count(total), "last": count(last), "modelContextWindow": 10_000}
    return event("thread/tokenUsage/updated", thread, turnId=turn, tokenUsage=usage)


ONE, TWO, SUM = (100, 40, 20, 5), (130, 50, 30, 6), (230, 90, 50, 11)


def opening(
    place: Seat = SEAT, servers: dict[str, object] | None = None
) -> tuple[CodexConversation, dict[str, object]]:
    """A conversation up to the command that opens its thread."""
    talk = CODEX.converse(place)
    talk.open()
    (hello,) = said(talk)
    assert hello["method"] == "initialize"
    talk.read(answer(hello, {"userAgent": "x"}))
    ready, config = said(talk)
    assert ready == {"method": "initialized"}
    talk.read(answer(config, {"config": {"mcp_servers": servers}}))
    (command,) = said(talk)
    return talk, command


def opened(place: Seat = SEAT) -> CodexConversation:
    talk, command = opening(place)
    talk.read(answer(command, {"thread": {"id": THREAD}, "model": "m"}))
    return talk


@pytest.fixture
def talk() -> CodexConversation:
    return opened()


def hand(talk: CodexConversation, text: str, name: str = "m1") -> dict[str, object]:
    talk.hand((task(text, name),), "")
    (command,) = said(talk)
    return command


def running(talk: CodexConversation) -> list[Fact]:
    """A turn has begun with the text m1."""
    command = hand(talk, "go")
    return [*talk.read(answer(command, {"turn": {"id": "t1"}})), *talk.read(started()), *talk.read(began())]


# --- the thread


def test_it_stays_where_the_person_has_it() -> None:
    launch = CODEX.launch(KIND, seat(spec=Spec(kind="codex", model="m"), tools=("read",)))
    assert (launch.argv, launch.env) == (("codex", "app-server"), ())
    assert CODEX.launch(KindSpec("mine", "codex", ("npx", "codex")), SEAT).argv == ("npx", "codex", "app-server")


def test_what_differs_from_the_persons_configuration_is_said_when_the_thread_is_opened() -> None:
    spec = Spec(kind="codex", model="m", directory="/work")
    _, command = opening(seat(spec=spec, tools=("read", "edit"), instructions="Be brief."), {"notes": {}})
    params = command["params"]
    assert isinstance(params, dict)
    assert command["method"] == "thread/start"
    assert (params["cwd"], params["model"], params["developerInstructions"]) == ("/work", "m", "Be brief.")
    assert (params["sandbox"], params["approvalPolicy"]) == ("workspace-write", "never")
    assert params["config"]["mcp_servers"] == {"notes": {"enabled": False}}


def test_a_right_that_is_not_named_changes_nothing_but_the_mcp_servers() -> None:
    _, command = opening(seat(home="/home/a7"), {"notes": {}})
    config = {"allow_login_shell": False, "mcp_servers": {"notes": {"enabled": False}}}
    assert command["params"] == {"cwd": "/home/a7", "config": config}


@pytest.mark.parametrize(
    ("tools", "mode"),
    [
        ((), "read-only"),
        (("read", "grep"), "read-only"),
        (("write",), "workspace-write"),
        (("bash", "read"), "danger-full-access"),
        (("codex:bash", "claude:Bash", "bash:*"), "read-only"),
    ],
)
def test_a_grant_of_tools_becomes_a_sandbox_in_which_nobody_is_asked(tools: tuple[str, ...], mode: str) -> None:
    _, command = opening(seat(tools=tools))
    params = command["params"]
    assert isinstance(params, dict)
    assert (params["sandbox"], params["approvalPolicy"]) == (mode, "never")


@pytest.mark.parametrize(
    ("tools", "servers"),
    [
        (("codex:mcp__a__*",), {"b": {"enabled": False}}),
        (("codex:mcp__a",), {"b": {"enabled": False}}),
        (("codex:mcp__a__x", "codex:mcp__a__y"), {"a": {"enabled_tools": ["x", "y"]}, "b": {"enabled": False}}),
        (("codex:mcp__c__x", "claude:mcp__a__*"), {"a": {"enabled": False}, "b": {"enabled": False}}),
    ],
)
def test_only_mcp_servers_that_the_grant_names_are_loaded(tools: tuple[str, ...], servers: object) -> None:
    _, command = opening(seat(tools=tools), {"a": {}, "b": {}})
    params = command["params"]
    assert isinstance(params, dict)
    assert params["config"]["mcp_servers"] == servers


def test_a_thread_is_one_to_go_on_with_from_its_first_text_on() -> None:
    talk, command = opening()
    assert talk.read(answer(command, {"thread": {"id": THREAD}, "model": "m"})) == [
        Ready("a7", 3, session="", model="m", fresh=True, tells=True)
    ]
    facts = running(talk)
    assert only(facts, Ready) == [Ready("a7", 3, session=THREAD, model="m", tells=True)]
    talk.read(completed())
    assert not only(talk.read(began("m2")), Ready)


def test_a_thread_is_gone_on_with_without_its_history() -> None:
    talk, command = opening(seat(session=THREAD, resume=True))
    assert command["method"] == "thread/resume"
    params = command["params"]
    assert isinstance(params, dict)
    assert (params["threadId"], params["excludeTurns"]) == (THREAD, True)
    facts = talk.read(answer(command, {"thread": {"id": THREAD}, "model": "m"}))
    assert facts == [Ready("a7", 3, session=THREAD, model="m", tells=True)]


def test_a_thread_that_cannot_be_opened_ends_the_run_with_its_reason() -> None:
    talk, command = opening(seat(session=THREAD, resume=True))
    assert not talk.finished
    facts = talk.read(answer(command, error=f"no rollout found for thread id {THREAD}"))
    assert not only(facts, Ready)
    assert only(facts, Spoke)[0].last.endswith(f"no rollout found for thread id {THREAD}")
    assert talk.finished


# --- texts and turns


def test_several_texts_are_one_after_the_introduction(talk: CodexConversation) -> None:
    talk.hand((task("one\u2028\ud800"), task("two", "m2")), "You are worker.")
    (command,) = said(talk)
    params = command["params"]
    assert isinstance(params, dict)
    assert command["method"] == "turn/start"
    assert params["input"][0]["text"] == "You are worker.\n\none\u2028\ud800\n\ntwo"
    talk.read(answer(command, {"turn": {"id": "t1"}}))
    assert Read("a7", 3, ("m1", "m2")) in talk.read(began(str(params["clientUserMessageId"])))


def test_a_text_that_is_handed_before_the_thread_is_open_waits_for_it() -> None:
    talk, command = opening()
    talk.hand((task("early"),), "")
    assert said(talk) == []
    talk.read(answer(command, {"thread": {"id": THREAD}, "model": "m"}))
    assert [each["method"] for each in said(talk)] == ["turn/start"]


def test_what_it_has_begun_with_is_told_once(talk: CodexConversation) -> None:
    command = hand(talk, "go")
    assert not talk.read(answer(command, {"turn": {"id": "t1"}})), "accepted is not begun with"
    assert only(talk.read(started()), TurnStarted)
    assert only(talk.read(began()), Read) == [Read("a7", 3, ("m1",))]
    assert not talk.read(began())
    assert not talk.read(item("userMessage", done=True, clientId="m1"))


def test_a_text_in_a_turn_joins_it(talk: CodexConversation) -> None:
    running(talk)
    command = hand(talk, "more", "m2")
    params = command["params"]
    assert isinstance(params, dict)
    assert (command["method"], params["expectedTurnId"]) == ("turn/steer", "t1")
    facts = talk.read(answer(command, {"turnId": "t1"})) + talk.read(began("m2"))
    assert only(facts, Read) == [Read("a7", 3, ("m2",))]
    assert only(talk.read(completed()), TurnEnded)


def test_a_text_that_comes_too_late_for_a_turn_begins_the_next_one_at_once(talk: CodexConversation) -> None:
    running(talk)
    late = hand(talk, "late", "m2")
    facts = talk.read(completed())
    assert not only(facts, TurnEnded), "the core would take what follows for a turn that nobody began"
    facts += talk.read(answer(late, error="no active turn to steer"))
    (again,) = said(talk)
    assert again["method"] == "turn/start"
    facts += talk.read(answer(again, {"turn": {"id": "t2"}})) + talk.read(started("t2")) + talk.read(began("m2"))
    facts += talk.read(item("agentMessage", done=True, text="Second.")) + talk.read(completed("t2"))
    assert [end.text for end in only(facts, TurnEnded)] == ["Second."]
    assert not only(facts, TurnStarted), "it is the same turn for all that the core knows"


def test_a_text_that_was_taken_into_the_next_turn_carries_on(talk: CodexConversation) -> None:
    running(talk)
    talk.read(completed())
    command = hand(talk, "next", "m2")
    talk.read(answer(command, {"turn": {"id": "t2"}}))
    facts = talk.read(started("t2")) + talk.read(began("m2")) + talk.read(completed("t2"))
    assert len(only(facts, TurnStarted)) == len(only(facts, TurnEnded)) == 1


def test_a_text_that_is_refused_ends_its_turn_in_error(talk: CodexConversation) -> None:
    command = hand(talk, "go")
    (end,) = only(talk.read(answer(command, error="no such thread")), TurnEnded)
    assert (end.outcome, end.error) == ("error", "no such thread")


def test_a_text_that_is_given_again_says_so(talk: CodexConversation) -> None:
    talk.hand((evolve(task("go"), again=True),), "")
    assert "given again" in talk.outgoing().decode()


def test_what_is_said_twice_of_a_turn_is_heard_once(talk: CodexConversation) -> None:
    facts = running(talk) + talk.read(started())
    facts += talk.read(completed()) + talk.read(completed()) + talk.read(started())
    assert len(only(facts, TurnStarted)) == len(only(facts, TurnEnded)) == 1


# --- interruptions


def test_an_interruption_ends_the_command_too(talk: CodexConversation) -> None:
    running(talk)
    talk.interrupt()
    cut, clean = said(talk)
    assert (cut["method"], cut["params"]) == ("turn/interrupt", {"threadId": THREAD, "turnId": "t1"})
    assert clean["method"] == "thread/backgroundTerminals/clean"
    (end,) = only(talk.read(completed(status="interrupted")), TurnEnded)
    assert (end.outcome, end.error) == ("aborted", "")
    assert [each["method"] for each in said(talk)] == ["thread/backgroundTerminals/clean"], "it may just have begun"


def test_an_interruption_before_the_turn_has_begun_cuts_it(talk: CodexConversation) -> None:
    hand(talk, "go")
    talk.interrupt()
    assert [each["params"] for each in said(talk) if each["method"] == "turn/interrupt"] == [
        {"threadId": THREAD, "turnId": ""}
    ]
    talk.read(started())
    assert [each["params"] for each in said(talk) if each["method"] == "turn/interrupt"] == [
        {"threadId": THREAD, "turnId": "t1"}
    ]


def test_an_interruption_before_the_thread_is_open_cuts_what_waits_for_it() -> None:
    talk, command = opening()
    talk.hand((task("early"),), "")
    talk.interrupt()
    talk.read(answer(command, {"thread": {"id": THREAD}, "model": "m"}))
    assert [each["method"] for each in said(talk)][:2] == ["turn/start", "turn/interrupt"]


def test_what_was_accepted_and_not_read_is_said_to_be_dropped(talk: CodexConversation) -> None:
    running(talk)
    talk.read(answer(hand(talk, "more", "m2"), {"turnId": "t1"}))
    late = hand(talk, "late", "m3")
    talk.interrupt()
    talk.outgoing()
    assert not only(talk.read(completed(status="interrupted")), TurnEnded)
    (end,) = only(talk.read(answer(late, error="no active turn to steer")), TurnEnded)
    assert (end.outcome, end.error) == ("aborted", "a text was dropped unread")
    assert "turn/start" not in [each["method"] for each in said(talk)], "what was cut begins no turn"


def test_an_interruption_of_nothing_says_nothing(talk: CodexConversation) -> None:
    talk.interrupt()
    assert talk.outgoing() == b""


# --- the books


def test_a_total_is_booked_by_what_is_new_in_it(talk: CodexConversation) -> None:
    lines = [used(ONE, ONE), used(ONE, ONE), used(SUM, TWO), used(SUM, TWO)]
    facts = running(talk) + [fact for line in lines for fact in talk.read(line)]
    total = booked(facts)
    assert (total.input, total.cache_read, total.output, total.reasoning, total.calls) == (140, 90, 50, 11, 2)
    assert context(facts) == pytest.approx(1.6)


def test_a_thread_that_is_gone_on_with_is_not_booked_again() -> None:
    meter = Meter()
    first = opened()
    before = booked(running(first) + first.read(used(ONE, ONE)), meter)
    resumed = opened(seat(session=THREAD, resume=True))
    after = booked(resumed.read(used(ONE, ONE, turn="t0")), meter)
    after += booked(running(resumed) + resumed.read(used(SUM, TWO)), meter)
    assert ((before + after).tokens, (before + after).calls) == (280, 2)


def test_what_nobody_had_heard_of_a_thread_is_booked_when_it_is_gone_on_with() -> None:
    meter = Meter()
    first = opened()
    before = booked(running(first) + first.read(used(ONE, ONE)), meter)
    resumed = opened(seat(session=THREAD, resume=True))
    after = booked(resumed.read(used(SUM, TWO, turn="t0")), meter)
    assert ((before + after).tokens, (before + after).calls) == (280, 2)


def test_codexs_own_agents_count_and_what_they_were_told_of_ours_does_not(talk: CodexConversation) -> None:
    facts = running(talk) + talk.read(used(ONE, ONE))
    facts += talk.read(started("t9", OTHER)) + talk.read(item("agentMessage", done=True, thread=OTHER, text="Theirs."))
    facts += talk.read(used(SUM, TWO, OTHER, "t9")) + talk.read(used(SUM, TWO, OTHER, "t9"))
    facts += talk.read(completed("t9", thread=OTHER))
    assert (booked(facts).tokens, booked(facts).calls) == (280, 2)
    assert not only(facts, TurnEnded)
    (end,) = only(talk.read(completed()), TurnEnded)
    assert end.text == ""


@pytest.mark.parametrize("number", ["-1", "1e3", "7.0", "true", '"7"', "9007199254740992", "NaN", "null", "9999"])
def test_numbers_that_cannot_be_true_book_nothing(talk: CodexConversation, number: str) -> None:
    line = used(ONE, ONE).replace(b'"cachedInputTokens":40', f'"cachedInputTokens":{number}'.encode(), 1)
    facts = talk.read(line)
    assert only(facts, Garbled)
    assert not only(facts, Spent)


def missing(facts: list[Fact]) -> int:
    return sum(fact.incomplete for fact in only(facts, Spent))


def test_a_call_that_was_cut_is_missing_in_the_books(talk: CodexConversation) -> None:
    facts = running(talk) + talk.read(item("agentMessage", text="")) + talk.read(completed(status="interrupted"))
    assert missing(facts) == 1


def test_a_total_that_is_repeated_at_a_cut_is_not_the_cut_calls(talk: CodexConversation) -> None:
    facts = running(talk) + talk.read(used(ONE, ONE)) + talk.read(item("agentMessage", text=""))
    facts += talk.read(used(ONE, ONE)) + talk.read(completed(status="interrupted"))
    assert (missing(facts), booked(facts).calls) == (1, 1)


def test_a_call_whose_tool_was_cut_is_not_missing(talk: CodexConversation) -> None:
    facts = running(talk) + talk.read(item("commandExecution", command="sleep")) + talk.read(used(ONE, ONE))
    assert missing(facts + talk.read(completed(status="interrupted"))) == 0


def test_a_call_that_followed_a_tool_is_missing_when_it_is_cut(talk: CodexConversation) -> None:
    facts = running(talk) + talk.read(item("commandExecution", command="true"))
    facts += talk.read(item("commandExecution", done=True)) + talk.read(used(ONE, ONE))
    assert missing(facts + talk.read(completed(status="interrupted"))) == 1


def test_a_call_that_failed_before_it_was_answered_costs_nothing(talk: CodexConversation) -> None:
    assert missing(running(talk) + talk.read(completed(status="failed", error={"message": "no"}))) == 0


def test_a_codex_that_ends_in_a_turn_leaves_a_call_missing(talk: CodexConversation) -> None:
    running(talk)
    assert missing(talk.ended()) == 1
    assert talk.ended() == []


# --- failures and limits


@pytest.mark.parametrize(
    ("info", "words", "sort"),
    [
        ("usageLimitExceeded", "You've hit your usage limit. Try again at 3:05 PM.", "quota"),
        ("rateLimitExceeded", "slow down", "rate"),
        ("serverOverloaded", "Selected model is at capacity.", "overload"),
        ("unauthorized", "Please log in.", "auth"),
        ({"responseTooManyFailedAttempts": {"httpStatusCode": 429}}, "exceeded retry limit", "rate"),
        ({"httpConnectionFailed": {"httpStatusCode": 401}}, "unexpected status 401", "auth"),
        ({"httpConnectionFailed": {"httpStatusCode": 529}}, "unexpected status 529", "overload"),
        ({"httpConnectionFailed": {"httpStatusCode": 404}}, "rate limit", None),
        ({"responseStreamDisconnected": {"httpStatusCode": None}}, "stream disconnected", None),
        ("internalServerError", "We are currently experiencing high demand.", None),
        ("other", "Missing environment variable: `KEY`.", "auth"),
        ("contextWindowExceeded", "too long", None),
        (None, "something new", None),
        ({"somethingNew": 7}, "something new", None),
    ],
)
def test_a_limit_is_told_by_codexs_own_word_for_it(
    talk: CodexConversation, info: object, words: str, sort: str | None
) -> None:
    told = {"message": words, "codexErrorInfo": info, "additionalDetails": None}
    facts = running(talk) + talk.read(event("error", error=told, willRetry=True, turnId="t1"))
    assert not only(facts, Limited), "it tries again by itself"
    status = next(iter(info.values())) if isinstance(info, dict) else None
    code = str((status.get("httpStatusCode") if isinstance(status, dict) else None) or "")
    words = words if code in words else f"{code}: {words}"
    assert only(facts, Spoke)[-1].last == words
    facts = talk.read(event("error", error=told, willRetry=False)) + talk.read(completed(status="failed", error=told))
    assert [(fact.sort, fact.text) for fact in only(facts, Limited)] == ([(sort, words)] if sort else [])
    (end,) = only(facts, TurnEnded)
    assert (end.outcome, end.error) == ("error", words)


def test_a_used_up_quota_says_when_it_is_free_again(talk: CodexConversation) -> None:
    windows = {"primary": {"usedPercent": 100, "resetsAt": 5000}, "secondary": {"usedPercent": 90, "resetsAt": 9000}}
    talk.read(json.dumps({"method": "account/rateLimits/updated", "params": {"rateLimits": windows}}).encode())
    told = {"message": "You've hit your usage limit.", "codexErrorInfo": "usageLimitExceeded"}
    facts = running(talk) + talk.read(completed(status="failed", error=told))
    assert [fact.until for fact in only(facts, Limited)] == [5000.0]


def test_a_providers_json_is_told_in_its_words(talk: CodexConversation) -> None:
    told = {"message": '{"error": {"message": "bad request", "type": "x"}}', "codexErrorInfo": "other"}
    (end,) = only(running(talk) + talk.read(completed(status="failed", error=told)), TurnEnded)
    assert end.error == "bad request"


# --- questions to the person


COMMAND = "item/commandExecution/requestApproval"


@pytest.mark.parametrize(
    ("method", "params", "question", "yes", "no"),
    [
        (COMMAND, {"command": "rm x", "reason": "why"}, "rm x: why", {"decision": "accept"}, {"decision": "decline"}),
        ("item/fileChange/requestApproval", {"grantRoot": "/w"}, "write below /w", {"decision": "accept"},
         {"decision": "decline"}),
        ("item/permissions/requestApproval", {"permissions": {"network": {"enabled": True}}},
         "more permissions for this turn", {"permissions": {"network": {"enabled": True}}, "scope": "turn"},
         {"permissions": {}, "scope": "turn"}),
        ("mcpServer/elicitation/request", {"serverName": "notes", "message": "Sure?"}, "notes: Sure?",
         {"action": "accept", "content": {}}, {"action": "decline", "content": None}),
        ("execCommandApproval", {"command": ["rm", "x"]}, "rm x", {"decision": "approved"}, {"decision": "denied"}),
    ],
)  # fmt: skip
def test_an_approval_is_answered_once_and_exactly(
    talk: CodexConversation, method: str, params: dict[str, object], question: str, yes: object, no: object
) -> None:
    running(talk)
    for number, allow, told in ((4, True, yes), (5, False, no)):
        (asked,) = talk.read(request(method, number, **params))
        assert asked == Blocked("a7", 3, "person", question, prompt=f"codex-{number}")
        talk.answer("codex-9", allow=allow)
        assert said(talk) == []
        talk.answer(f"codex-{number}", allow=allow)
        assert said(talk) == [{"id": number, "result": told}]
        talk.answer(f"codex-{number}", allow=allow)
        assert said(talk) == []


def test_an_approval_that_codex_takes_back_is_answered_no_more(talk: CodexConversation) -> None:
    running(talk)
    talk.read(request(COMMAND, 4, command="rm x"))
    assert talk.read(event("serverRequest/resolved", requestId=4)) == [Withdrawn("a7", 3, "codex-4")]
    assert talk.read(event("serverRequest/resolved", requestId=4)) == []
    talk.answer("codex-4", allow=True)
    assert said(talk) == []


def test_the_end_of_a_turn_takes_back_what_it_asked_though_codex_says_so_later(talk: CodexConversation) -> None:
    running(talk)
    talk.read(request(COMMAND, 4, command="rm x", turnId="t1"))
    talk.read(request("item/tool/requestUserInput", 5, questions=[], itemId="i", turnId="t1"))
    facts = talk.read(completed(status="interrupted"))
    assert only(facts, Withdrawn) == [Withdrawn("a7", 3, "codex-4"), Withdrawn("a7", 3, "")]
    assert isinstance(facts[-1], TurnEnded)
    said(talk)
    talk.answer("codex-4", allow=True)
    talk.hand((task("Red", "m2"),), "")
    assert [each.get("method") for each in said(talk)] == ["turn/start"], "it is no answer"
    assert talk.read(event("serverRequest/resolved", requestId=4)) == []


def test_what_a_turn_asked_is_taken_back_though_the_next_one_begins_at_once(talk: CodexConversation) -> None:
    running(talk)
    talk.read(request(COMMAND, 4, command="rm x", turnId="t1"))
    talk.hand((task("More.", "m2"),), "")
    facts = talk.read(completed(status="interrupted"))
    assert only(facts, Withdrawn) == [Withdrawn("a7", 3, "codex-4")]
    assert not only(facts, TurnEnded)


def test_what_an_agent_of_codexs_asks_when_the_turn_is_over_is_denied(talk: CodexConversation) -> None:
    running(talk)
    talk.read(request(COMMAND, 4, command="rm x", threadId=OTHER))
    assert talk.read(completed(thread=OTHER)) == [], "which of them asked is not said"
    facts = talk.read(completed())
    assert only(facts, Withdrawn) == [Withdrawn("a7", 3, "codex-4")]
    assert {"id": 4, "result": {"decision": "decline"}} in said(talk)


def test_a_question_that_codex_takes_back_is_not_answered_by_the_next_text(talk: CodexConversation) -> None:
    running(talk)
    talk.read(request("item/tool/requestUserInput", 4, questions=[], itemId="i", turnId="t1"))
    assert talk.read(event("serverRequest/resolved", requestId=4)) == [Withdrawn("a7", 3, "")]
    talk.hand((task("Red", "m2"),), "")
    assert [each.get("method") for each in said(talk)] == ["turn/steer"]


def test_a_reason_of_a_denial_joins_the_turn(talk: CodexConversation) -> None:
    running(talk)
    talk.read(request(COMMAND, 4, command="rm x"))
    talk.answer("codex-4", allow=False, text="Not that file.")
    denied, reason = said(talk)
    assert denied == {"id": 4, "result": {"decision": "decline"}}
    params = reason["params"]
    assert isinstance(params, dict)
    assert (reason["method"], params["input"][0]["text"]) == ("turn/steer", "Not that file.")
    assert talk.read(event("serverRequest/resolved", requestId=4)) == []
    talk.read(answer(reason, {"turnId": "t1"}))
    assert not talk.read(began(str(params["clientUserMessageId"])))
    assert only(talk.read(completed()), TurnEnded)


def test_a_question_is_answered_by_a_text(talk: CodexConversation) -> None:
    running(talk)
    options = [{"label": "Red", "description": ""}, {"label": "Green", "description": ""}]
    questions = [{"id": "q1", "header": "h", "question": "Which?", "options": options}]
    (asked,) = talk.read(request("item/tool/requestUserInput", 4, questions=questions, itemId="i", turnId="t1"))
    assert asked == Blocked("a7", 3, "person", "Which? (Red | Green)", prompt="")
    talk.hand((task("Green", "m2"),), "")
    assert said(talk) == [{"id": 4, "result": {"answers": {"q1": {"answers": ["Green"]}}}}]
    assert talk.read(event("serverRequest/resolved", requestId=4)) == [Read("a7", 3, ("m2",))]


@pytest.mark.parametrize("method", ["item/tool/call", "account/chatgptAuthTokens/refresh", "something/new"])
def test_a_request_that_is_not_known_gets_an_error_so_that_nothing_hangs(talk: CodexConversation, method: str) -> None:
    assert talk.read(request(method, 7)) == []
    (reply,) = said(talk)
    assert (reply["id"], "error" in reply) == (7, True)


def test_a_request_that_cannot_be_read_gets_an_error_too(talk: CodexConversation) -> None:
    assert only(talk.read(request(COMMAND, 7, command="x")[:-2]), Garbled)
    assert only(talk.overlong(request(COMMAND, 8, command="x" * 5000)[:4096], SIZE), Garbled)
    assert [reply["id"] for reply in said(talk)] == [7, 8]


# --- lines


@pytest.mark.parametrize("line", [b"Debugger listening", b"\xff\xfe{", b'{"id":1,"res', b"[" * 9999, b"3"])
def test_a_line_that_is_none_of_codexs_is_garbled(talk: CodexConversation, line: bytes) -> None:
    (fact,) = talk.read(line)
    assert isinstance(fact, Garbled)
    assert fact.bytes == len(line)


def test_the_frequent_lines_are_dropped_without_being_decoded(talk: CodexConversation) -> None:
    assert talk.read(b'{"method":"item/agentMessage/delta","params":{' + b"[" * 4_000_000) == []


def test_a_picture_of_any_size_garbles_nothing(talk: CodexConversation) -> None:
    head = item("imageGeneration", result="A" * 8000)[:4096]
    facts = (
        running(talk) + talk.overlong(head, 5 << 20) + talk.overlong(head.replace(b"started", b"completed"), 5 << 20)
    )
    facts += talk.read(used(ONE, ONE)) + talk.read(completed())
    assert not only(facts, Garbled)
    assert (booked(facts).calls, missing(facts)) == (1, 0)
    assert only(facts, TurnEnded)


def test_a_text_of_any_size_is_seen_to_be_begun_with(talk: CodexConversation) -> None:
    command = hand(talk, "x" * SIZE)
    talk.read(answer(command, {"turn": {"id": "t1"}}))
    talk.read(started())
    head = item("userMessage", clientId="m1", content=[{"type": "text", "text": "x" * 5000}])[:4096]
    assert only(talk.overlong(head, SIZE), Read) == [Read("a7", 3, ("m1",))]


@pytest.mark.parametrize(
    ("line", "matters"),
    [
        (event("item/commandExecution/outputDelta", delta="x" * 5000), False),
        (event("turn/diff/updated", diff="x" * 5000), False),
        (item("agentMessage", text="x" * 5000), False),
        (item("agentMessage", done=True, text="x" * 5000), True),
        (event("thread/tokenUsage/updated", more="x" * 5000), True),
        (b'{"id":77,"result":{"more":"' + b"x" * 5000, True),
        (b"x" * 5000, True),
    ],
)
def test_a_long_line_that_could_have_mattered_is_garbled_and_no_other(
    talk: CodexConversation, line: bytes, matters: bool
) -> None:
    assert bool(only(talk.overlong(line[:4096], SIZE), Garbled)) == matters


def test_a_turn_whose_end_is_too_long_ends_all_the_same(talk: CodexConversation) -> None:
    running(talk)
    head = event("turn/completed", turn={"id": "t1", "items": ["x" * 5000], "status": "completed"})[:4096]
    (end,) = only(talk.overlong(head, SIZE), TurnEnded)
    assert end.outcome == "ok"


def test_a_thread_whose_answer_is_too_long_is_open_all_the_same() -> None:
    talk, _ = opening(seat(session=THREAD, resume=True))
    head = b'{"id":3,"result":{"thread":{"id":"0000-0a7","preview":"' + b"x" * 4000
    assert only(talk.overlong(head, SIZE), Ready) == [Ready("a7", 3, session="0000-0a7", tells=True)]


def test_what_it_does_is_shown(talk: CodexConversation) -> None:
    facts = running(talk) + talk.read(item("commandExecution", command="make test\nmake"))
    assert only(facts, Spoke)[-1].last == "$ make test"
    for kind, more, words in (
        ("fileChange", {"changes": [{"path": "a.py"}]}, "edits a.py"),
        ("mcpToolCall", {"server": "notes", "tool": "read"}, "notes: read"),
        ("webSearch", {"query": "why"}, "searches the web: why"),
        ("contextCompaction", {}, "compacting its conversation"),
    ):
        assert only(talk.read(item(kind, **more)), Spoke)[0].last == words
    assert only(talk.read(event("model/rerouted", toModel="smaller")), Spoke)[0].last.endswith("smaller")


# --- what stands beside


def test_what_codex_cannot_be_held_to_is_said() -> None:
    def told(*tools: str) -> str:
        return " ".join(CODEX.unenforced(seat(tools=tools)))

    assert "outside any sandbox" in told("bash")
    assert "write below its directory" in told("read", "edit")
    assert "write nothing" in told("read")
    assert "AGENTS.md" in told()
    assert CODEX.unenforced(SEAT)


def test_the_thread_is_opened_by_hand_with_codex() -> None:
    opening_by_hand = CODEX.reopen(KIND, seat(session=THREAD))
    assert opening_by_hand.argv == ("codex", "resume", THREAD)
    assert opening_by_hand.file == f"~/.codex/sessions/*/*/*/rollout-*-{THREAD}.jsonl"
    assert CODEX.reopen(KIND, SEAT).argv == ()
