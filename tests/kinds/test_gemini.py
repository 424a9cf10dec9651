"""The kind `gemini` without its program: how it is started, what it is told, and what its lines mean in every order."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from attrs import evolve

from supervisor.core.facts import Fact, Garbled, Limited, Read, Ready, Spent, Spoke, TurnEnded, TurnStarted
from supervisor.core.ledger import Usage
from supervisor.core.spec import KindSpec, Spec
from supervisor.kinds import gemini_lines, mcp
from supervisor.kinds.gemini import GEMINI
from supervisor.kinds.gemini_talk import GeminiConversation
from tests.kinds.drive import SEAT, booked, only, seat, task

KIND = KindSpec("gemini", "gemini", once=True)
NO_SERVERS = ("--allowed-mcp-server-names", mcp.NOBODYS)
STATS = {"total_tokens": 1351, "input_tokens": 1310, "output_tokens": 34, "cached": 210, "input": 1100}


def line(kind: str, **more: object) -> bytes:
    return json.dumps({"type": kind, "timestamp": "2026-11-30T18:51:39.600Z", **more}, separators=(",", ":")).encode()


def result(status: str = "success", models: dict[str, Any] | None = None, **more: object) -> bytes:
    stats = STATS | {"tool_calls": 0, "models": {"gemini-2.5-flash": STATS} if models is None else models}
    return line("result", status=status, stats=stats, **more)


INIT = line("init", session_id="3bbee8c0-0000", model="gemini-2.5-flash")
USER = line("message", role="user", content="go")
CALL = line("tool_use", tool_name="run_shell_command", tool_id="t1", parameters={"command": "make\ntest"})
BACK = line("tool_result", tool_id="t1", status="success", output="")


def word(text: str) -> bytes:
    return line("message", role="assistant", content=text, delta=True)


@pytest.fixture
def handed() -> GeminiConversation:
    """It has its task and has said nothing yet."""
    conversation = GEMINI.converse(SEAT)
    conversation.open()
    conversation.hand((task("go"),), "You are worker.")
    conversation.outgoing()
    return conversation


def read(conversation: GeminiConversation, *lines: bytes) -> list[Fact]:
    return [fact for each in lines for fact in conversation.read(each)]


def test_it_is_one_process_that_is_started_with_model_and_session() -> None:
    place = seat(session="3bbee8c0", resume=True, spec=Spec(kind="gemini", model="gemini-2.5-pro"))
    launch = GEMINI.launch(KIND, place)
    assert launch.argv == (
        "gemini", "--skip-trust", "-y", "-o", "stream-json", "-m", "gemini-2.5-pro", "--resume", "3bbee8c0",
        *NO_SERVERS,
    )  # fmt: skip
    assert launch.env == (("GEMINI_CLI_NO_RELAUNCH", "true"),), "nothing moves the person's own gemini"
    assert launch.files == ()
    mine = KindSpec("mine", "gemini", ("npx", "gemini"), once=True)
    assert GEMINI.launch(mine, SEAT).argv[:6] == ("npx", "gemini", "--skip-trust", "-y", "-o", "stream-json")


def test_a_conversation_that_has_no_name_yet_is_a_new_one() -> None:
    assert "--resume" not in GEMINI.launch(KIND, seat(session="")).argv
    assert GEMINI.converse(SEAT).open() == [Ready("a7", 3, fresh=True, tells=True)]
    resumed = seat(session="3bbee8c0", resume=True)
    assert GEMINI.converse(resumed).open() == [Ready("a7", 3, session="3bbee8c0", tells=True)]


@pytest.mark.parametrize(
    ("granted", "left"),
    [
        ((), set()),
        (("read",), {"read_file", "read_many_files"}),
        (
            ("bash", "ls"),
            {"run_shell_command", "list_background_processes", "read_background_output", "list_directory"},
        ),
        (("edit", "write", "grep", "glob"), {"replace", "write_file", "grep_search", "glob"}),
        (("web", "gemini:invoke_agent"), {"google_web_search", "web_fetch", "invoke_agent"}),
        (("claude:Task", "gemini:*", "gemini:read_*", "gemini:", "+bash"), set()),
    ],
)
def test_a_grant_of_tools_denies_all_others(granted: tuple[str, ...], left: set[str]) -> None:
    launch = GEMINI.launch(KIND, seat(tools=granted, home="/home/a7"))
    ((name, text),) = launch.files
    assert launch.argv[-4:-2] == ("--admin-policy", f"/home/a7/{name}")
    assert launch.argv[-2:] == NO_SERVERS, "no server of the person's is started"
    own, others = tomllib.loads(text)["rule"]
    assert set(gemini_lines.OWN) - set(own["toolName"]) == left
    assert (own["decision"], others["decision"], others["toolName"]) == ("deny", "deny", ["mcp_*"])


@pytest.mark.parametrize("name", ["gemini:mcp_notes_*", "mcp:notes"])
def test_a_tool_of_a_server_is_left_by_its_name(name: str) -> None:
    launch = GEMINI.launch(KIND, seat(tools=("read", name, 'gemini:mcp_x"\ndecision'), home="/h"))
    assert launch.argv[-2:] == ("--allowed-mcp-server-names", "notes")
    *_, allowed = tomllib.loads(launch.files[0][1])["rule"]
    assert (allowed["toolName"], allowed["decision"]) == (["mcp_notes_*"], "allow")
    assert allowed["priority"] > 900


def test_of_which_server_a_tool_is_its_name_may_not_tell() -> None:
    assert gemini_lines.servers(("mcp:my_notes:read", "gemini:mcp_a_b_c")) == ("my_notes", "my", "a", "a_b")


def test_its_task_is_all_texts_after_the_instructions_and_who_it_is() -> None:
    conversation = GEMINI.converse(seat(instructions="Be brief.\n"))
    conversation.open()
    before = conversation.finished
    conversation.hand((task("one"), evolve(task("two", "m2"), again=True)), "You are worker.")
    said = conversation.outgoing().decode()
    assert said.startswith("Be brief.\n\nYou are worker.\n\none\n\n[fleet: given again")
    assert said.endswith("\ntwo")
    assert (before, conversation.finished) == (False, True), "its stdin is to end now"
    conversation.hand((task("three", "m3"),), "")
    assert conversation.outgoing() == b"", "nothing joins a task that runs"


def test_instructions_are_said_once_with_who_it_is() -> None:
    conversation = GEMINI.converse(seat(instructions="Be brief.", session="s", resume=True))
    conversation.hand((task("one"),), "")
    assert conversation.outgoing() == b"one"


def test_it_tells_what_it_has_begun_with_and_its_sessions_name_once_there_is_one(handed: GeminiConversation) -> None:
    assert read(handed, INIT, USER) == [Read("a7", 3, ("m1",)), TurnStarted("a7", 3)]
    ready = Ready("a7", 3, session="3bbee8c0-0000", model="gemini-2.5-flash", tells=True)
    assert only(read(handed, INIT, word("Do"), word("ne."), CALL), Ready) == [ready], "said once"


def test_a_conversation_whose_first_call_fails_is_not_kept(handed: GeminiConversation) -> None:
    assert not only(read(handed, INIT, result("error", {}, error={"message": "429"})), Ready)
    resumed = GEMINI.converse(seat(session="3bbee8c0-0000", resume=True))
    assert only(read(resumed, INIT), Ready) == [Ready("a7", 3, "3bbee8c0-0000", "gemini-2.5-flash", tells=True)]


def test_thoughts_and_cached_input_are_told_apart_by_difference(handed: GeminiConversation) -> None:
    facts = read(handed, INIT, USER, word("Do"), word("ne."), result())
    assert booked(facts) == Usage(input=1100, cache_read=210, output=41, reasoning=7, calls=1)
    assert [report.model for fact in only(facts, Spent) for report in fact.reports] == ["gemini-2.5-flash"]
    assert only(facts, TurnEnded) == [TurnEnded("a7", 3, "ok", text="Done.")]


def test_each_models_part_is_booked_under_its_name(handed: GeminiConversation) -> None:
    nothing = dict.fromkeys(STATS, 0)
    models = {"router": nothing, "pro": STATS, "flash": STATS}
    facts = read(handed, INIT, word("x"), CALL, BACK, word("y"), result(models=models))
    reports = [report for fact in only(facts, Spent) for report in fact.reports]
    assert [(report.model, report.usage.tokens, report.usage.calls) for report in reports] == [
        ("pro", 1351, 2),
        ("flash", 1351, 0),
    ]
    assert booked(facts).tokens == 2702


def test_a_result_that_stands_there_twice_is_booked_once(handed: GeminiConversation) -> None:
    facts = read(handed, INIT, INIT, word("x"), result(), result())
    assert booked(facts).tokens == 1351
    assert len(only(facts, TurnEnded)) == 1


def test_the_final_text_is_what_came_after_the_last_tool(handed: GeminiConversation) -> None:
    facts = read(handed, INIT, word("I will run it."), CALL, BACK, word("It "), word("ran."), result())
    assert only(facts, TurnEnded)[0].text == "It ran."
    assert booked(facts).calls == 2
    assert "run_shell_command: make" in [fact.last for fact in only(facts, Spoke)]


@pytest.mark.parametrize(
    ("message", "error", "sort"),
    [
        ('[API Error: {"error":{"code":400,"message":"no","status":"INVALID"}}]', "400: INVALID: no", None),
        ('[API Error: {"error":{"code":401,"message":"no","status":"UNAUTHENTICATED"}}]', "401: UNAUTH", "auth"),
        ('[API Error: {"error":{"code":429,"message":"slow down, retry in 20s"}}]', "429: slow down", "rate"),
        ('[API Error: {"error":{"code":429,"message":"your daily quota is used up"}}]', "429: your", "quota"),
        ('[API Error: {"error":{"code":503,"message":"The model is overloaded."}}]', "503: The", "overload"),
        (
            "[API Error: You have exhausted your capacity on this model. Your quota will reset after 3h.]",
            "[API",
            "quota",
        ),
        ("Maximum session turns exceeded", "Maximum", None),
        ("{{{ not json }", "{{{", None),
    ],
)
def test_a_failed_task_says_why_and_a_limit_is_one(
    handed: GeminiConversation, message: str, error: str, sort: str | None
) -> None:
    facts = read(handed, INIT, USER, result("error", {}, error={"type": "unknown", "message": message}))
    (end,) = only(facts, TurnEnded)
    assert end.outcome == "error"
    assert end.error.startswith(error)
    assert [fact.sort for fact in only(facts, Limited)] == ([sort] if sort else [])
    assert [fact.text for fact in only(facts, Limited)] == ([end.error] if sort else [])
    assert booked(facts) == Usage()


def test_an_error_without_words_takes_them_from_the_line_before(handed: GeminiConversation) -> None:
    failed = line("error", severity="error", message="The model gave no answer.")
    warned = line("error", severity="warning", message="A loop was seen.")
    assert (
        only(read(handed, INIT, warned, failed, result("error", {})), TurnEnded)[0].error == "The model gave no answer."
    )


def test_a_task_that_fails_for_no_reason_still_fails(handed: GeminiConversation) -> None:
    (end,) = only(read(handed, INIT, result("error", {})), TurnEnded)
    assert end.outcome == "error"
    assert "no reason" in end.error


@pytest.mark.parametrize(
    ("lines", "lost"),
    [((INIT,), 1), ((INIT, word("x"), CALL), 1), ((INIT, word("x"), CALL, BACK), 2), ((), 0)],
)
def test_a_process_that_ends_in_its_task_says_how_many_calls_are_missing(
    handed: GeminiConversation, lines: tuple[bytes, ...], lost: int
) -> None:
    read(handed, *lines)
    facts = handed.ended()
    assert sum(fact.incomplete for fact in only(facts, Spent)) == lost
    assert not only(facts, TurnEnded), "that it failed is told by its exit"
    assert handed.ended() == [] or not lost


def test_an_interrupted_task_is_aborted_when_its_process_has_ended(handed: GeminiConversation) -> None:
    read(handed, INIT, word("begun"))
    handed.interrupt()
    assert handed.outgoing() == b""
    assert only(handed.ended(), TurnEnded) == [TurnEnded("a7", 3, "aborted", text="begun")]


@pytest.mark.parametrize(("before", "calls"), [((), 0), ((CALL, BACK), 1)])
def test_a_task_that_gemini_ends_for_its_loops_has_failed_and_a_call_of_it_is_lost(
    handed: GeminiConversation, before: tuple[bytes, ...], calls: int
) -> None:
    warned = line("error", severity="warning", message="Loop detected, stopping execution")
    ended = result(models={} if not calls else None)
    facts = read(handed, INIT, *before, word("still still "), warned, ended, ended)
    (end,) = only(facts, TurnEnded)
    assert (end.outcome, end.error) == ("error", "Loop detected, stopping execution")
    spent = only(facts, Spent)
    assert sum(fact.incomplete for fact in spent) == 1
    assert booked(facts).calls == calls


def test_a_task_that_was_done_before_its_interruption_is_done(handed: GeminiConversation) -> None:
    read(handed, INIT)
    handed.interrupt()
    assert only(read(handed, word("Done."), result()), TurnEnded)[0].outcome == "ok"
    assert handed.ended() == []


@pytest.mark.parametrize("number", ["-1", "1e3", "7.0", "true", '"7"', "9007199254740992", "NaN", "null"])
def test_numbers_that_cannot_be_true_book_nothing(handed: GeminiConversation, number: str) -> None:
    read(handed, INIT)
    facts = handed.read(result().replace(b'"total_tokens":1351', f'"total_tokens":{number}'.encode()))
    assert only(facts, Garbled)
    assert not only(facts, Spent)


@pytest.mark.parametrize("text", [b"Debugger", b"\xff\xfe{", b'{"type":"result","sta', b"[" * 9999, b'{"type":7}'])
def test_a_line_that_is_none_of_geminis_is_garbled(handed: GeminiConversation, text: bytes) -> None:
    (fact,) = handed.read(text)
    assert isinstance(fact, Garbled)


def test_of_lines_that_are_too_long_only_those_that_are_missed_are_faults(handed: GeminiConversation) -> None:
    for head in (USER[:80], BACK[:40], CALL[:40], b'{"type":"tool_result"'):
        assert handed.overlong(head, 5 << 20) == []
    for head in (word("x")[:90], result()[:60]):
        assert only(handed.overlong(head, 5 << 20), Garbled)


def test_lines_of_unknown_types_change_nothing(handed: GeminiConversation) -> None:
    assert read(handed, line("thought", text="hm"), line("usage", stats=STATS)) == []


def test_how_a_person_goes_on_by_hand() -> None:
    reopening = GEMINI.reopen(KIND, seat(session="3bbee8c0-3d39-489d"))
    assert reopening.argv == ("gemini", "--resume", "3bbee8c0-3d39-489d")
    assert reopening.file == "~/.gemini/tmp/*/chats/session-*-3bbee8c0.jsonl"
    assert GEMINI.reopen(KIND, SEAT).argv == ()


def test_what_it_is_not_held_to_is_said() -> None:
    assert any("tokens" in line for line in GEMINI.unenforced(SEAT))
    assert any("model" in line for line in GEMINI.unenforced(seat(spec=Spec(kind="gemini", model="pro"))))
