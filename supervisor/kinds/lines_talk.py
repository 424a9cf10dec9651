"""The dialogue in our neutral status lines, with any program: everything else that it prints is plain output.

The protocol, for authors of programs, is `docs/status-lines.md`. A plain line is never garbled; a line that
begins as one of ours and cannot be taken always is, and books nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import cast

from supervisor.core.asking import PROMPTS
from supervisor.core.facts import (
    Blocked,
    Fact,
    Input,
    Outcome,
    Read,
    Ready,
    Said,
    Spent,
    Spoke,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from supervisor.core.ledger import Report, Scope, Usage
from supervisor.kinds import fields, lines_limits
from supervisor.kinds.fields import LineError
from supervisor.kinds.kind import Seat, garbled, too_long

#: Our lines are told by their first key, before anything is decoded.
OURS = re.compile(rb'\s*\{\s*"fleet"\s*:')

_OUTCOMES = ("ok", "error", "aborted")
_SCOPES = ("call", "turn", "total")
#: A word, such as a status or a name.
_WORD = 200


class LinesConversation:
    """One run's dialogue in status lines.

    `at_once` says that the program takes input as soon as it runs; otherwise it is ready when it says so."""

    def __init__(self, seat: Seat, *, at_once: bool = True) -> None:
        self._seat = seat
        self._at_once = at_once
        self._ready: tuple[str, str, bool] | None = None
        self._introduced = False
        self._speaks = not at_once
        self._unanswered: set[str] = set()
        self._unread: list[str] = []
        self._prompts: set[str] = set()
        self._turn = self._started = False
        self._tells_turns = False
        self._queue: list[bytes] = []

    @property
    def polite(self) -> bool:
        return self._speaks

    def open(self) -> list[Fact]:
        if not self._at_once:
            return []
        self._ready = (self._seat.session, "", False)
        return [Ready(self._seat.agent, self._seat.run, session=self._seat.session)]

    def read(self, line: bytes) -> list[Fact]:
        if not OURS.match(line):
            last = fields.last_line(line)
            return [Spoke(self._seat.agent, self._seat.run, last)] if last else []
        self._speaks = True
        try:
            said = fields.decode(line)
            return _READERS[_one_of(said, "fleet", tuple(_READERS))](self, said)
        except LineError as error:
            return [garbled(self._seat, len(line), str(error))]

    def overlong(self, _head: bytes, size: int) -> list[Fact]:
        """Not even plain output is that long: it is shown as a fault, whatever it was."""
        return [too_long(self._seat, size)]

    def hand(self, inputs: tuple[Input, ...], words: str) -> None:
        for item in inputs:
            message: dict[str, object] = {"fleet": item.sort, "id": item.id, "text": item.text, "by": item.by}
            if item.again:
                message["again"] = True
            if not self._introduced:
                message["you"] = self._you(words)
                self._introduced = True
            self._say(message)
            self._unanswered.add(item.id)
            self._unread.append(item.id)
        self._turn = self._turn or bool(inputs)

    def interrupt(self) -> None:
        self._say({"fleet": "interrupt"})

    @property
    def finished(self) -> bool:
        return self._seat.once and self._introduced

    def answer(self, prompt: str, *, allow: bool | None, text: str = "") -> None:
        if prompt in self._prompts:
            self._prompts.discard(prompt)
            why = "" if allow is None else text
            self._say({"fleet": "answer", "prompt": prompt, "allow": bool(allow), "text": why})

    def close(self) -> None:
        """The end of its stdin is the polite word to stop; there is no other."""

    def ended(self) -> list[Fact]:
        return []

    def outgoing(self) -> bytes:
        queued, self._queue = b"".join(self._queue), []
        return queued

    def _say(self, message: dict[str, object]) -> None:
        self._queue.append(json.dumps(message).encode() + b"\n")

    def _you(self, words: str) -> dict[str, object]:
        seat = self._seat
        return {
            "id": seat.agent, "name": seat.name, "run": seat.run, "role": seat.spec.role,
            "description": seat.spec.description, "model": seat.spec.model, "session": seat.session,
            "resume": seat.resume, "home": seat.home,
            "tools": None if seat.tools is None else list(seat.tools), "words": words,
        }  # fmt: skip

    # --- what the program says, a reader a word

    def _read_ready(self, said: dict[str, object]) -> list[Fact]:
        known_session, known_model, known_tells = self._ready or (self._seat.session, "", False)
        session = fields.words(said, "session", known_session, most=_WORD)
        model = fields.words(said, "model", known_model, most=_WORD)
        tells = said.get("turns", known_tells)
        if not isinstance(tells, bool):
            raise LineError("`turns` is neither true nor false")
        if self._ready == (session, model, tells):
            return []
        self._ready = (session, model, tells)
        return [Ready(self._seat.agent, self._seat.run, session=session, model=model, tells=tells)]

    def _read_status(self, said: dict[str, object]) -> list[Fact]:
        last = fields.last_line(_needed(said, "text"))
        return [Spoke(self._seat.agent, self._seat.run, last)] if last else []

    def _read_usage(self, said: dict[str, object]) -> list[Fact]:
        scope = _one_of(said, "scope", _SCOPES)
        usage = Usage(
            input=fields.whole(said, "input"),
            cache_read=fields.whole(said, "cache_read"),
            cache_write=fields.whole(said, "cache_write"),
            output=fields.whole(said, "output"),
            reasoning=fields.whole(said, "reasoning"),
            calls=fields.whole(said, "calls", 1 if scope == "call" else 0),
            cost=fields.dollars(said, "cost"),
        )
        if usage.reasoning > usage.output:
            raise LineError("`reasoning` is more than `output`, which includes it")
        report = Report(
            scope=cast("Scope", scope),
            usage=usage,
            id=fields.words(said, "id", most=_WORD),
            epoch=fields.words(said, "epoch", most=_WORD),
            model=fields.words(said, "model", most=_WORD),
            context=fields.number(said, "context", 100),
            window=fields.whole(said, "context_window") or None,
            held=fields.whole(said, "context_tokens") if "context_tokens" in said else None,
        )
        return [Spent(self._seat.agent, self._seat.run, (report,))]

    def _read_turn(self, said: dict[str, object]) -> list[Fact]:
        state = _one_of(said, "state", ("started", "ended"))
        self._tells_turns = True
        if state == "started":
            already, self._turn, self._started = self._started, True, True
            return [*self._begun(said), *([] if already else [TurnStarted(self._seat.agent, self._seat.run)])]
        outcome = _one_of(said, "outcome", _OUTCOMES, "ok")
        text, error = fields.words(said, "text"), fields.words(said, "error")
        answered = _ids(said)
        self._unanswered -= self._unanswered if answered is None else answered
        # A text that reached the program as its turn ended begins the next one at once: for the fleet, which
        # has handed it, the turn goes on.
        if self._unanswered or not self._turn:
            return []
        return self._end(outcome, text, error)

    def _begun(self, said: dict[str, object]) -> list[Fact]:
        """Which texts it has begun with: those it names, else all that it was given. Of a program that has not said
        that it tells, nothing is taken for granted."""
        named = _ids(said)
        if self._ready is None or not self._ready[2]:
            return []
        begun = self._unread if named is None else [name for name in self._unread if name in named]
        self._unread = [name for name in self._unread if name not in begun]
        return [Read(self._seat.agent, self._seat.run, tuple(begun))] if begun else []

    def _read_done(self, said: dict[str, object]) -> list[Fact]:
        summary = fields.words(said, "summary")
        facts: list[Fact] = [
            Said(
                self._seat.agent,
                self._seat.run,
                status=fields.words(said, "status", "done", most=_WORD),
                verdict=fields.words(said, "verdict", most=_WORD),
                summary=summary,
                waiting_on=fields.words(said, "waiting_on", most=_WORD),
            )
        ]
        # A program that tells nothing of its turns has but this line to end one.
        if self._turn and not self._tells_turns:
            facts += self._end("ok", summary, "")
        return facts

    def _read_blocked(self, said: dict[str, object]) -> list[Fact]:
        on, question = fields.clip(_needed(said, "on"), _WORD), fields.words(said, "question")
        prompt = fields.words(said, "prompt", most=_WORD)
        if prompt:
            self._asks(prompt, on)
        lasts = fields.number(said, "seconds", fields.EXACT) or 0.0
        return [Blocked(self._seat.agent, self._seat.run, on, question, prompt, lasts)]

    def _asks(self, prompt: str, on: str) -> None:
        if on != "person":
            raise LineError("`prompt` is for a person to approve or deny: `on` is `person` then")
        if self._seat.once:
            raise LineError("`prompt` of a program that does one task: its stdin is at its end, no answer can come")
        if prompt in self._prompts:
            raise LineError("`prompt` is up already")
        if len(self._prompts) >= PROMPTS:
            raise LineError(f"more than {PROMPTS} prompts at once")
        self._prompts.add(prompt)

    def _read_withdrawn(self, said: dict[str, object]) -> list[Fact]:
        prompt = fields.clip(_needed(said, "prompt"), _WORD)
        if prompt not in self._prompts:
            return []  # it was answered, or its turn is over
        self._prompts.discard(prompt)
        return [Withdrawn(self._seat.agent, self._seat.run, prompt)]

    def _end(self, outcome: str, text: str, error: str) -> list[Fact]:
        self._turn = self._started = False
        self._unanswered.clear()
        self._unread.clear()
        self._prompts.clear()
        return [TurnEnded(self._seat.agent, self._seat.run, cast("Outcome", outcome), text=text, error=error)]


_READERS: dict[str, Callable[[LinesConversation, dict[str, object]], list[Fact]]] = {
    "ready": LinesConversation._read_ready,
    "status": LinesConversation._read_status,
    "usage": LinesConversation._read_usage,
    "turn": LinesConversation._read_turn,
    "done": LinesConversation._read_done,
    "blocked": LinesConversation._read_blocked,
    "withdrawn": LinesConversation._read_withdrawn,
    "limited": lambda talk, said: lines_limits.read(talk._seat, said),
}


def _needed(said: dict[str, object], key: str) -> str:
    if key not in said:
        raise LineError(f"`{key}` is missing")
    return fields.words(said, key)


def _one_of(said: dict[str, object], key: str, known: tuple[str, ...], default: str = "") -> str:
    value = fields.words(said, key, default)
    if value not in known:
        raise LineError(f"`{key}` is none of {', '.join(known)}")
    return value


def _ids(said: dict[str, object]) -> frozenset[str] | None:
    value = said.get("inputs")
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise LineError("`inputs` is no list of ids")
    return frozenset(value)
