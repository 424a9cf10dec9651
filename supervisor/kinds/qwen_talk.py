"""The dialogue with one qwen, stream-json both ways. It must give qwen one text at a time: what qwen queues itself an
interruption would not stop."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from supervisor.core import facts
from supervisor.core.facts import Fact, Input, Outcome
from supervisor.core.ledger import ZERO, Report, Usage
from supervisor.kinds import claude_lines, fields, qwen_lines
from supervisor.kinds.kind import Seat, too_long, typed
from supervisor.kinds.readable import readable
from supervisor.kinds.stream_json import FIRST, NOT_GRANTED, Outbox
from supervisor.kinds.stream_prompts import Prompts

_UNNEEDED = (b'{"type":"user"', b'{"type":"stream_event"', b'{"type":"control_response"')
_RESULT = b'{"type":"result"'
#: How long qwen waits for a person's answer before it takes it for a no, in seconds: the longest that it allows.
_PATIENCE = 600
_QUESTION = "ask_user_question"
_CANCELLED = "Operation cancelled."


class QwenConversation:
    """One run's dialogue with qwen."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._outbox = Outbox(seat)
        #: the texts of the next turn, which qwen has; and what waits for the turn's end here
        self._sent: list[str] = []
        self._held: list[tuple[tuple[Input, ...], str]] = []
        self._prompts = Prompts(seat, self._outbox, _QUESTION, lambda at, _question: str(at), _PATIENCE)
        self._results: set[str] = set()
        self._ready: tuple[str, str] | None = None
        self._running = self._cut = self._foreign = False
        #: a call is under way of which nothing was told yet
        self._calling = False
        self._text = self._dropped = self._window = ""
        #: the session's total at the last result, None where it is not known; and what calls told since
        self._total: Usage | None = None if seat.resume else ZERO
        self._told = ZERO
        #: how large the window is
        self._size: int | None = None

    # --- what the host calls

    @property
    def polite(self) -> bool:
        """An idle qwen leaves when its stdin ends, and stays at SIGTERM."""
        return True

    @property
    def finished(self) -> bool:
        return False

    def open(self) -> list[Fact]:
        """Without this request qwen passes over every interruption."""
        self._outbox.control("initialize", timeout={"canUseTool": _PATIENCE * 1000})
        return []

    def read(self, line: bytes) -> list[Fact]:
        return typed(self, self._seat, line, _READERS)

    def overlong(self, head: bytes, size: int) -> list[Fact]:
        if head.startswith(_UNNEEDED):
            return []
        ends = self._end("error", "its result was too long to be read") if head.startswith(_RESULT) else []
        return [too_long(self._seat, size), *ends]

    def hand(self, inputs: tuple[Input, ...], words: str) -> None:
        if not inputs or self._prompts.tell(inputs):
            return
        if self._running or self._sent:
            self._held.append((inputs, words))
        else:
            self._send(inputs, words)

    def interrupt(self) -> None:
        """What waits here goes too. Qwen passes over an interruption that comes before its turn: it is said again."""
        if not self._running and not self._sent:
            return
        dropped = sum(len(inputs) for inputs, _ in self._held)
        self._dropped = f"{dropped} queued texts were dropped unread" if dropped else self._dropped
        self._held.clear()
        self._cut = True
        self._outbox.control("interrupt")

    def answer(self, prompt: str, *, allow: bool | None, text: str = "") -> None:
        self._prompts.answer(prompt, allow=allow, text=text)

    def close(self) -> None:
        """At the end of its stdin qwen would finish its turn first."""
        self.interrupt()

    def ended(self) -> list[Fact]:
        lost = self._running and self._calling
        return [facts.Spent(self._seat.agent, self._seat.run, (), incomplete=1)] if lost else []

    def outgoing(self) -> bytes:
        return self._outbox.take()

    def _send(self, inputs: tuple[Input, ...], words: str) -> None:
        self._outbox.texts(inputs, words)
        self._sent += [item.id for item in inputs]

    # --- what qwen says, a reader a type

    def _control_response(self, said: dict[str, object]) -> list[Fact]:
        response = claude_lines.member(said, "response")
        name = response.get("request_id")
        if self._ready is None and name == FIRST:
            return self._opened(self._seat.session, "")
        if name == self._window and response.get("subtype") == "success":
            full = qwen_lines.context(claude_lines.member(response, "response"))
            self._size = full.window if full is not None else self._size
            return self._book([full] if full is not None else [])
        return []

    def _opened(self, session: str, model: str) -> list[Fact]:
        """Known again at each turn; told when it is new."""
        if self._ready == (session, model):
            return []
        self._ready = session, model
        return [facts.Ready(self._seat.agent, self._seat.run, session=session, model=model, tells=True)]

    def _system(self, said: dict[str, object]) -> list[Fact]:
        match fields.words(said, "subtype"):
            case "init":
                opened = self._opened(fields.words(said, "session_id"), fields.words(said, "model"))
                return [*opened, *self._begin()]
            case "task_notification":
                self._foreign = True  # the next turn is none of ours: something in the background has news
                return []
            case _:
                return []

    def _begin(self) -> list[Fact]:
        if self._cut:
            self._outbox.control("interrupt")
        self._calling = True
        foreign, self._foreign = self._foreign, False
        read: list[Fact] = []
        if self._sent and not foreign:
            read = [facts.Read(self._seat.agent, self._seat.run, tuple(self._sent))]
            self._sent.clear()
        if self._running:
            return read
        self._running = True
        return [*read, facts.TurnStarted(self._seat.agent, self._seat.run)]

    def _user(self, said: dict[str, object]) -> list[Fact]:
        message = claude_lines.member(said, "message")
        self._calling = not qwen_lines.cancelled(message)
        return self._prompts.taken(message)

    def _assistant(self, said: dict[str, object]) -> list[Fact]:
        message = claude_lines.member(said, "message")
        usage = qwen_lines.told(claude_lines.member(message, "usage"), calls=1)
        booked: list[Fact] = []
        if usage.tokens:
            self._calling, self._told = False, self._told + usage
            name, model = fields.words(message, "id"), fields.words(message, "model")
            # Of the same epoch as the totals, which hold it too.
            epoch = fields.words(said, "session_id")
            report = Report("call", usage, id=name, epoch=epoch, model=model)
            if said.get("parent_tool_use_id") is None:
                report = evolve(report, held=usage.tokens, window=self._size)
            booked = self._book([report])
        text = claude_lines.text(message)
        if qwen_lines.FAILED.match(text):
            self._calling, text = False, readable(text)
        elif said.get("parent_tool_use_id") is None:
            self._text = text or self._text
        return booked + self._spoke(claude_lines.uses(message) or text)

    def _result(self, said: dict[str, object]) -> list[Fact]:
        name = fields.words(said, "uuid")
        if name and name in self._results:
            return []
        self._results = {name}
        booked = self._whole(
            qwen_lines.told(claude_lines.member(said, "usage")), fields.words(said, "session_id"), name
        )
        if said.get("is_error") is not True:
            self._text = fields.words(said, "result", self._text) or self._text
            return booked + self._end("ok", "")
        error = fields.words(claude_lines.member(said, "error"), "message", "the turn failed")
        if error == _CANCELLED:
            lost: list[Fact] = (
                [facts.Spent(self._seat.agent, self._seat.run, (), incomplete=1)] if self._calling else []
            )
            return booked + lost + self._end("aborted", "")
        sort, error = qwen_lines.refused(error), readable(error)
        limit: list[Fact] = [facts.Limited(self._seat.agent, self._seat.run, sort, None, error)] if sort else []
        return booked + limit + self._end("error", error)

    def _whole(self, total: Usage, epoch: str, name: str) -> list[Fact]:
        """The session's total. What of it no call has told is a call at least, which qwen made for itself."""
        if not total.tokens:
            return []
        beside = total.beyond(self._total + self._told) if self._total is not None else ZERO
        self._total, self._told = total, ZERO
        hidden = [Report("call", Usage(calls=1), id=f"beside:{name}", epoch=epoch)] if beside.tokens else []
        return self._book([*hidden, Report("total", total, epoch=epoch)])

    def _control_request(self, said: dict[str, object]) -> list[Fact]:
        request, prompt = claude_lines.member(said, "request"), fields.words(said, "request_id")
        if request.get("subtype") != "can_use_tool":
            return []
        tool, rights = fields.words(request, "tool_name"), self._seat.tools
        allowed = qwen_lines.granted(tool, rights) if rights is not None else True
        if rights is None or (allowed and tool == _QUESTION):
            return self._prompts.asked(prompt, request)
        self._outbox.permit(prompt, request, "" if allowed else NOT_GRANTED)
        return [] if allowed else self._spoke(f"{tool} is not granted and was refused")

    def _control_cancel(self, said: dict[str, object]) -> list[Fact]:
        return self._prompts.withdrawn(fields.words(said, "request_id"))

    def _end(self, outcome: Outcome, error: str) -> list[Fact]:
        """The turn is over, unless a text waits that begins the next one at once."""
        self._calling = False
        back = self._prompts.over()
        if not self._sent and self._held:
            self._send(*self._held.pop(0))
        if self._sent:
            return back
        if self._running:
            self._window = self._outbox.control("get_context_usage")
        text, error = self._text, error or self._dropped
        self._running = self._cut = False
        self._text = self._dropped = ""
        return [*back, facts.TurnEnded(self._seat.agent, self._seat.run, outcome, text=text, error=error)]

    def _book(self, reports: list[Report]) -> list[Fact]:
        return [facts.Spent(self._seat.agent, self._seat.run, tuple(reports))] if reports else []

    def _spoke(self, text: str) -> list[Fact]:
        last = fields.last_line(text)
        return [facts.Spoke(self._seat.agent, self._seat.run, last)] if last else []


_READERS: dict[str, Callable[[QwenConversation, dict[str, object]], list[Fact]]] = {
    "system": QwenConversation._system,
    "user": QwenConversation._user,
    "assistant": QwenConversation._assistant,
    "result": QwenConversation._result,
    "control_request": QwenConversation._control_request,
    "control_response": QwenConversation._control_response,
    "control_cancel_request": QwenConversation._control_cancel,
}
