"""One run's dialogue with opencode: its task on stdin, JSON lines on stdout. There is no last line: that a task is over
is known at the end of stdout. Lines of our own plugin stand among them, in the shape of opencode's events."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import evolve

from supervisor.core.facts import Fact
from supervisor.kinds import fields, opencode_lines
from supervisor.kinds.fields import LineError
from supervisor.kinds.kind import Seat, garbled, too_long
from supervisor.kinds.once import OnceConversation
from supervisor.kinds.readable import readable

_ABORTED = "MessageAbortedError"
#: Why a step ended after which opencode asks the model again.
_GOES_ON = ("tool-calls", "unknown")
#: Of so many models it is known how large their windows are.
WINDOWS = 64
#: Lines that nobody needs when they are too long.
_UNNEEDED = (b'{"type":"tool_use"', b'{"type":"fleet"', b'{"type":"reasoning"')


class OpencodeConversation(OnceConversation):
    """One task of opencode's."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        #: model calls under way, by the message that they give
        self._open: set[str] = set()
        self._finished_calls: set[str] = set()
        self._models: dict[str, str] = {}
        #: how large models' windows are, as our plugin tells it
        self._windows: dict[str, int] = {}
        #: sessions of subagents of which a line was seen, and those that are known to have been
        self._heard: set[str] = set()
        self._children: set[str] = set()
        self._message = ""
        self._status = 0
        #: the task's model calls came to an end; the event that is read is of its own session
        self._done = self._main = False

    def read(self, line: bytes) -> list[Fact]:
        try:
            said = fields.decode(line)
            kind = fields.words(said, "type")
            if kind == "fleet":
                return self.event(fields.member(said, "event"))
            reader = _READERS.get(kind)
            if reader is None:
                return []
            return [*self._of(fields.words(said, "sessionID")), *reader(self, said)]
        except LineError as error:
            return [garbled(self._seat, len(line), str(error))]

    def overlong(self, head: bytes, size: int) -> list[Fact]:
        """What tools gave back is told in full, and not needed."""
        return [] if head.startswith(_UNNEEDED) else [too_long(self._seat, size)]

    def ended(self) -> list[Fact]:
        """The end of a task, if there was one; what was under way has told no numbers."""
        lost = len(self._open) + len(self._children - self._heard)
        self._open.clear()
        self._children.clear()
        spent = self._spent((), lost)
        if not self._turn:
            return spent
        if self._error or (self._done and not self._cut):
            return [*spent, *self._end(self._status)]
        return [*spent, *(self._aborted() if self._cut else [])]

    # --- the lines of `opencode run`

    def _of(self, session: str) -> list[Fact]:
        """The session of the task: whichever is heard of first."""
        return self._known(session, self._model) if not self._session else []

    def _step_start(self, said: dict[str, object]) -> list[Fact]:
        return self._started(fields.member(said, "part"))

    def _started(self, part: Mapping[str, object]) -> list[Fact]:
        message = fields.words(part, "messageID")
        if message not in self._finished_calls:
            self._open.add(message)
        self._done = False
        return self._begin()

    def _step_finish(self, said: dict[str, object]) -> list[Fact]:
        part = fields.member(said, "part")
        return self._stepped(part, main=True)

    def _stepped(self, part: Mapping[str, object], *, main: bool) -> list[Fact]:
        message, name = fields.words(part, "messageID"), fields.words(part, "id")
        again = name in self._finished_calls
        self._finished_calls |= {name, message}
        self._open.discard(message)
        if main and part.get("reason") not in _GOES_ON:
            self._done, self._error = True, ""
        model = self._models.get(message, self._seat.spec.model)
        report = opencode_lines.step(part, model)
        if report is not None and main:
            report = evolve(report, held=report.usage.tokens, window=self._windows.get(model))
        return self._spent((report,)) if report is not None else self._spent((), 0 if again else 1)

    def _said(self, said: dict[str, object]) -> list[Fact]:
        part = fields.member(said, "part")
        message, words = fields.words(part, "messageID"), fields.words(part, "text").strip()
        self._text = f"{self._text}\n\n{words}" if message == self._message and self._text else words
        self._text, self._message = fields.clip(self._text), message
        return self._spoke(words)

    def _tool_use(self, said: dict[str, object]) -> list[Fact]:
        part = fields.member(said, "part")
        if child := opencode_lines.child(part):
            self._children.add(child)
        return self._spoke(opencode_lines.shown(part))

    def _failed(self, said: dict[str, object]) -> list[Fact]:
        return self._error_of(fields.member(said, "error"))

    def _error_of(self, error: Mapping[str, object]) -> list[Fact]:
        failed = opencode_lines.failure(error)
        begun = self._begin()
        if failed.name == _ABORTED:
            self._cut = True
        else:
            self._error, self._status = failed.text, failed.status
            self._open.clear()  # a call that failed has no numbers to lose
        return [*begun, *self._spoke(readable(failed.text))]

    # --- opencode's events

    def event(self, said: Mapping[str, object]) -> list[Fact]:
        """One event of opencode's own, as its plugins and its server's readers are told it."""
        told = fields.member(said, "properties")
        reader = _EVENTS.get(fields.words(said, "type"))
        if reader is None:
            return []
        session = told.get("sessionID")
        known = self._of(session) if isinstance(session, str) else []
        if isinstance(session, str) and session != self._session:
            self._heard.add(session)
        self._main = session == self._session
        return [*known, *reader(self, told)]

    def _updated(self, told: Mapping[str, object]) -> list[Fact]:
        """A message: of the person's, or one that a model call gives."""
        info = fields.member(told, "info")
        if info.get("role") != "assistant":
            return self._begin() if self._main else []
        message = fields.words(info, "id")
        names = tuple(fields.words(info, key) for key in ("providerID", "modelID") if key in info)
        self._models[message] = "/".join(names)
        failed = info.get("error")
        if isinstance(failed, dict):
            if failed.get("name") != _ABORTED:
                self._open.discard(message)
        elif message not in self._finished_calls and "finish" not in info:
            self._open.add(message)
        return self._known(self._session, self._models[message]) if self._main else []

    def _sized(self, told: Mapping[str, object]) -> list[Fact]:
        """A model, before it is asked."""
        size = fields.whole(told, "window")
        if size and len(self._windows) < WINDOWS:
            self._windows[f"{fields.words(told, 'providerID')}/{fields.words(told, 'modelID')}"] = size
        return []

    def _part(self, told: Mapping[str, object]) -> list[Fact]:
        part = fields.member(told, "part")
        if part.get("type") == "step-start" and self._main:
            return self._started(part)
        if part.get("type") == "step-finish":
            return self._stepped(part, main=self._main)
        return []

    def _status_of(self, told: Mapping[str, object]) -> list[Fact]:
        status = fields.member(told, "status")
        if status.get("type") != "retry":
            return []
        return self._spoke(f"retry {fields.whole(status, 'attempt')}: {readable(fields.words(status, 'message'))}")

    def _idle(self, _told: Mapping[str, object]) -> list[Fact]:
        self._done = self._done or (self._main and self._turn)
        return []

    def _broken(self, told: Mapping[str, object]) -> list[Fact]:
        error = told.get("error")
        return self._error_of(error) if self._main and isinstance(error, dict) else []


_READERS: dict[str, Callable[[OpencodeConversation, dict[str, object]], list[Fact]]] = {
    "step_start": OpencodeConversation._step_start,
    "step_finish": OpencodeConversation._step_finish,
    "text": OpencodeConversation._said,
    "tool_use": OpencodeConversation._tool_use,
    "error": OpencodeConversation._failed,
}
_EVENTS: dict[str, Callable[[OpencodeConversation, Mapping[str, object]], list[Fact]]] = {
    "session.created": lambda _talk, _told: [],
    "fleet.model": OpencodeConversation._sized,
    "message.updated": OpencodeConversation._updated,
    "message.part.updated": OpencodeConversation._part,
    "session.status": OpencodeConversation._status_of,
    "session.idle": OpencodeConversation._idle,
    "session.error": OpencodeConversation._broken,
}
