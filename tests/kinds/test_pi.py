"""The kind `pi` without its program: what is said to it, and what its lines mean in every order."""

from __future__ import annotations

import json

import pytest
from attrs import evolve

from supervisor.core.facts import Blocked, Fact, Garbled, Limited, Read, Ready, Spent, Spoke, TurnEnded, TurnStarted
from supervisor.core.spec import KindSpec, Spec
from supervisor.kinds.pi import PI
from supervisor.kinds.pi_talk import PiConversation
from tests.kinds.drive import SEAT, booked, only, seat, task

KIND = KindSpec("pi", "pi")
START = b'{"type":"agent_start"}'
SETTLED = b'{"type":"agent_settled","aborted":false}'


def said(conversation: PiConversation) -> list[dict[str, object]]:
    return [json.loads(line) for line in conversation.outgoing().splitlines()]


def answer(command: str, name: object, *, success: bool = True, **data: object) -> bytes:
    line = {"id": name, "type": "response", "command": command, "success": success}
    return json.dumps(line | ({"data": data} if success else data)).encode()


def message(text: str = "Done.", **more: object) -> bytes:
    usage = {"input": 5, "output": 3, "cacheRead": 2, "cacheWrite": 1, "cost": {"total": 0.25}}
    body = {"role": "assistant", "content": [{"type": "text", "text": text}], "usage": usage, "timestamp": 1}
    return json.dumps({"type": "message_end", "message": body | more}, separators=(",", ":")).encode()


@pytest.fixture
def opened() -> PiConversation:
    conversation = PI.converse(SEAT)
    conversation.open()
    conversation.outgoing()
    return conversation


def prompt(conversation: PiConversation, text: str) -> object:
    conversation.hand((task(text),), "")
    (command,) = said(conversation)
    return command["id"]


def test_it_is_started_with_our_session_model_tools_and_instructions() -> None:
    spec = Spec(kind="pi", model="fake/m", instructions="/etc/words.md")
    place = seat(session="fleet-a7", spec=spec, tools=("read", "glob", "web", "pi:codemode"))
    assert PI.launch(KIND, place).argv == (
        "pi", "--mode", "rpc", "--session-id", "fleet-a7", "--model", "fake/m",
        "--tools", "read,find,codemode",
        "--no-mcp", "--append-system-prompt", "/etc/words.md",
    )  # fmt: skip
    assert PI.launch(KindSpec("mine", "pi", ("npx", "pi")), SEAT).argv == ("npx", "pi", "--mode", "rpc", "--no-mcp")


def test_it_stays_where_the_person_has_it() -> None:
    assert PI.launch(KIND, seat(session="s")).env == ()


@pytest.mark.parametrize(
    ("granted", "options"),
    [
        (None, ("--no-mcp",)),
        ((), ("--no-tools", "--no-mcp")),
        (("web",), ("--no-tools", "--no-mcp")),
        (("claude:Task", "read"), ("--tools", "read", "--no-mcp")),
        (("read", "mcp:notes"), ("--tools", "read,mcp__notes__*")),
        (("mcp:my.notes:read",), ("--tools", "mcp__my_notes__read")),
        (("read", "pi:mcp__notes__*"), ("--tools", "read,mcp__notes__*")),
    ],
)
def test_a_grant_of_tools_becomes_options(granted: tuple[str, ...] | None, options: tuple[str, ...]) -> None:
    assert PI.launch(KIND, seat(tools=granted)).argv[3:] == options


@pytest.mark.parametrize("name", ["pi:+bash", "pi:-read", "pi:bash,write", "pi:*", "pi:", "+bash"])
def test_no_name_of_a_tool_can_widen_the_grant(name: str) -> None:
    assert PI.launch(KIND, seat(tools=(name,))).argv[3:] == ("--no-tools", "--no-mcp")


def test_several_texts_are_one_prompt_after_the_introduction(opened: PiConversation) -> None:
    opened.hand((task("one\u2028\ud800"), task("two", "m2")), "You are worker.")
    (command,) = said(opened)
    assert command["type"] == "prompt"
    assert command["message"] == "You are worker.\n\none\u2028\ud800\n\ntwo"
    assert command["streamingBehavior"] == "steer"


def test_a_call_is_booked_once_however_often_its_usage_is_repeated(opened: PiConversation) -> None:
    line = message()
    end = json.loads(line)["message"]
    facts = [*opened.read(START), *opened.read(line), *opened.read(line)]
    for kind in ("turn_end", "message_start"):
        facts += opened.read(json.dumps({"type": kind, "message": end}).encode())
    facts += opened.read(json.dumps({"type": "agent_end", "messages": [end]}).encode())
    facts += opened.read(json.dumps({"type": "message_update", "usage": end["usage"]}).encode())
    assert booked(facts).tokens == 11
    assert booked(facts).cost == 250_000_000


@pytest.mark.parametrize("number", ["-1", "1e3", "7.0", "true", '"7"', "9007199254740992", "NaN", "null"])
def test_numbers_that_cannot_be_true_book_nothing(opened: PiConversation, number: str) -> None:
    facts = opened.read(message().replace(b'"input":5', f'"input":{number}'.encode()))
    assert only(facts, Garbled)
    assert not only(facts, Spent)


def test_what_a_tool_and_a_compaction_asked_of_a_model_is_booked_too(opened: PiConversation) -> None:
    usage = json.loads(message())["message"]["usage"]
    tool = {"type": "message_end", "message": {"role": "toolResult", "toolCallId": "t1", "usage": usage}}
    compaction = {"type": "compaction_end", "result": {"firstKeptEntryId": "e", "usage": usage}}
    lines = [json.dumps(line).encode() for line in (tool, tool, compaction, compaction)]
    facts = [fact for line in lines for fact in opened.read(line)]
    assert (booked(facts).tokens, booked(facts).calls) == (22, 2)


def test_what_pi_asks_of_a_model_by_itself_is_booked_too(opened: PiConversation) -> None:
    usage = json.loads(message())["message"]["usage"]
    entry = {"type": "usage", "id": "e1", "kind": "cache_warm", "provider": "p", "model": "m", "usage": usage}
    lines = [entry, entry, {"type": "context_edit", "id": "e2"}]
    facts = [
        fact for line in lines for fact in opened.read(json.dumps({"type": "entry_appended", "entry": line}).encode())
    ]
    assert (booked(facts).tokens, booked(facts).calls) == (11, 1)
    assert not only(facts, Garbled)


def test_a_text_that_meets_the_end_of_a_turn_carries_the_turn_on(opened: PiConversation) -> None:
    first = prompt(opened, "one")
    facts = opened.read(answer("prompt", first, disposition="started")) + opened.read(START)
    second = prompt(opened, "two")
    facts += opened.read(message("First.")) + opened.read(SETTLED)
    assert not only(facts, TurnEnded)
    facts += opened.read(answer("prompt", second, disposition="started")) + opened.read(START)
    facts += opened.read(message("Second.", timestamp=2)) + opened.read(SETTLED)
    assert [end.text for end in only(facts, TurnEnded)] == ["Second."]
    assert len(only(facts, TurnStarted)) == 1


def test_a_text_refused_after_the_end_of_a_turn_ends_it_in_error(opened: PiConversation) -> None:
    opened.read(START)
    late = prompt(opened, "late")
    assert not only(opened.read(SETTLED), TurnEnded)
    (end,) = only(opened.read(answer("prompt", late, success=False, error="no")), TurnEnded)
    assert (end.outcome, end.error) == ("error", "no")


def test_a_command_of_pis_own_ends_its_turn_at_once(opened: PiConversation) -> None:
    name = prompt(opened, "/plan")
    (end,) = only(opened.read(answer("prompt", name, disposition="handled")), TurnEnded)
    assert (end.outcome, end.text) == ("ok", "")


def test_a_text_that_meets_a_compaction_is_said_again_after_it(opened: PiConversation) -> None:
    early = prompt(opened, "early")
    facts: list[Fact] = opened.read(b'{"type":"compaction_start","reason":"threshold"}')
    refusal = "Cannot submit a prompt while compaction is in progress. Wait for compaction to finish and retry."
    facts += opened.read(answer("prompt", early, success=False, error=refusal))
    opened.hand((task("during"),), "")
    assert not said(opened)
    facts += opened.read(b'{"type":"compaction_end","reason":"threshold","aborted":false}')
    assert [command["message"] for command in said(opened)] == ["early", "during"]
    assert not only(facts, TurnEnded)


def test_an_interruption_clears_the_queue_first_and_says_what_was_dropped(opened: PiConversation) -> None:
    opened.read(START)
    opened.interrupt()
    clear, abort = said(opened)
    assert (clear["type"], abort["type"]) == ("clear_queue", "abort")
    opened.read(answer("clear_queue", clear["id"], steering=["a"], followUp=["b"]))
    opened.read(message(stopReason="aborted"))
    (end,) = only(opened.read(b'{"type":"agent_settled","aborted":true}'), TurnEnded)
    assert (end.outcome, end.error) == ("aborted", "2 queued texts were dropped unread")


def test_an_interruption_that_comes_before_its_run_is_said_again(opened: PiConversation) -> None:
    prompt(opened, "go")
    opened.interrupt()
    opened.outgoing()
    opened.read(START)
    assert [command["type"] for command in said(opened)] == ["abort"]


def test_an_interruption_of_nothing_says_nothing(opened: PiConversation) -> None:
    opened.interrupt()
    assert opened.outgoing() == b""


def test_a_question_to_the_person_is_shown_and_cancelled_by_an_interruption(opened: PiConversation) -> None:
    ask = {
        "type": "extension_ui_request",
        "id": "u1",
        "method": "confirm",
        "title": "Delete?",
        "message": "All.",
    }
    assert opened.read(json.dumps(ask).encode()) == [Blocked("a7", 3, "person", "Delete? All.", prompt="u1")]
    opened.interrupt()
    assert said(opened) == [{"type": "extension_ui_response", "id": "u1", "cancelled": True}]


@pytest.mark.parametrize(
    "line", [b"Debugger listening", b"\xff\xfe{", b'{"type":"message_end","mess', b"[" * 9999, b"3"]
)
def test_a_line_that_is_none_of_pis_is_garbled(opened: PiConversation, line: bytes) -> None:
    (fact,) = opened.read(line)
    assert isinstance(fact, Garbled)
    assert fact.bytes == len(line)


def test_the_frequent_lines_are_dropped_without_being_decoded(opened: PiConversation) -> None:
    assert opened.read(b'{"type":"message_update","usage":' + b"[" * 4_000_000) == []


def test_the_last_line_is_one_line_without_colours(opened: PiConversation) -> None:
    (spoke,) = only(opened.read(message("first\n\x1b[31mred\x1b[0m " + "x" * 300)), Spoke)
    assert spoke.last.startswith("red xxx")
    assert len(spoke.last) == 200


def test_what_it_has_begun_with_is_told_once(opened: PiConversation) -> None:
    name = prompt(opened, "go")
    assert only(opened.read(START), Read) == [Read("a7", 3, ("m1",))]
    assert only(opened.read(answer("prompt", name)), Read) == []
    later = prompt(opened, "more")
    assert only(opened.read(answer("prompt", later)), Read) == [Read("a7", 3, ("m1",))], "it joined the running turn"


def test_a_text_that_is_given_again_says_so(opened: PiConversation) -> None:
    opened.hand((evolve(task("go"), again=True),), "")
    (command,) = said(opened)
    assert str(command["message"]).endswith("\ngo")
    assert "given again" in str(command["message"])


def test_a_resumed_conversation_adds_what_nobody_had_heard_of_it() -> None:
    resumed = PI.converse(seat(session="s", resume=True))
    resumed.open()
    resumed.outgoing()
    resumed.read(answer("get_state", "fleet-1", sessionId="s", messageCount=2))
    assert [command["type"] for command in said(resumed)] == ["get_messages"]
    spoken = json.loads(message())["message"]
    told = [{"role": "user", "content": "go"}, spoken, spoken | {"usage": None}, "no message"]
    facts = resumed.read(answer("get_messages", "fleet-2", messages=told)) + resumed.read(message())
    assert [fact.reports[0].id for fact in only(facts, Spent)] == ["1:", "1:"], "the same call, by the same name"
    assert booked(facts).calls == 1
    head = b'{"id":"fleet-2","type":"response","command":"get_messages","success":true,"data":{"messages":[{"role":'
    assert resumed.overlong(head, 5 << 20) == []


def test_a_fresh_conversation_has_nothing_to_add() -> None:
    fresh = PI.converse(seat(session="s", resume=True))
    fresh.open()
    fresh.outgoing()
    fresh.read(answer("get_state", "fleet-1", sessionId="s", messageCount=0))
    assert said(fresh) == []


def dialog(method: str, **more: object) -> bytes:
    return json.dumps({"type": "extension_ui_request", "id": "u1", "method": method, "title": "Well?", **more}).encode()


CHOICE = {"options": ["Allow once", "Block"]}
COLOURS = {"options": ["Red", "Green"]}


@pytest.mark.parametrize(
    ("method", "more", "allow", "answer"),
    [
        ("confirm", {}, True, {"confirmed": True}),
        ("confirm", {"timeout": 500}, False, {"confirmed": False}),
        ("select", CHOICE, True, {"value": "Allow once"}),
        ("select", CHOICE, False, {"value": "Block"}),
        ("select", {"options": ["Yes", "Later"]}, False, {"cancelled": True}),
    ],
)
def test_an_approval_answers_the_dialog_that_it_names_once(
    opened: PiConversation, method: str, more: dict[str, object], allow: bool, answer: dict[str, object]
) -> None:
    (asked,) = opened.read(dialog(method, **more))
    assert isinstance(asked, Blocked)
    assert asked.prompt == "u1"
    opened.answer("u2", allow=allow)
    assert said(opened) == []
    opened.answer("u1", allow=allow)
    assert said(opened) == [{"type": "extension_ui_response", "id": "u1", **answer}]
    opened.answer("u1", allow=allow)
    assert said(opened) == []


@pytest.mark.parametrize(
    ("method", "more", "text", "answer"),
    [
        ("input", {}, "42 apples", "42 apples"),
        ("editor", {"prefill": "x"}, "one\ntwo", "one\ntwo"),
        ("select", COLOURS, "green", "Green"),
        ("select", COLOURS, " 2 ", "Green"),
    ],
)
def test_a_text_answers_what_nobody_can_approve(
    opened: PiConversation, method: str, more: dict[str, object], text: str, answer: str
) -> None:
    (asked,) = opened.read(dialog(method, **more))
    assert isinstance(asked, Blocked)
    assert asked.prompt == "", "there is no yes to choose"
    opened.answer("u1", allow=True)
    assert said(opened) == []
    opened.hand((task(text),), "")
    assert said(opened) == [{"type": "extension_ui_response", "id": "u1", "value": answer}]
    assert only(opened.read(START), Read) == [Read("a7", 3, ("m1",))]


@pytest.mark.parametrize(("method", "prompt"), [("confirm", "u1"), ("input", "")])
def test_a_dialog_that_pi_gives_up_by_itself_is_cancelled_and_takes_no_text(
    opened: PiConversation, method: str, prompt: str
) -> None:
    opened.read(dialog("input", id="u0", title="Another?"))
    (asked,) = opened.read(dialog(method, timeout=1500))
    assert isinstance(asked, Blocked)
    assert (asked.prompt, asked.lasts) == (prompt, 1.5)
    opened.answer(asked.prompt, allow=None, text=asked.question)
    assert said(opened) == [{"type": "extension_ui_response", "id": "u1", "cancelled": True}]
    opened.hand((task("yes"),), "")
    assert [each["id"] for each in said(opened)] == ["u0"]


def test_what_nobody_can_approve_after_a_turn_is_cancelled_at_its_end(opened: PiConversation) -> None:
    opened.hand((task("Go."),), "")
    opened.read(START)
    opened.read(dialog("confirm"))
    opened.read(dialog("input", id="u2"))
    said(opened)
    settled = [*opened.read(answer("prompt", "fleet-2")), *opened.read(b'{"type":"agent_settled","aborted":false}')]
    assert only(settled, TurnEnded)
    assert {"type": "extension_ui_response", "id": "u1", "cancelled": True} in said(opened)
    opened.answer("u1", allow=True)
    assert said(opened) == []
    opened.hand((task("42", "m2"),), "")
    assert [each["id"] for each in said(opened)] == ["u2"], "a text answers after the turn, too"


def test_a_text_that_answers_nothing_is_a_text(opened: PiConversation) -> None:
    opened.read(dialog("select", **COLOURS))
    opened.hand((task("something else"),), "")
    assert [command["type"] for command in said(opened)] == ["prompt"]


@pytest.mark.parametrize(
    ("error", "sort", "shown"),
    [
        ('429: {"message":"slow down"}', "rate", "429: slow down"),
        ('429: {"code":"insufficient_quota"}', "quota", "429: insufficient_quota"),
        ('401: {"message":"bad key"}', "auth", "401: bad key"),
        ("529 overloaded_error", "overload", ""),
        ("You have hit your ChatGPT usage limit (plus plan). Try again in ~20 min.", "quota", ""),
        ("500: too many requests in the message, but a server's own failure", None, ""),
        ('400: {"message":"rate limit is no word of a bad request"}', None, ""),
        ("the tool failed", None, ""),
    ],
)
def test_a_limit_is_told_when_pi_has_given_up(opened: PiConversation, error: str, sort: str | None, shown: str) -> None:
    facts = opened.read(START) + opened.read(message("", stopReason="error", errorMessage=error, usage={}))
    assert not only(facts, Limited)
    facts = opened.read(SETTLED)
    assert [(fact.sort, fact.until, fact.text) for fact in only(facts, Limited)] == (
        [(sort, None, shown or error)] if sort else []
    )
    assert only(facts, TurnEnded)[0].outcome == "error"


def test_a_call_that_was_cut_is_missing_in_the_books_once(opened: PiConversation) -> None:
    opened.read(START)
    opened.read(b'{"type":"turn_start"}')
    cut = message("Half", stopReason="aborted", usage={})
    facts = opened.read(cut) + opened.read(cut)
    assert [fact.incomplete for fact in only(facts, Spent)] == [1]
    assert opened.ended() == []


def test_a_pi_that_ends_in_a_call_leaves_it_missing(opened: PiConversation) -> None:
    opened.read(START)
    opened.read(b'{"type":"turn_start"}')
    assert opened.ended() == [Spent("a7", 3, (), incomplete=1)]


def test_a_recording_of_the_json_mode_begins_with_its_session() -> None:
    recorded = PI.recorded(SEAT)
    line = b'{"type":"session","version":3,"id":"s1"}'
    assert only(recorded.read(line) + recorded.read(line), Ready) == [Ready("a7", 3, session="s1")]


def test_what_pi_cannot_be_held_to_is_said() -> None:
    assert not any("bash" in line for line in PI.unenforced(seat(tools=("read",))))
    assert any("bash" in line for line in PI.unenforced(seat(tools=("bash",))))
    assert any("bash" in line for line in PI.unenforced(SEAT))


def test_the_conversation_is_opened_by_hand_with_pi() -> None:
    assert PI.reopen(KIND, seat(session="s1")).argv == ("pi", "--session-id", "s1")
    assert PI.reopen(KIND, SEAT).argv == ()


def test_a_reason_of_a_denial_joins_the_turn(opened: PiConversation) -> None:
    opened.read(START)
    opened.read(dialog("confirm"))
    opened.answer("u1", allow=False, text="Not that file.")
    denied, reason = said(opened)
    assert denied["confirmed"] is False
    assert (reason["type"], reason["message"], reason["streamingBehavior"]) == ("prompt", "Not that file.", "steer")
