"""The dialogue with one claude, stream-json both ways. It must not end a turn before claude has begun with all that it
was given, nor leave one without an end."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define

from supervisor.core.facts import (
    Fact,
    Input,
    Limited,
    Outcome,
    Read,
    Ready,
    Spent,
    Spoke,
    TurnEnded,
    TurnStarted,
)
from supervisor.core.ledger import Report
from supervisor.kinds import claude_lines, fields
from supervisor.kinds.claude_books import REMEMBERED, Books
from supervisor.kinds.claude_lines import SYNTHETIC
from supervisor.kinds.kind import Seat, too_long, typed
from supervisor.kinds.readable import readable
from supervisor.kinds.stream_json import FIRST, NOT_GRANTED, Outbox
from supervisor.kinds.stream_prompts import Prompts

#: Long lines that nobody needs: what a tool answered, what claude says back of ours.
_UNNEEDED = (b'{"type":"user"', b'{"type":"control_response"', b'{"type":"stream_event"')
#: Any other long line that begins like this is no result.
_TYPED = b'{"type":"'
_RESULT = b'{"type":"result"'


@define
class Turn:
    """What is known of the turn under way."""

    text: str = ""
    #: claude's word for why a call failed
    failure: str = ""
    until: float | None = None
    dropped: int = 0
    #: how it ended, when a text was on its way that begins the next one at once
    over: tuple[Outcome, str] | None = None


class ClaudeConversation:
    """One run's dialogue with claude."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._outbox = Outbox(seat)
        self._books = Books()
        #: texts that claude has not begun with, by the id of their message
        self._sent: dict[str, list[str]] = {}
        self._prompts = Prompts(seat, self._outbox, "AskUserQuestion", lambda _at, question: question)
        self._results: dict[str, None] = {}
        self._ready: tuple[str, str] | None = None
        self._running = False
        self._turn = Turn()

    # --- what the host calls

    @property
    def polite(self) -> bool:
        return True

    @property
    def finished(self) -> bool:
        return False

    def open(self) -> list[Fact]:
        """Claude says nothing by itself until it is given a text, but it answers this."""
        self._outbox.control("initialize")
        return []

    def read(self, line: bytes) -> list[Fact]:
        return typed(self, self._seat, line, _READERS)

    def overlong(self, head: bytes, size: int) -> list[Fact]:
        if head.startswith(_UNNEEDED):
            return []
        if head.startswith(_TYPED) and not head.startswith(_RESULT):
            return [too_long(self._seat, size)]
        # A result begins with something else than its type: unread, it still ends the turn.
        return [too_long(self._seat, size), *self._lost(), *self._end("error", "its result was too long to be read")]

    def hand(self, inputs: tuple[Input, ...], words: str) -> None:
        """Claude takes them into a turn that runs."""
        if inputs and not self._prompts.tell(inputs):
            self._sent[self._outbox.texts(inputs, words)] = [item.id for item in inputs]

    def interrupt(self) -> None:
        """What is queued goes too: claude would begin with it at once. One that it has not begun with is cancelled."""
        if self._running or self._sent:
            self._outbox.control("interrupt", cancel_queued=True)

    def answer(self, prompt: str, *, allow: bool | None, text: str = "") -> None:
        self._prompts.answer(prompt, allow=allow, text=text)

    def close(self) -> None:
        """At the end of its stdin claude would finish its turn first; cut, it still says what it used."""
        self.interrupt()

    def ended(self) -> list[Fact]:
        return self._lost() if self._running or self._books.open else []

    def outgoing(self) -> bytes:
        return self._outbox.take()

    # --- what claude says, a reader a type

    def _control_response(self, said: dict[str, object]) -> list[Fact]:
        response = claude_lines.member(said, "response")
        if self._ready is not None or response.get("request_id") != FIRST:
            return []
        return self._opened(self._seat.session, "")

    def _opened(self, session: str, model: str) -> list[Fact]:
        """Known again at each turn; told when it is new."""
        if self._ready == (session, model):
            return []
        self._ready = session, model
        return [Ready(self._seat.agent, self._seat.run, session=session, model=model, tells=True)]

    def _system(self, said: dict[str, object]) -> list[Fact]:
        match fields.words(said, "subtype"):
            case "init":
                opened = self._opened(fields.words(said, "session_id"), fields.words(said, "model"))
                return [*opened, *self._begin()]
            case "api_retry":
                return self._spoke(claude_lines.retry(said))
            case "permission_denied":
                return self._spoke(f"{said.get('tool_name')}: {fields.words(said, 'message')}")
            case "compact_boundary":
                return self._book(self._books.compacted()) + self._spoke("its conversation was compacted")
            case _:
                return []

    def _begin(self) -> list[Fact]:
        self._turn.over = None
        if self._running:
            return []
        self._running = True
        return [TurnStarted(self._seat.agent, self._seat.run)]

    def _lifecycle(self, said: dict[str, object]) -> list[Fact]:
        """What becomes of a text of ours, by the id of its message."""
        name = fields.words(said, "command_uuid")
        match fields.words(said, "state"):
            case "started":
                return self._read(name, begins=True)
            case "cancelled" if name in self._sent:
                self._turn.dropped += len(self._sent.pop(name))
                over = self._turn.over
                return [] if self._running and over is None else self._end(*(over or ("aborted", "")))
            case _:
                return []

    def _read(self, name: str, *, begins: bool = False) -> list[Fact]:
        texts = self._sent.pop(name, None)
        if texts is None:
            return []
        read = Read(self._seat.agent, self._seat.run, tuple(texts))
        return [read, *(self._begin() if begins else [])]

    def _user(self, said: dict[str, object]) -> list[Fact]:
        if said.get("isReplay") is True:
            return self._read(fields.words(said, "uuid"))
        return self._prompts.taken(claude_lines.member(said, "message"))

    def _assistant(self, said: dict[str, object]) -> list[Fact]:
        message = claude_lines.member(said, "message")
        aside = said.get("parent_tool_use_id") is not None
        facts = self._book(self._books.message(message, aside=aside))
        text = claude_lines.text(message)
        if message.get("model") == SYNTHETIC:  # why a call failed
            text = readable(text)
        if not aside:
            if message.get("model") != SYNTHETIC:
                self._turn.text = text or self._turn.text
            self._turn.failure = fields.words(said, "error") if said.get("error") is not None else ""
        return facts + self._spoke(claude_lines.uses(message) or text)

    def _rate_limit(self, said: dict[str, object]) -> list[Fact]:
        """A subscription's limit; one that lets the call pass is none."""
        info = claude_lines.member(said, "rate_limit_info")
        if info.get("status") == "rejected":
            self._turn.until = fields.number(info, "resetsAt", fields.EXACT)
            self._turn.failure = "billing_error"
        return []

    def _control_request(self, said: dict[str, object]) -> list[Fact]:
        request, prompt = claude_lines.member(said, "request"), fields.words(said, "request_id")
        if request.get("subtype") != "can_use_tool":
            return []
        tool = fields.words(request, "tool_name")
        if self._seat.tools is not None and not claude_lines.granted(tool, self._seat.tools):
            self._outbox.permit(prompt, request, NOT_GRANTED)
            return self._spoke(f"{tool} is not granted and was refused")
        return self._prompts.asked(prompt, request)

    def _control_cancel(self, said: dict[str, object]) -> list[Fact]:
        return self._prompts.withdrawn(fields.words(said, "request_id"))

    def _result(self, said: dict[str, object]) -> list[Fact]:
        name = fields.words(said, "uuid")
        if name in self._results:
            return []
        if name:
            self._results[name] = None
        while len(self._results) > REMEMBERED:
            del self._results[next(iter(self._results))]
        reason = said.get("terminal_reason")
        cut = isinstance(reason, str) and reason.startswith("aborted")
        reports = self._books.result(said)
        # Of an answer that was cut claude knows the input, and guesses at the output.
        facts: list[Fact] = []
        if reports or reason == "aborted_streaming":
            incomplete = int(reason == "aborted_streaming")
            facts = [Spent(self._seat.agent, self._seat.run, tuple(reports), incomplete)]
        final = fields.words(said, "result") if isinstance(said.get("result"), str) else ""
        if cut:
            return facts + self._end("aborted", "")
        if said.get("is_error") is not True:
            self._turn.text = final or self._turn.text
            return facts + self._end("ok", "")
        errors = said.get("errors")
        listed = "; ".join(str(one) for one in errors) if isinstance(errors, list) else ""
        error = fields.clip(final or listed or "the turn failed")
        return facts + self._limit(said, error) + self._end("error", readable(error))

    def _limit(self, said: dict[str, object], error: str) -> list[Fact]:
        sort = claude_lines.refused(said.get("api_error_status"), self._turn.failure, error)
        if sort is None:
            return []
        until = self._turn.until or claude_lines.until(error)
        return [Limited(self._seat.agent, self._seat.run, sort, until, readable(error))]

    def _end(self, outcome: Outcome, error: str) -> list[Fact]:
        """The turn is over, unless a text is on its way that begins the next one at once."""
        back = self._prompts.over()
        if self._sent:
            self._turn.over = outcome, error
            return back
        turn, self._turn, self._running = self._turn, Turn(), False
        if turn.dropped:
            error = error or f"{turn.dropped} queued texts were dropped unread"
        return [*back, TurnEnded(self._seat.agent, self._seat.run, outcome, text=turn.text, error=error)]

    def _lost(self) -> list[Fact]:
        """No result will tell of the calls of this turn."""
        return [Spent(self._seat.agent, self._seat.run, (), incomplete=max(1, self._books.close()))]

    def _book(self, reports: list[Report]) -> list[Fact]:
        return [Spent(self._seat.agent, self._seat.run, tuple(reports))] if reports else []

    def _spoke(self, text: str) -> list[Fact]:
        last = fields.last_line(text)
        return [Spoke(self._seat.agent, self._seat.run, last)] if last else []


_READERS: dict[str, Callable[[ClaudeConversation, dict[str, object]], list[Fact]]] = {
    "system": ClaudeConversation._system,
    "command_lifecycle": ClaudeConversation._lifecycle,
    "user": ClaudeConversation._user,
    "assistant": ClaudeConversation._assistant,
    "result": ClaudeConversation._result,
    "rate_limit_event": ClaudeConversation._rate_limit,
    "control_request": ClaudeConversation._control_request,
    "control_response": ClaudeConversation._control_response,
    "control_cancel_request": ClaudeConversation._control_cancel,
}
