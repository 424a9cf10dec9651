"""What people are shown of a failure: words and status, and the time that stood in a provider's answer."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.core.facts import Limit, Limited, TurnEnded
from supervisor.core.spec import Spec
from supervisor.kinds.kind import Seat
from supervisor.kinds.readable import readable
from supervisor.kinds.table import KINDS
from supervisor.kinds.until import until
from tests.captures.expected import CASES, books, data

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()
ANTHROPIC = '{"type":"error","error":{"type":"rate_limit_error","message":"Too fast"},"request_id":"req_1"}'
OPENAI = '{"error":{"message":"No quota","type":"insufficient_quota","code":"insufficient_quota"}}'
GOOGLE = json.dumps(
    {"error": {"code": 429, "message": json.dumps({"error": {"code": 429, "message": "Slow", "status": "EX"}}),
               "status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "34.5s"}]}}
)  # fmt: skip


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("API Error: 529 " + ANTHROPIC, "API Error: 529: Too fast"),
        ("429 " + OPENAI, "429: No quota"),
        (OPENAI, "No quota"),
        (f"[{OPENAI}]", "No quota"),
        ("429: " + GOOGLE, "429: Slow; try again in 34.5s"),
        (GOOGLE, "429: Slow; try again in 34.5s"),
        ('{"status":503,"detail":"busy"}', "503: busy"),
        ('{"error":"invalid_grant"}', "invalid_grant"),
        ('{"error":{"type":"overloaded_error"}}', "overloaded_error"),
        ('[API Error: 429 {"error":{"message":"No more"}}]', "[API Error: 429: No more]"),
        ('{"message":"wait","retry_after_ms":1500}', "wait; try again in 1.5s"),
        ('{"error":{"message":"used up","resets_at":1796130000}}', "used up; resets 2026-12-01T13:00:00Z"),
        ("502 <html><head><title>502 Bad Gateway</title></head><body></body></html>", "502 Bad Gateway"),
        ("<!DOCTYPE html><html><body><h1>Sign in</h1></body>", "Sign in"),
        ("nothing {to} see [1]", "nothing {to} see [1]"),
        ("{", "{"),
        ("[]", "[]"),
        ('{"a":{}}', '{"a":{}}'),
        ("[" * 5000, "[" * 5000),
    ],
)
def test_an_answer_is_told_in_its_words_with_its_status(said: str, shown: str) -> None:
    assert readable(said) == shown
    assert readable(shown) == shown


@pytest.mark.parametrize("answer", [GOOGLE, '{"message":"x","retry_after":37}', '{"resetsAt":1796130000000}'])
def test_the_time_in_an_answer_stays_readable_as_that_time(answer: str) -> None:
    assert until(readable("429 " + answer), NOW) == until(answer, NOW) is not None


_VALUES = st.recursive(
    st.text() | st.floats() | st.integers() | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.text() | _VALUES.map(json.dumps))
def test_any_text_comes_to_a_text(said: str) -> None:
    assert isinstance(readable(said), str)


#: A failure whose provider answered with JSON, as each program prints it.
FAILURES = {
    "pi": [
        b'{"type":"agent_start"}',
        b'{"type":"message_end","message":{"role":"assistant","usage":{},"stopReason":"error","errorMessage":%s}}',
        b'{"type":"agent_settled"}',
    ],
    "claude": [
        b'{"type":"system","subtype":"init","session_id":"s","model":"m"}',
        b'{"type":"result","uuid":"u","is_error":true,"api_error_status":429,"usage":{},"result":%s}',
    ],
    "codex": [
        b'{"type":"thread.started","thread_id":"t"}',
        b'{"type":"turn.started"}',
        b'{"type":"turn.failed","error":{"message":%s}}',
    ],
    "gemini": [
        b'{"type":"init","session_id":"s","model":"m"}',
        b'{"type":"error","message":%s}',
        b'{"type":"result","status":"error","timestamp":"t","stats":{"models":{}}}',
    ],
    "opencode": [
        b'{"type":"error","sessionID":"s","error":{"name":"APIError","data":{"statusCode":429,"message":%s}}}',
    ],
    "qwen": [
        b'{"type":"system","subtype":"init","session_id":"s","model":"m"}',
        b'{"type":"result","uuid":"u","is_error":true,"usage":{},"error":{"message":%s}}',
    ],
    "lines": [b'{"fleet":"limited","sort":"rate","text":%s}'],
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(FAILURES))
def test_a_limit_of_every_kind_says_what_a_person_can_read(kind: str) -> None:
    raw = {"qwen": f"[API Error: 429 {ANTHROPIC}]"}.get(kind, f"429 {ANTHROPIC}")
    talk = KINDS[kind].recorded(Seat("a1", 1, "x", "", resume=False, home="/h", spec=Spec(kind)))
    found = [fact for line in FAILURES[kind] for fact in talk.read(line.replace(b"%s", json.dumps(raw).encode()))]
    found += talk.ended()
    (limit,) = [fact for fact in found if isinstance(fact, Limited)]
    assert limit.sort == "rate"
    assert "Too fast" in limit.text
    assert "429" in limit.text
    assert not set("{}") & set(limit.text)
    for ended in (fact for fact in found if isinstance(fact, TurnEnded)):
        assert ended.error == limit.text


@pytest.mark.parametrize("name", CASES)
def test_no_failure_of_a_capture_is_shown_as_json(name: str) -> None:
    for error in books(name, data(name)).errors:
        assert not set("{}") & set(error["text"]), error
        assert error["sort"] in ("error", *get_args(Limit))
        assert error["text"].strip()
