"""The kind `qwen` without its program: what is said to it, and what its lines mean in every order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from supervisor.core.facts import Blocked, Fact, Garbled, Limited, Read, Ready, Spent, TurnEnded, TurnStarted, Withdrawn
from supervisor.core.ledger import Meter
from supervisor.core.spec import KindSpec, Spec
from supervisor.kinds import mcp, qwen_lines
from supervisor.kinds.qwen import QWEN
from supervisor.kinds.qwen_talk import QwenConversation
from tests.kinds.drive import SEAT, booked, context, only, seat, task

KIND = KindSpec("qwen", "qwen")
TALK, NO_SERVERS = QWEN.launch(KIND, SEAT).argv[:-2], ("--allowed-mcp-server-names", mcp.NOBODYS)
INIT = {"type": "system", "subtype": "init", "session_id": "s1", "model": "coder"}
NEWS = {"type": "system", "subtype": "task_notification", "task_id": "t"}


def said(conversation: QwenConversation) -> list[dict[str, Any]]:
    return [json.loads(line) for line in conversation.outgoing().splitlines()]


def read(conversation: QwenConversation, *lines: dict[str, Any]) -> list[Fact]:
    return [fact for line in lines for fact in conversation.read(json.dumps(line).encode())]


def usage(whole: int, cached: int, output: int) -> dict[str, int]:
    return {"input_tokens": whole, "cache_read_input_tokens": cached, "output_tokens": output}


def message(name: str = "m", text: str = "Done.", used: dict[str, int] | None = None) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    body = {"id": name, "model": "coder", "content": content, "usage": used or usage(7, 2, 3)}
    return {"type": "assistant", "session_id": "s1", "parent_tool_use_id": None, "message": body}


def result(name: str = "r1", used: dict[str, int] | None = None, **more: object) -> dict[str, Any]:
    told = {"is_error": False, "result": "Done.", "session_id": "s1", "usage": used or usage(7, 2, 3)}
    return {"type": "result", "uuid": name} | told | more


def failed(words: str, name: str = "r1") -> dict[str, Any]:
    return result(name, usage(0, 0, 0), is_error=True, error={"message": words})


def asked(tool: str, prompt: str = "p1", **given: object) -> dict[str, Any]:
    request = {"subtype": "can_use_tool", "tool_name": tool, "input": given}
    return {"type": "control_request", "request_id": prompt, "request": request}


@pytest.fixture
def opened() -> QwenConversation:
    conversation = QWEN.converse(SEAT)
    conversation.open()
    conversation.outgoing()
    return conversation


def hand(conversation: QwenConversation, text: str, name: str = "m1") -> list[dict[str, Any]]:
    conversation.hand((task(text, name),), "")
    return said(conversation)


# --- how it is started


def test_it_is_started_with_our_model_tools_and_instructions_and_its_own_session() -> None:
    place = seat(spec=Spec(kind="qwen", model="coder"), instructions="Be brief.", tools=("read", "bash"))
    argv = QWEN.launch(KIND, place).argv
    excluded = argv[argv.index("--exclude-tools") + 1]
    assert argv == (
        *TALK, "--model", "coder", "--approval-mode", "default", "--core-tools", "read_file,run_shell_command",
        "--exclude-tools", excluded, *NO_SERVERS, "--append-system-prompt", "Be brief.",
    )  # fmt: skip
    assert "agent" in excluded.split(",")
    assert QWEN.launch(KindSpec("mine", "qwen", ("npx", "qwen")), SEAT).argv[:2] == ("npx", "qwen")
    assert QWEN.launch(KIND, place).env == (), "it stays where the person has it"


def test_a_conversation_is_resumed_by_qwens_own_id_for_it() -> None:
    assert QWEN.launch(KIND, seat(session="s1", resume=True)).argv == (*TALK, "--resume", "s1", *NO_SERVERS)
    assert QWEN.launch(KIND, seat(resume=True)).argv == (*TALK, *NO_SERVERS)
    found = QWEN.reopen(KIND, seat(session="s1"))
    assert (found.argv, found.file) == (("qwen", "--resume", "s1"), "~/.qwen/projects/*/chats/s1.jsonl")
    assert QWEN.reopen(KIND, SEAT).argv == ()


@pytest.mark.parametrize("name", ["mcp__notes__ping", "mcp:notes:ping"])
def test_an_mcp_server_is_there_when_a_tool_of_it_is_granted(name: str) -> None:
    argv = QWEN.launch(KIND, seat(tools=(name,))).argv
    assert argv[argv.index("--core-tools") + 1] == "mcp__notes__ping"
    assert argv[argv.index("--allowed-mcp-server-names") + 1] == "notes"
    assert "tool_call" not in argv[argv.index("--exclude-tools") + 1].split(",")


@pytest.mark.parametrize("name", ["qwen:*", "qwen:edit,agent", "qwen:", "qwen:--yolo", "edit_file", "mcp__"])
def test_no_name_of_a_tool_can_widen_the_grant(name: str) -> None:
    assert qwen_lines.TOOLS.named((name,)) == ()


# --- turns


def test_it_is_asked_to_listen_to_interruptions_and_is_there_when_it_answers() -> None:
    conversation = QWEN.converse(SEAT)
    conversation.open()
    (first,) = said(conversation)
    assert first["request"] == {"subtype": "initialize", "timeout": {"canUseTool": 600_000}}
    answer = {"subtype": "success", "request_id": first["request_id"], "response": {"session_id": "s1"}}
    facts = read(conversation, *2 * [{"type": "control_response", "response": answer}])
    assert facts == [Ready("a7", 3, tells=True)], "its session is none that can be resumed before something was said"
    assert only(read(conversation, INIT, INIT), Ready) == [Ready("a7", 3, session="s1", model="coder", tells=True)]


def test_a_text_is_read_when_its_turn_begins(opened: QwenConversation) -> None:
    assert hand(opened, "go")[0]["message"]["content"] == [{"type": "text", "text": "go"}]
    assert read(opened, INIT)[1:] == [Read("a7", 3, ("m1",)), TurnStarted("a7", 3)]
    (end,) = only(read(opened, message(), result()), TurnEnded)
    assert (end.outcome, end.text) == ("ok", "Done.")


def test_a_text_that_comes_in_a_turn_is_held_until_its_end_and_carries_the_turn_on(opened: QwenConversation) -> None:
    hand(opened, "one")
    read(opened, INIT)
    assert hand(opened, "two", "m2") == []
    assert not only(read(opened, result()), TurnEnded)
    (told,) = said(opened)
    assert told["message"]["content"][0]["text"] == "two"
    facts = read(opened, INIT, result("r2", usage(9, 2, 4), result="Second."))
    assert only(facts, Read) == [Read("a7", 3, ("m2",))]
    assert [end.text for end in only(facts, TurnEnded)] == ["Second."]
    assert not only(facts, TurnStarted)


def test_a_turn_about_something_in_the_background_is_none_of_a_text_that_waits(opened: QwenConversation) -> None:
    hand(opened, "go")
    facts = read(opened, NEWS, INIT, result())
    assert not only(facts, Read)
    assert not only(facts, TurnEnded)
    facts = read(opened, INIT, result("r2", usage(9, 2, 4)))
    assert only(facts, Read) == [Read("a7", 3, ("m1",))]
    assert len(only(facts, TurnEnded)) == 1


def test_an_interruption_drops_what_is_held_and_says_so(opened: QwenConversation) -> None:
    hand(opened, "one")
    read(opened, INIT)
    hand(opened, "two", "m2")
    opened.interrupt()
    assert [told["request"]["subtype"] for told in said(opened)] == ["interrupt"]
    (end,) = only(read(opened, failed("Operation cancelled.")), TurnEnded)
    assert (end.outcome, end.error) == ("aborted", "1 queued texts were dropped unread")


def test_an_interruption_that_comes_before_its_turn_is_said_again(opened: QwenConversation) -> None:
    hand(opened, "one")
    opened.interrupt()
    said(opened)
    read(opened, INIT)
    assert [told["request"]["subtype"] for told in said(opened)] == ["interrupt"]
    read(opened, failed("Operation cancelled."))
    said(opened)
    hand(opened, "two")
    read(opened, INIT)
    assert said(opened) == [], "the next turn is not meant"


def test_an_interruption_of_nothing_says_nothing(opened: QwenConversation) -> None:
    opened.interrupt()
    opened.close()
    assert opened.outgoing() == b""


# --- the books


def test_calls_and_the_sessions_total_are_booked_once_whatever_is_said_again(opened: QwenConversation) -> None:
    lines = [INIT, message("text", used=usage(0, 0, 0)), message("m"), result(), INIT, message("n"), message("o")]
    lines += [result("r2", usage(21, 6, 9))]
    for facts in (read(QWEN.converse(SEAT), *lines), read(opened, *(line for line in lines for _ in range(2)))):
        spent = booked(facts)
        assert (spent.input, spent.cache_read, spent.output, spent.calls) == (15, 6, 9, 3)


def test_a_call_that_qwen_makes_for_itself_is_in_its_total(opened: QwenConversation) -> None:
    spent = booked(read(opened, INIT, message(), result(used=usage(20, 4, 8))))
    assert (spent.input, spent.cache_read, spent.output, spent.calls) == (16, 4, 8, 2)


def test_a_resumed_session_goes_on_with_its_total() -> None:
    meter = Meter()
    booked(read(QWEN.converse(SEAT), INIT, message(), result()), meter)
    resumed = QWEN.converse(seat(session="s1", resume=True, run=4))
    spent = booked(read(resumed, INIT, message("n"), result("r2", usage(14, 4, 6))), meter)
    assert (spent.input, spent.cache_read, spent.output, spent.calls) == (5, 2, 3, 1)


def test_a_call_that_was_cut_is_known_to_be_unknown(opened: QwenConversation) -> None:
    facts = read(opened, INIT, failed("Operation cancelled."))
    assert sum(fact.incomplete for fact in only(facts, Spent)) == 1
    cancelled = {"content": [{"type": "tool_result", "content": "[Operation Cancelled] Reason: …"}]}
    facts = read(opened, INIT, message(), {"type": "user", "message": cancelled}, failed("Operation cancelled.", "r2"))
    assert sum(fact.incomplete for fact in only(facts, Spent)) == 0
    read(opened, INIT)
    assert sum(fact.incomplete for fact in only(opened.ended(), Spent)) == 1


def test_the_window_is_asked_for_after_each_turn(opened: QwenConversation) -> None:
    read(opened, INIT, result())
    (told,) = said(opened)
    assert told["request"] == {"subtype": "get_context_usage"}
    full = {"totalTokens": 50, "contextWindowSize": 200}
    response = {"subtype": "success", "request_id": told["request_id"], "response": full}
    assert context(read(opened, {"type": "control_response", "response": response})) == 25.0


@pytest.mark.parametrize("number", ["-1", "1e3", "7.0", "true", '"7"', "9007199254740992", "NaN", "null", "1"])
def test_numbers_that_cannot_be_true_book_nothing(opened: QwenConversation, number: str) -> None:
    line = json.dumps(message()).replace('"input_tokens": 7', f'"input_tokens": {number}').encode()
    facts = opened.read(line)
    assert only(facts, Garbled)
    assert not only(facts, Spent)


# --- errors, limits, questions


@pytest.mark.parametrize(
    ("words", "sort"),
    [
        ("[API Error: 400 no]", None),
        ("[API Error: 500 no]", None),
        ("[API Error: 401 no]", "auth"),
        ("[API Error: 429 slow down]", "rate"),
        ("[API Error: 429 You exceeded your current quota]", "quota"),
        ("[API Error: 429 slow down]\nPossible quota limitations in place. Please try again later.", "rate"),
        ("Quota exhausted: 5h quota exceeded, it will reset at 15:00\n\nPlease retry after that.", "quota"),
        ("Qwen OAuth quota exceeded: Your free daily quota has been reached.", "quota"),
        ("[API Error: 529 overloaded]", "overload"),
        ("No auth type is selected. Please configure an auth type", "auth"),
        ("the file has 429 lines", None),
    ],
)
def test_a_failed_turn_says_whether_its_provider_takes_no_more(
    opened: QwenConversation, words: str, sort: str | None
) -> None:
    facts = read(opened, INIT, message("x", words, usage(0, 0, 0)), failed(words))
    assert [(limit.sort, limit.until, limit.text) for limit in only(facts, Limited)] == (
        [(sort, None, words)] if sort else []
    )
    (end,) = only(facts, TurnEnded)
    assert (end.outcome, end.error) == ("error", words)


def test_without_a_grant_of_tools_a_question_is_a_persons_to_answer(opened: QwenConversation) -> None:
    assert read(opened, asked("run_shell_command", command="rm x")) == [
        Blocked("a7", 3, on="person", question="run_shell_command: rm x", prompt="p1", lasts=600)
    ]
    opened.answer("p1", allow=True)
    assert said(opened)[0]["response"]["response"]["behavior"] == "allow"
    opened.answer("p1", allow=True)
    assert said(opened) == []


def test_the_end_of_a_turn_takes_its_questions_back_though_the_next_one_begins_at_once(
    opened: QwenConversation,
) -> None:
    hand(opened, "Go.")
    read(opened, INIT, asked("edit"))
    hand(opened, "More.", "m2")
    facts = read(opened, failed("Operation cancelled."))
    assert only(facts, Withdrawn) == [Withdrawn("a7", 3, "p1")]
    assert not only(facts, TurnEnded)
    said(opened)
    opened.answer("p1", allow=True)
    assert said(opened) == []


def test_what_nobody_answers_in_qwens_time_is_denied_and_cannot_be_answered(opened: QwenConversation) -> None:
    read(opened, INIT, asked("edit", "p1"), asked("ask_user_question", "p2", questions=[{"question": "Which?"}]))
    opened.answer("p1", allow=None, text="edit:")
    opened.answer("", allow=None, text="Which?")
    for told in said(opened):
        assert told["response"]["response"] == {"behavior": "deny", "message": "Nobody has answered in time."}
    opened.answer("p1", allow=True)
    opened.answer("", allow=None, text="Which?")
    assert said(opened) == []


def test_with_a_grant_of_tools_nobody_is_asked() -> None:
    bound = QWEN.converse(seat(tools=("bash", "qwen:ask_user_question")))
    assert not only(read(bound, asked("run_shell_command"), asked("edit", "p2")), Blocked)
    behaviors = [told["response"]["response"]["behavior"] for told in said(bound)]
    assert behaviors == ["allow", "deny"]
    questions = [{"question": "Which?"}]
    (blocked,) = only(read(bound, asked("ask_user_question", "p3", questions=questions)), Blocked)
    assert (blocked.question, blocked.prompt) == ("Which?", "")


def test_a_question_is_answered_by_the_next_text_begun_with_when_qwen_took_it(opened: QwenConversation) -> None:
    questions = [{"question": "Which?", "options": [{"label": "left"}, {"label": "right"}]}, {"question": "When?"}]
    request = asked("ask_user_question", questions=questions)
    request["request"]["tool_use_id"] = "c1"
    (blocked,) = only(read(opened, INIT, request), Blocked)
    assert (blocked.question, blocked.prompt, blocked.lasts) == ("Which? (left | right)\nWhen?", "", 600)
    opened.hand((task("left, now", "m2"),), "")
    (told,) = said(opened)
    assert told["response"]["response"]["updatedInput"]["answers"] == {"0": "left, now", "1": "left, now"}
    result = {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "c1"}]}}
    assert [fact.inputs for fact in only(read(opened, result, result), Read)] == [("m2",)]


@pytest.mark.parametrize("line", [b"Debugger listening", b"\xff\xfe{", b'{"type":"assistant","mess', b"[" * 9999, b"3"])
def test_a_line_that_is_none_of_qwens_is_garbled(opened: QwenConversation, line: bytes) -> None:
    (fact,) = opened.read(line)
    assert isinstance(fact, Garbled)
    assert fact.bytes == len(line)


def test_a_long_line_that_nobody_needs_is_passed_over_and_a_result_still_ends_its_turn(
    opened: QwenConversation,
) -> None:
    assert opened.overlong(b'{"type":"user","uuid":', 5 << 20) == []
    assert [type(fact) for fact in opened.overlong(b'{"type":"assistant","uuid":', 5 << 20)] == [Garbled]
    read(opened, INIT)
    facts = opened.overlong(b'{"type":"result","subtype":"success",', 5 << 20)
    assert [type(fact) for fact in facts] == [Garbled, TurnEnded]
