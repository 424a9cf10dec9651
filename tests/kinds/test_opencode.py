"""The kind `opencode` without its program: how it is started, what it is told, and what its lines mean in every
order."""

from __future__ import annotations

import json

import pytest

from supervisor.core.facts import Fact, Garbled, Limited, Read, Ready, Spent, Spoke, TurnEnded, TurnStarted
from supervisor.core.ledger import Usage
from supervisor.core.spec import KindSpec, Spec
from supervisor.kinds.opencode import OPENCODE
from supervisor.kinds.opencode_talk import OpencodeConversation
from tests.kinds.drive import SEAT, booked, only, seat, task

KIND = KindSpec("opencode", "opencode", once=True)
MAIN, CHILD = "ses_main", "ses_child"
TOKENS = {"total": 1240, "input": 1000, "output": 33, "reasoning": 7, "cache": {"write": 3, "read": 200}}
STEP = Usage(input=1000, cache_read=200, cache_write=3, output=40, reasoning=7, calls=1, cost=1_100_000)


def line(kind: str, message: str = "msg_1", session: str = MAIN, **part: object) -> bytes:
    body = {"id": f"prt_{kind}_{message}", "messageID": message, "sessionID": session, **part}
    return json.dumps({"type": kind, "sessionID": session, "part": body}, separators=(",", ":")).encode()


def start(message: str = "msg_1") -> bytes:
    return line("step_start", message)


def finish(message: str = "msg_1", reason: str = "stop", **more: object) -> bytes:
    told: dict[str, object] = {"tokens": TOKENS, "cost": 0.0011} | more
    return line("step_finish", message, MAIN, reason=reason, **told)


def text(words: str, message: str = "msg_1") -> bytes:
    return line("text", message, text=words)


def tool(name: str, message: str = "msg_1", **metadata: object) -> bytes:
    state = {"status": "completed", "input": {"command": "make\ntest"}, "output": "", "metadata": metadata}
    return line("tool_use", message, tool=name, state=state)


def failed(name: str = "APIError", **data: object) -> bytes:
    return json.dumps({"type": "error", "sessionID": MAIN, "error": {"name": name, "data": data}}).encode()


def event(kind: str, session: str = MAIN, **more: object) -> bytes:
    said = {"type": kind, "properties": {"sessionID": session, **more}}
    return json.dumps({"type": "fleet", "event": said}, separators=(",", ":")).encode()


def answering(message: str, session: str = MAIN, **more: object) -> bytes:
    info = {"id": message, "role": "assistant", "providerID": "local", "modelID": "big", "sessionID": session, **more}
    return event("message.updated", session, info=info)


def stepped(message: str, session: str = MAIN) -> bytes:
    part = {"id": f"prt_step_finish_{message}", "messageID": message, "type": "step-finish", "reason": "stop"}
    return event("message.part.updated", session, part=part | {"tokens": TOKENS, "cost": 0.0011})


@pytest.fixture
def handed() -> OpencodeConversation:
    """It has its task and has said nothing yet."""
    conversation = OPENCODE.converse(SEAT)
    conversation.open()
    conversation.hand((task("go"),), "You are worker.")
    conversation.outgoing()
    return conversation


def read(conversation: OpencodeConversation, *lines: bytes) -> list[Fact]:
    return [fact for each in lines for fact in conversation.read(each)]


def lost(facts: list[Fact]) -> int:
    return sum(fact.incomplete for fact in only(facts, Spent))


def test_it_is_started_in_its_directory_with_model_and_a_title_that_costs_nothing() -> None:
    launch = OPENCODE.launch(KIND, seat(spec=Spec(kind="opencode", model="local/big", directory="/srv/x"), home="/h"))
    assert launch.argv == (
        "opencode", "run", "--format", "json", "--dir", "/srv/x", "-m", "local/big", "--title", "worker (a7)",
    )  # fmt: skip
    at_home = OPENCODE.launch(KindSpec("mine", "opencode", ("npx", "oc"), once=True), seat(home="/h"))
    assert at_home.argv[:6] == ("npx", "oc", "run", "--format", "json", "--dir")
    assert at_home.argv[6] == "/h"


def test_a_conversation_is_gone_on_with_by_its_name() -> None:
    place = seat(session=MAIN, resume=True)
    assert OPENCODE.launch(KIND, place).argv[-2:] == ("-s", MAIN)
    assert OPENCODE.converse(place).open() == [Ready("a7", 3, session=MAIN, tells=True)]
    assert OPENCODE.converse(SEAT).open() == [Ready("a7", 3, fresh=True, tells=True)]


def test_what_it_adds_to_the_persons_configuration_is_its_plugin_and_the_instructions() -> None:
    (name, content), *npm = OPENCODE.launch(KIND, seat(home="/a b/a7", spec=Spec(kind="opencode"))).env
    assert {each.partition(":")[0] for each, _ in npm} == {"npm_config_@opencode-ai", "npm_config_fetch_retries"}
    assert name == "OPENCODE_CONFIG_CONTENT"
    assert json.loads(content) == {"plugin": ["file:///a%20b/a7/opencode-fleet.js"]}
    told = OPENCODE.launch(KIND, seat(home="/h", spec=Spec(kind="opencode", instructions="/w/words.md")))
    assert json.loads(told.env[0][1])["instructions"] == ["/w/words.md"]


@pytest.mark.parametrize(
    ("granted", "named", "shown"),
    [
        ((), [], set()),
        (("read", "bash"), ["read", "bash"], {"read", "bash"}),
        (("edit",), ["edit", "apply_patch"], {"edit"}),
        (("write", "ls"), ["write", "list"], {"edit", "list"}),
        (
            ("web", "glob"),
            ["webfetch", "websearch", "codesearch", "glob"],
            {"webfetch", "websearch", "codesearch", "glob"},
        ),
        (("opencode:task", "opencode:notes_*"), ["task", "notes_*"], {"task"}),
        (("opencode:*", "pi:x", "opencode:", 'opencode:a"]'), [], set()),
    ],
)
def test_a_grant_of_tools_goes_into_the_plugin(granted: tuple[str, ...], named: list[str], shown: set[str]) -> None:
    ((_, script),) = OPENCODE.launch(KIND, seat(tools=granted, home="/h")).files
    assert f"const GRANT = {json.dumps(named)}\n" in script
    own = json.loads(script.partition("const OWN = ")[2].partition("\n")[0])
    editing = {"edit"} if {"edit", "write"} & set(named) else set()
    assert ({name for name in own if name in named} | editing) == shown
    assert {"bash", "task", "skill", "webfetch"} <= set(own)


def test_without_a_grant_of_tools_it_has_what_opencode_has() -> None:
    ((_, script),) = OPENCODE.launch(KIND, seat(home="/h")).files
    assert "const GRANT = null\n" in script


def test_its_task_is_all_texts_after_who_it_is() -> None:
    conversation = OPENCODE.converse(seat(instructions="never said here"))
    conversation.hand((task('say "hi"'), task("two", "m2")), "You are worker.")
    assert conversation.outgoing() == b'You are worker.\n\nsay "hi"\n\ntwo'
    assert conversation.finished


def test_it_tells_what_it_has_begun_with_and_its_sessions_name(handed: OpencodeConversation) -> None:
    begun = [Ready("a7", 3, session=MAIN, tells=True), Read("a7", 3, ("m1",)), TurnStarted("a7", 3)]
    assert read(handed, start()) == begun
    assert read(handed, start()) == [], "said once"


def test_our_plugin_tells_the_beginning_and_the_model_before_anything_is_answered(handed: OpencodeConversation) -> None:
    user = event("message.updated", info={"id": "msg_0", "role": "user"})
    facts = read(handed, event("session.created", info={}), user, answering("msg_1"))
    assert [type(fact) for fact in facts] == [Ready, Read, TurnStarted, Ready]
    assert only(facts, Ready)[-1].model == "local/big"
    assert lost(handed.ended()) == 1, "a call was under way"


def test_a_step_is_a_call_and_its_reasoning_is_output(handed: OpencodeConversation) -> None:
    facts = read(handed, start(), text("Done."), finish())
    assert booked(facts) == STEP
    assert not only(facts, TurnEnded), "nothing says that it was the last one"
    assert only(handed.ended(), TurnEnded) == [TurnEnded("a7", 3, "ok", text="Done.")]


def test_a_step_is_booked_once_by_whomever_it_is_told(handed: OpencodeConversation) -> None:
    facts = read(handed, answering("msg_1"), start(), stepped("msg_1"), stepped("msg_1"), finish(), finish())
    assert booked(facts) == STEP
    assert next(report.model for fact in only(facts, Spent) for report in fact.reports) == "local/big"
    assert lost([*facts, *handed.ended()]) == 0


def test_what_a_subagent_uses_is_booked_and_changes_nothing_else(handed: OpencodeConversation) -> None:
    facts = read(handed, start(), event("session.created", CHILD, info={"parentID": MAIN}), answering("msg_c", CHILD))
    facts += read(handed, stepped("msg_c", CHILD), event("session.idle", CHILD), tool("task", sessionId=CHILD))
    facts += read(handed, finish(reason="tool-calls"))
    assert booked(facts).calls == 2
    assert {fact.session for fact in only(facts, Ready)} == {MAIN}
    assert lost(facts) == 0
    assert not only(handed.ended(), TurnEnded), "the task goes on"


def test_a_subagent_that_nobody_heard_of_is_missing_from_the_books(handed: OpencodeConversation) -> None:
    facts = read(handed, start(), tool("task", sessionId=CHILD), finish())
    assert lost([*facts, *handed.ended()]) == 1


def test_the_final_text_is_the_last_messages(handed: OpencodeConversation) -> None:
    facts = read(handed, start(), text("I will run it."), tool("bash"), finish(reason="tool-calls"))
    facts += read(handed, start("msg_2"), text("It", "msg_2"), text("ran.", "msg_2"), finish("msg_2"))
    (end,) = only(handed.ended(), TurnEnded)
    assert (end.outcome, end.text) == ("ok", "It\n\nran.")
    assert booked(facts).calls == 2
    assert "bash: make" in [fact.last for fact in only(facts, Spoke)]


@pytest.mark.parametrize(("reason", "over"), [("stop", 1), ("length", 1), ("tool-calls", 0), ("unknown", 0)])
def test_a_step_after_which_the_model_is_asked_again_is_not_the_last(
    handed: OpencodeConversation, reason: str, over: int
) -> None:
    read(handed, start(), finish(reason=reason))
    assert len(only(handed.ended(), TurnEnded)) == over


def test_a_refused_permission_ends_the_task_after_its_tool(handed: OpencodeConversation) -> None:
    read(handed, start(), finish(reason="tool-calls"), event("session.idle"))
    assert only(handed.ended(), TurnEnded)[0].outcome == "ok"


def test_a_process_that_ends_in_its_task_says_how_many_calls_are_missing(handed: OpencodeConversation) -> None:
    read(handed, start(), finish(reason="tool-calls"), start("msg_2"), text("half", "msg_2"))
    facts = handed.ended()
    assert lost(facts) == 1
    assert not only(facts, TurnEnded), "that it failed is told by its exit"
    assert handed.ended() == []


def test_a_call_that_was_cut_before_its_numbers_is_missing(handed: OpencodeConversation) -> None:
    nothing = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    facts = read(handed, start(), finish(tokens=nothing, cost=0), finish(tokens=nothing, cost=0))
    assert (booked(facts), lost([*facts, *handed.ended()])) == (Usage(), 1)


def test_an_interrupted_task_is_aborted_when_its_process_has_ended(handed: OpencodeConversation) -> None:
    read(handed, start(), text("begun"))
    handed.interrupt()
    facts = handed.ended()
    assert only(facts, TurnEnded) == [TurnEnded("a7", 3, "aborted", text="begun")]
    assert lost(facts) == 1


def test_a_task_that_opencode_itself_aborted_is_aborted(handed: OpencodeConversation) -> None:
    read(handed, start(), failed("MessageAbortedError", message="Aborted"))
    assert only(handed.ended(), TurnEnded)[0].outcome == "aborted"


@pytest.mark.parametrize(
    ("error", "words", "sort"),
    [
        (failed(message="no", statusCode=400), "400: no", None),
        (failed(message="no", statusCode=401), "401: no", "auth"),
        (failed("ProviderAuthError", message="no key"), "401: no key", "auth"),
        (
            failed(message="slow down", statusCode=429, responseHeaders={"retry-after": "20"}),
            "429: slow down; try again in 20s",
            "rate",
        ),
        (failed(message="insufficient credit", statusCode=402), "402: insufficient credit", "quota"),
        (failed(message="busy", statusCode=529), "529: busy", "overload"),
        (failed("UnknownError", message="Unexpected server error."), "Unexpected server error.", None),
        (failed("Odd"), "Odd", None),
    ],
)
def test_a_failed_task_says_why_and_a_limit_is_one(
    handed: OpencodeConversation, error: bytes, words: str, sort: str | None
) -> None:
    facts = [*read(handed, error, error), *handed.ended()]
    assert only(facts, TurnEnded) == [TurnEnded("a7", 3, "error", error=words)]
    assert [(fact.sort, fact.text) for fact in only(facts, Limited)] == ([(sort, words)] if sort else [])
    assert only(facts, Read) == [Read("a7", 3, ("m1",))], "it had begun with its task"
    assert (booked(facts), lost(facts)) == (Usage(), 0), "a call that failed costs nothing"


def test_an_error_that_was_overcome_is_none(handed: OpencodeConversation) -> None:
    read(handed, start(), failed(message="the window is full"), start("msg_2"), text("Done.", "msg_2"), finish("msg_2"))
    assert only(handed.ended(), TurnEnded)[0].outcome == "ok"


def test_that_a_provider_is_asked_again_is_shown_and_no_limit(handed: OpencodeConversation) -> None:
    status = {"type": "retry", "attempt": 2, "message": "Too Many Requests", "next": 1796064701773}
    facts = read(handed, event("session.status", status=status))
    assert [fact.last for fact in only(facts, Spoke)] == ["retry 2: Too Many Requests"]
    assert not only(facts, Limited)


@pytest.mark.parametrize("number", ["-1", "1e3", "7.0", "true", '"7"', "9007199254740992", "NaN", "null"])
def test_numbers_that_cannot_be_true_book_nothing(handed: OpencodeConversation, number: str) -> None:
    facts = handed.read(finish().replace(b'"input":1000', f'"input":{number}'.encode()))
    assert only(facts, Garbled)
    assert not only(facts, Spent)


@pytest.mark.parametrize(
    "said", [b"Warning: x", b"\xff{", b'{"type":"step_finish","pa', b"[" * 9999, b'{"type":"fleet"}']
)
def test_a_line_that_is_none_of_opencodes_is_garbled(handed: OpencodeConversation, said: bytes) -> None:
    (fact,) = handed.read(said)
    assert isinstance(fact, Garbled)


def test_of_lines_that_are_too_long_only_those_that_are_missed_are_faults(handed: OpencodeConversation) -> None:
    for head in (tool("bash")[:60], event("message.updated")[:60], b'{"type":"reasoning","'):
        assert handed.overlong(head, 5 << 20) == []
    for head in (text("x")[:60], finish()[:60]):
        assert only(handed.overlong(head, 5 << 20), Garbled)


def test_lines_and_events_of_unknown_types_change_nothing(handed: OpencodeConversation) -> None:
    assert read(handed, b'{"type":"reasoning","part":{}}', event("plugin.added"), event("todo.updated")) == []


def test_how_a_person_goes_on_by_hand() -> None:
    assert OPENCODE.reopen(KIND, seat(session=MAIN)).argv == ("opencode", "-s", MAIN)
    assert OPENCODE.reopen(KIND, SEAT).argv == ()


def test_who_takes_our_configuration_away_is_told_what_is_lost() -> None:
    assert OPENCODE.unenforced(SEAT) == ()
    own = Spec(kind="opencode", env=(("OPENCODE_CONFIG_CONTENT", "{}"),))
    assert "not counted" in OPENCODE.unenforced(seat(spec=own))[0]
