"""The kind `claude` without its program: what is said to it, and what its lines mean in every order."""

from __future__ import annotations

import json
from typing import Any

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
from supervisor.kinds import claude_lines
from supervisor.kinds.claude import CLAUDE
from supervisor.kinds.claude_talk import ClaudeConversation
from tests.kinds.drive import SEAT, booked, context, only, seat, task

KIND = KindSpec("claude", "claude")
TALK, NO_SERVERS = CLAUDE.launch(KIND, SEAT).argv[:-1], "--strict-mcp-config"
NOTES = ("--settings", '{"allowedMcpServers": [{"serverName": "notes"}]}')
INIT = {"type": "system", "subtype": "init", "session_id": "s1", "model": "opus"}


def said(conversation: ClaudeConversation) -> list[dict[str, Any]]:
    return [json.loads(line) for line in conversation.outgoing().splitlines()]


def read(conversation: ClaudeConversation, *lines: dict[str, Any]) -> list[Fact]:
    return [fact for line in lines for fact in conversation.read(json.dumps(line).encode())]


def message(name: str = "m", text: str = "Done.", **more: object) -> dict[str, Any]:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1, "output_tokens": 1}
    body = {"id": name, "model": "opus", "content": [{"type": "text", "text": text}], "usage": usage}
    return {"type": "assistant", "message": body | more, "parent_tool_use_id": None}


def used(
    fresh: int = 5, cached: int = 2, written: int = 1, output: int = 3, cost: float = 0.25, **more: object
) -> dict[str, Any]:
    numbers = {"inputTokens": fresh, "cacheReadInputTokens": cached, "cacheCreationInputTokens": written}
    return numbers | {"outputTokens": output, "thinkingTokens": 1, "costUSD": cost, "contextWindow": 80} | more


def result(name: str = "r1", models: dict[str, Any] | None = None, **more: object) -> dict[str, Any]:
    since = {"opus": used()} if models is None else models
    told = {"is_error": False, "terminal_reason": "completed", "result": "Done.", "api_error_status": None}
    return {"type": "result", "uuid": name, "model_usage_since_last_result": since} | told | more


def lifecycle(name: str, state: str) -> dict[str, Any]:
    return {"type": "command_lifecycle", "command_uuid": name, "state": state}


def asked(tool: str, prompt: str = "p1", **given: object) -> dict[str, Any]:
    request = {"subtype": "can_use_tool", "tool_name": tool, "input": given}
    return {"type": "control_request", "request_id": prompt, "request": request}


@pytest.fixture
def opened() -> ClaudeConversation:
    conversation = CLAUDE.converse(SEAT)
    conversation.open()
    conversation.outgoing()
    return conversation


def handed(conversation: ClaudeConversation, text: str, name: str = "m1") -> str:
    conversation.hand((task(text, name),), "")
    (told,) = said(conversation)
    return str(told["uuid"])


# --- how it is started


def test_it_is_started_with_our_model_tools_and_instructions_and_its_own_session() -> None:
    place = seat(spec=Spec(kind="claude", model="opus"), instructions="Be brief.", tools=("read", "bash"))
    assert CLAUDE.launch(KIND, place).argv == (
        *TALK, "--model", "opus", "--tools", "Read,Bash", "--allowedTools", "Read,Bash", "--strict-mcp-config",
        "--append-system-prompt", "Be brief.",
    )  # fmt: skip
    assert CLAUDE.launch(KindSpec("mine", "claude", ("npx", "claude")), SEAT).argv[:3] == ("npx", "claude", "-p")
    assert CLAUDE.launch(KIND, place).env == (), "it stays where the person has it"


def test_a_conversation_is_resumed_by_claudes_own_id_for_it() -> None:
    assert CLAUDE.launch(KIND, seat(session="s1", resume=True)).argv == (*TALK, "--resume", "s1", NO_SERVERS)
    assert CLAUDE.launch(KIND, seat(session="", resume=True)).argv == (*TALK, NO_SERVERS)
    found = CLAUDE.reopen(KIND, seat(session="s1"))
    assert (found.argv, found.file) == (("claude", "--resume", "s1"), "~/.claude/projects/*/s1.jsonl")
    assert CLAUDE.reopen(KIND, SEAT).argv == ()


@pytest.mark.parametrize(
    ("granted", "options"),
    [
        (None, ("--strict-mcp-config",)),
        ((), ("--tools", "", "--strict-mcp-config")),
        (("pi:codemode",), ("--tools", "", "--strict-mcp-config")),
        (("ls", "glob"), ("--tools", "Glob", "--allowedTools", "Glob", "--strict-mcp-config")),
        (
            ("web", "claude:Task"),
            ("--tools", "WebFetch,WebSearch,Task", "--allowedTools", "WebFetch,WebSearch,Task", "--strict-mcp-config"),
        ),
        (("read", "mcp__notes__*"), ("--tools", "Read", "--allowedTools", "Read,mcp__notes__*", *NOTES)),
        (("claude:mcp__notes__ping",), ("--tools", "", "--allowedTools", "mcp__notes__ping", *NOTES)),
        (("mcp:notes",), ("--tools", "", "--allowedTools", "mcp__notes__*", *NOTES)),
        (("mcp:notes:ping",), ("--tools", "", "--allowedTools", "mcp__notes__ping", *NOTES)),
    ],
)
def test_a_grant_of_tools_becomes_options(granted: tuple[str, ...] | None, options: tuple[str, ...]) -> None:
    assert CLAUDE.launch(KIND, seat(tools=granted)).argv == TALK + options


@pytest.mark.parametrize(
    "name", ["claude:*", "claude:Bash,Write", "claude:", "claude:--x", "Bash", "mcp__", "claude:A b"]
)
def test_no_name_of_a_tool_can_widen_the_grant(name: str) -> None:
    assert claude_lines.TOOLS.named((name,)) == ()


# --- what is said to it


def test_it_is_asked_whether_it_is_there_for_it_says_nothing_by_itself() -> None:
    conversation = CLAUDE.converse(SEAT)
    assert conversation.open() == []
    (first,) = said(conversation)
    assert (first["type"], first["request"]) == ("control_request", {"subtype": "initialize"})
    answer = {"subtype": "success", "request_id": first["request_id"], "response": {"pid": 1}}
    facts = read(conversation, *2 * [{"type": "control_response", "response": answer}])
    assert facts == [Ready("a7", 3, tells=True)], "said once, and without a session: there is none yet"
    assert only(read(conversation, INIT, INIT), Ready) == [Ready("a7", 3, session="s1", model="opus", tells=True)]


def test_several_texts_are_one_message_after_the_introduction(opened: ClaudeConversation) -> None:
    opened.hand((task("one\u2028\ud800\n"), evolve(task("two", "m2"), again=True)), "You are worker.")
    line = opened.outgoing()
    assert line.count(b"\n") == 1
    assert line.isascii(), "no character of a text can end a line"
    (part,) = json.loads(line)["message"]["content"]
    first, _, rest = part["text"].partition("[fleet: given again")
    assert first == "You are worker.\n\none\u2028\ud800\n\n\n"
    assert rest.endswith("]\ntwo")
    opened.hand((), "You are worker.")
    assert said(opened) == []


def test_no_two_messages_of_an_agent_have_the_same_id() -> None:
    names = set()
    for run in (1, 2):
        conversation = CLAUDE.converse(seat(run=run))
        names |= {handed(conversation, "same"), handed(conversation, "same")}
    assert len(names) == 4


# --- turns


def test_a_text_is_read_when_claude_begins_with_it_and_its_turn_ends_with_its_result(
    opened: ClaudeConversation,
) -> None:
    name = handed(opened, "go")
    begun = read(opened, lifecycle(name, "queued"), lifecycle(name, "started"), INIT)
    assert [fact for fact in begun if not isinstance(fact, Ready)] == [Read("a7", 3, ("m1",)), TurnStarted("a7", 3)]
    echo = {"type": "user", "uuid": name, "isReplay": True}
    assert read(opened, echo, lifecycle(name, "started")) == [], "it has been said"
    (end,) = only(read(opened, message(), result()), TurnEnded)
    assert (end.outcome, end.text, end.error) == ("ok", "Done.", "")
    assert read(opened, lifecycle(name, "completed")) == []


def test_a_claude_that_tells_nothing_of_its_queue_echoes_what_it_takes_in(opened: ClaudeConversation) -> None:
    name = handed(opened, "go")
    assert read(opened, {"type": "user", "uuid": name, "isReplay": True}) == [Read("a7", 3, ("m1",))]


def test_a_text_that_joins_a_turn_ends_with_it(opened: ClaudeConversation) -> None:
    read(opened, lifecycle(handed(opened, "go"), "started"), INIT)
    more = handed(opened, "more", "m2")
    facts = read(opened, lifecycle(more, "queued"), lifecycle(more, "started"), result())
    assert only(facts, Read) == [Read("a7", 3, ("m2",))]
    assert len(only(facts, TurnEnded)) == 1
    assert not only(facts, TurnStarted)


def test_a_text_that_meets_the_end_of_a_turn_carries_the_turn_on(opened: ClaudeConversation) -> None:
    read(opened, lifecycle(handed(opened, "one"), "started"), INIT)
    late = handed(opened, "two", "m2")
    assert not only(read(opened, result()), TurnEnded)
    facts = read(opened, lifecycle(late, "started"), INIT, result("r2", result="Second."))
    assert [end.text for end in only(facts, TurnEnded)] == ["Second."]
    assert not only(facts, TurnStarted)


def test_a_turn_of_claudes_own_is_one_too(opened: ClaudeConversation) -> None:
    facts = read(opened, INIT, message(), result())
    assert (len(only(facts, TurnStarted)), len(only(facts, TurnEnded))) == (1, 1)


def test_doubled_lines_say_nothing_new(opened: ClaudeConversation) -> None:
    lines = [INIT, message("m"), message("m"), message("n"), result(models={"opus": used(10, 4, 2, 6)})]
    once = read(CLAUDE.converse(SEAT), *lines)
    twice = read(opened, *(line for line in lines for _ in range(2)), *lines[1:])
    assert booked(twice) == booked(once)
    assert (booked(twice).tokens, booked(twice).calls) == (22, 2)
    assert len(only(twice, TurnEnded)) == 1


# --- interruption and end


def test_an_interruption_drops_what_is_queued_and_says_so(opened: ClaudeConversation) -> None:
    read(opened, lifecycle(handed(opened, "one"), "started"), INIT)
    late = handed(opened, "two", "m2")
    opened.interrupt()
    (told,) = said(opened)
    assert told["request"] == {"subtype": "interrupt", "cancel_queued": True}
    facts = read(opened, lifecycle(late, "cancelled"), result(terminal_reason="aborted_tools", is_error=True))
    (end,) = only(facts, TurnEnded)
    assert (end.outcome, end.error) == ("aborted", "1 queued texts were dropped unread")
    assert not only(facts, Read)


def test_an_interruption_before_the_turn_began_ends_it_without_a_result(opened: ClaudeConversation) -> None:
    name = handed(opened, "one")
    opened.interrupt()
    (end,) = only(read(opened, lifecycle(name, "queued"), lifecycle(name, "cancelled")), TurnEnded)
    assert (end.outcome, end.error) == ("aborted", "1 queued texts were dropped unread")


def test_a_text_cancelled_after_the_end_of_a_turn_lets_the_turn_end(opened: ClaudeConversation) -> None:
    read(opened, lifecycle(handed(opened, "one"), "started"), INIT)
    late = handed(opened, "two", "m2")
    read(opened, result())
    opened.interrupt()
    (end,) = only(read(opened, lifecycle(late, "cancelled")), TurnEnded)
    assert (end.outcome, end.text) == ("ok", "Done.")


def test_an_interruption_of_nothing_says_nothing(opened: ClaudeConversation) -> None:
    opened.interrupt()
    opened.close()
    assert opened.outgoing() == b""


def test_a_turn_is_cut_before_the_end_of_stdin_which_would_wait_for_it(opened: ClaudeConversation) -> None:
    read(opened, INIT)
    opened.close()
    assert [told["request"]["subtype"] for told in said(opened)] == ["interrupt"]


# --- the books


def test_the_input_is_booked_as_a_call_begins_and_the_rest_when_its_turn_ends(opened: ClaudeConversation) -> None:
    meter = Meter()
    begun = booked(read(opened, INIT, message("m")), meter)
    assert (begun.input, begun.cache_read, begun.cache_write, begun.output, begun.calls) == (5, 2, 1, 0, 1)
    rest = booked(read(opened, result()), meter)
    assert (rest.input, rest.output, rest.reasoning, rest.calls, rest.cost) == (0, 3, 1, 0, 250_000_000)


def test_each_model_of_a_turn_is_booked_under_its_name(opened: ClaudeConversation) -> None:
    facts = read(opened, INIT, message("m"), result(models={"opus": used(), "haiku": used(7, 0, 0, 2)}))
    reports = [report for fact in only(facts, Spent) for report in fact.reports]
    assert {report.model: report.usage.output for report in reports if report.usage.output} == {"opus": 3, "haiku": 2}
    assert (booked(facts).input, booked(facts).calls) == (12, 2), "a call that no message told is one at least"


def test_a_model_under_another_name_is_not_booked_twice(opened: ClaudeConversation) -> None:
    named = {"opus[1m]": used(canonicalModel="opus")}
    assert booked(read(opened, INIT, message("m"), result(models=named))).tokens == 11
    strange = {"claude-x": used()}
    assert booked(read(opened, INIT, message("n"), result("r2", models=strange))).tokens == 11


def test_a_turn_that_was_cut_while_it_spoke_is_known_in_part(opened: ClaudeConversation) -> None:
    facts = read(opened, INIT, message("m"), result(terminal_reason="aborted_streaming", is_error=True))
    assert sum(fact.incomplete for fact in only(facts, Spent)) == 1
    assert booked(facts).tokens == 11
    cut = read(opened, INIT, message("n"), result("r2", terminal_reason="aborted_tools", is_error=True))
    assert sum(fact.incomplete for fact in only(cut, Spent)) == 0


def test_a_run_that_ends_in_a_turn_says_how_many_calls_are_known_in_part(opened: ClaudeConversation) -> None:
    facts = [*read(opened, INIT, message("m"), message("n")), *opened.ended()]
    assert sum(fact.incomplete for fact in only(facts, Spent)) == 2
    assert booked(facts).input == 10
    idle = CLAUDE.converse(SEAT)
    read(idle, INIT, message("m"), result())
    assert idle.ended() == []


def test_the_window_is_as_full_as_the_input_of_the_last_call(opened: ClaudeConversation) -> None:
    facts = read(opened, INIT, message("m"), message("aside") | {"parent_tool_use_id": "t1"}, result())
    assert context(facts) == 10.0


@pytest.mark.parametrize("number", ["-1", "1e3", "7.0", "true", '"7"', "9007199254740992", "NaN"])
def test_numbers_that_cannot_be_true_book_nothing(opened: ClaudeConversation, number: str) -> None:
    line = json.dumps(message()).replace('"input_tokens": 5', f'"input_tokens": {number}').encode()
    facts = opened.read(line)
    assert only(facts, Garbled)
    assert not only(facts, Spent)


# --- errors and limits


@pytest.mark.parametrize(
    ("status", "failure", "words", "sort", "until"),
    [
        (400, "invalid_request", "API Error: 400", None, None),
        (500, "server_error", "API Error: 500", None, None),
        (401, "authentication_failed", "API Error: 401", "auth", None),
        (None, "authentication_failed", "Not logged in · Please run /login", "auth", None),
        (None, "", "Invalid API key · Please run /login", "auth", None),
        (429, "rate_limit", "API Error: Request rejected (429)", "rate", None),
        (429, "rate_limit", "You've hit your session limit · resets 3pm (Europe/Berlin)", "quota", None),
        (None, "", "Claude AI usage limit reached|1796085000", "quota", 1796085000.0),
        (400, "billing_error", "Credit balance is too low", "quota", None),
        (529, "", "API Error: Overloaded", "overload", None),
    ],
)
def test_a_failed_turn_says_whether_its_provider_takes_no_more(
    opened: ClaudeConversation, status: int | None, failure: str, words: str, sort: str | None, until: float | None
) -> None:
    synthetic = message("x", words, model="<synthetic>") | ({"error": failure} if failure else {})
    failed = result(is_error=True, terminal_reason="api_error", api_error_status=status, result=words, models={})
    facts = read(opened, INIT, synthetic, failed)
    assert [(limit.sort, limit.until, limit.text) for limit in only(facts, Limited)] == (
        [(sort, until, words)] if sort else []
    )
    (end,) = only(facts, TurnEnded)
    assert (end.outcome, end.error, end.text) == ("error", words, "")
    assert booked(facts).calls == 0


def test_a_subscriptions_limit_says_until_when(opened: ClaudeConversation) -> None:
    event = {"type": "rate_limit_event", "rate_limit_info": {"status": "allowed_warning", "resetsAt": 1}}
    full = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1796085000}}
    failed = result(is_error=True, terminal_reason="api_error", api_error_status=429, result="No more.")
    assert only(read(opened, INIT, event, result("r0")), Limited) == []
    assert [(one.sort, one.until) for one in only(read(opened, INIT, full, failed), Limited)] == [
        ("quota", 1796085000.0)
    ]


def test_success_is_not_what_the_subtype_says(opened: ClaudeConversation) -> None:
    (end,) = only(read(opened, INIT, result(is_error=True, subtype="success", result="It failed.")), TurnEnded)
    assert (end.outcome, end.error) == ("error", "It failed.")


def test_an_unknown_conversation_is_an_error_for_people(opened: ClaudeConversation) -> None:
    gone = {"type": "result", "is_error": True, "errors": ["No conversation found with session ID: s9"]}
    (end,) = only(read(opened, gone), TurnEnded)
    assert (end.outcome, end.error) == ("error", "No conversation found with session ID: s9")


def test_claudes_own_retries_are_shown_and_are_no_limit(opened: ClaudeConversation) -> None:
    retry = {"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "retry_delay_ms": 550}
    facts = read(opened, INIT, retry | {"error_status": 429, "error": "rate_limit"})
    assert [fact.last for fact in only(facts, Spoke)] == ["retry 1 of 10 in 0.55s: rate_limit 429"]
    assert not only(facts, Limited)


# --- questions


def test_a_question_is_a_persons_to_answer(opened: ClaudeConversation) -> None:
    assert read(opened, asked("Bash", command="rm x")) == [
        Blocked("a7", 3, on="person", question="Bash: rm x", prompt="p1")
    ]
    opened.answer("p1", allow=True)
    (told,) = said(opened)
    assert told["response"]["request_id"] == "p1"
    assert told["response"]["response"] == {"behavior": "allow", "updatedInput": {"command": "rm x"}}
    opened.answer("p1", allow=False)
    assert said(opened) == [], "one answer"
    read(opened, asked("Bash", "p2"))
    opened.answer("p2", allow=False, text="Not today.")
    assert said(opened)[0]["response"]["response"] == {"behavior": "deny", "message": "Not today."}


def test_a_question_that_is_taken_back_is_not_answered(opened: ClaudeConversation) -> None:
    facts = read(opened, asked("Bash"), *2 * [{"type": "control_cancel_request", "request_id": "p1"}])
    assert only(facts, Withdrawn) == [Withdrawn("a7", 3, "p1")]
    opened.answer("p1", allow=True)
    assert said(opened) == []


CHOICE = {"question": "Which?", "options": [{"label": "left"}, {"label": "right"}]}


def choice(prompt: str = "p1", call: str = "c1", *questions: object) -> dict[str, Any]:
    request = asked("AskUserQuestion", prompt, questions=[*(questions or (CHOICE,))])
    request["request"]["tool_use_id"] = call
    return request


def answered_call(call: str) -> dict[str, Any]:
    return {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": call}]}}


def test_a_question_is_answered_by_the_next_text_which_is_begun_with_when_claude_took_it(
    opened: ClaudeConversation,
) -> None:
    asks = Blocked("a7", 3, on="person", question="Which? (left | right)")
    assert only(read(opened, INIT, choice()), Blocked) == [asks]
    opened.hand((task("left", "m2"), task("and hurry", "m3")), "")
    (told,) = said(opened)
    assert told["response"]["request_id"] == "p1"
    given = {"questions": [CHOICE], "answers": {"Which?": "left\n\nand hurry"}}
    assert told["response"]["response"] == {"behavior": "allow", "updatedInput": given}
    assert [fact.inputs for fact in only(read(opened, *2 * [answered_call("c1")]), Read)] == [("m2", "m3")]
    opened.hand((task("more", "m4"),), "")
    assert said(opened)[0]["type"] == "user", "one answer"


def test_of_two_questions_the_older_is_answered_first_and_one_taken_back_is_not(opened: ClaudeConversation) -> None:
    read(opened, INIT, choice(), choice("p2", "c2"), choice("p3", "c3"))
    read(opened, {"type": "control_cancel_request", "request_id": "p2"})
    for name in ("m2", "m3"):
        opened.hand((task("left", name),), "")
    assert [told["response"]["request_id"] for told in said(opened)] == ["p1", "p3"]


def test_a_question_ends_with_its_turn(opened: ClaudeConversation) -> None:
    read(opened, INIT, choice(), result())
    opened.hand((task("left", "m2"),), "")
    assert said(opened)[0]["type"] == "user"


def test_a_question_that_cannot_be_read_is_approved_or_denied_as_any_tool(opened: ClaudeConversation) -> None:
    for number, questions in enumerate[object](({}, "Which?", [3], None)):
        (blocked,) = only(read(opened, asked("AskUserQuestion", f"p{number}", questions=questions)), Blocked)
        assert blocked.prompt == f"p{number}"


def test_the_end_of_a_turn_takes_its_questions_back_though_the_next_one_begins_at_once(
    opened: ClaudeConversation,
) -> None:
    opened.hand((task("Go."),), "")
    read(opened, INIT, asked("Bash"))
    opened.hand((task("More.", "m2"),), "")
    said(opened)
    facts = read(opened, result(terminal_reason="aborted_tools"))
    assert only(facts, Withdrawn) == [Withdrawn("a7", 3, "p1")]
    assert not only(facts, TurnEnded)
    opened.answer("p1", allow=True)
    assert said(opened) == []


def test_what_is_not_granted_is_refused_without_asking_anybody() -> None:
    bound = CLAUDE.converse(seat(tools=("read", "mcp__notes__*")))
    facts = read(bound, asked("mcp__other__ping"))
    assert not only(facts, Blocked)
    assert said(bound)[0]["response"]["response"] == {"behavior": "deny", "message": "This tool is not in your grant."}
    for tool in ("Read", "mcp__notes__ping"):
        assert only(read(bound, asked(tool)), Blocked), "claude asks beyond the grant: a protected file, say"


# --- lines that are none


@pytest.mark.parametrize("line", [b"Debugger listening", b"\xff\xfe{", b'{"type":"assistant","mess', b"[" * 9999, b"3"])
def test_a_line_that_is_none_of_claudes_is_garbled(opened: ClaudeConversation, line: bytes) -> None:
    (fact,) = opened.read(line)
    assert isinstance(fact, Garbled)
    assert fact.bytes == len(line)


def test_unknown_lines_are_passed_over(opened: ClaudeConversation) -> None:
    assert read(opened, {"type": "news"}, {"type": "system", "subtype": "news"}, {"type": "stream_event"}) == []


def test_a_long_line_that_nobody_needs_is_passed_over_and_a_result_still_ends_its_turn(
    opened: ClaudeConversation,
) -> None:
    assert opened.overlong(b'{"type":"user","message":{"content":[{"tool_use_id":', 5 << 20) == []
    assert [type(fact) for fact in opened.overlong(b'{"type":"assistant","message":', 5 << 20)] == [Garbled]
    read(opened, INIT, message("m"))
    facts = opened.overlong(b'{"duration_api_ms":20,"stop_reason":', 5 << 20)
    assert [type(fact) for fact in facts] == [Garbled, Spent, TurnEnded]
    assert sum(fact.incomplete for fact in only(facts, Spent)) == 1
