"""One run's dialogue with gemini: its task on stdin, its stream of JSON lines on stdout. What it used stands in its
last line alone: a process that is ended before takes that number with it, and how many calls those were is said."""

from __future__ import annotations

from collections.abc import Callable

from supervisor.core.facts import Fact
from supervisor.kinds import fields, gemini_lines
from supervisor.kinds.kind import Seat, too_long, typed
from supervisor.kinds.once import OnceConversation
from supervisor.kinds.readable import readable

#: Of lines that are too long, only these would be missed.
_NEEDED = (b'{"type":"result"', b'{"type":"message"')
#: A warning of gemini's after which it ends its task: it is told as done, and the call that was cut by nothing.
_LOOP = "Loop detected"
_EMPTY = "gemini ended its task with an error and gave no reason"


class GeminiConversation(OnceConversation):
    """One task of gemini's."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._tools: set[str] = set()
        #: model calls that began, and of those the ones that were answered
        self._calls = self._answered = 0
        self._looped = False
        #: the names of a conversation that gemini has not kept yet
        self._fresh = ("", "")

    def read(self, line: bytes) -> list[Fact]:
        return typed(self, self._seat, line, _READERS)

    def overlong(self, head: bytes, size: int) -> list[Fact]:
        """What was said to it, and what its tools gave back, nobody needs."""
        return [too_long(self._seat, size)] if head.startswith(_NEEDED) and not _user(head) else []

    def ended(self) -> list[Fact]:
        """A turn that is still open never came to its result."""
        if not self._turn:
            return []
        lost, self._calls = self._calls, 0
        return [*self._spent((), lost), *(self._aborted() if self._cut else [])]

    def _first(self, words: str) -> list[str]:
        """gemini takes nothing beside its own system prompt: one could only be put in its place."""
        return [part for part in (self._seat.instructions.strip(), words) if part] if words else []

    # --- what gemini says, a reader a type

    def _init(self, said: dict[str, object]) -> list[Fact]:
        """stdin was read to its end before: it has begun. It keeps no conversation whose first call fails."""
        self._fresh = fields.words(said, "session_id"), fields.words(said, "model")
        known = self._kept() if self._session else []
        if not self._turn:
            self._calls, self._answered = 1, 0
        return [*known, *self._begin()]

    def _kept(self) -> list[Fact]:
        return self._known(*self._fresh)

    def _message(self, said: dict[str, object]) -> list[Fact]:
        if fields.words(said, "role") != "assistant":
            return []
        self._answered = self._calls
        content = fields.words(said, "content")
        self._text = fields.clip(self._text + content) if said.get("delta") is True else content
        return [*self._kept(), *self._spoke(self._text)]

    def _tool_use(self, said: dict[str, object]) -> list[Fact]:
        self._answered = self._calls
        self._tools.add(fields.words(said, "tool_id"))
        self._text = ""
        shown = gemini_lines.shown(fields.words(said, "tool_name"), said.get("parameters"))
        return [*self._kept(), *self._spoke(shown)]

    def _tool_result(self, said: dict[str, object]) -> list[Fact]:
        """When the last of them is back, the model is asked again."""
        tool = fields.words(said, "tool_id")
        if tool in self._tools:
            self._tools.remove(tool)
            self._calls += not self._tools
        return []

    def _failed(self, said: dict[str, object]) -> list[Fact]:
        message = fields.words(said, "message")
        looped = message.startswith(_LOOP)
        self._looped = self._looped or looped
        if looped or fields.words(said, "severity", "error") == "error":
            self._error = message
        return self._spoke(readable(message))

    def _result(self, said: dict[str, object]) -> list[Fact]:
        stats = fields.member(said, "stats")
        name = f"{self._fresh[0]}:{fields.words(said, 'timestamp')}"
        lost, self._looped = int(self._looped), False
        self._answered -= lost
        spent = self._spent(gemini_lines.reports(stats, name, self._answered), lost)
        if not self._turn:  # the same line once more
            return spent
        told = said.get("error")
        failed = gemini_lines.failure(fields.words(told, "message") if isinstance(told, dict) else self._error)
        self._error = failed.text
        if fields.words(said, "status") != "success":
            self._error = self._error or _EMPTY
        self._calls = 0
        return [*spent, *self._spoke(readable(self._error)), *self._end(failed.status)]


def _user(head: bytes) -> bool:
    return b'"role":"user"' in head[:200]


_READERS: dict[str, Callable[[GeminiConversation, dict[str, object]], list[Fact]]] = {
    "init": GeminiConversation._init,
    "message": GeminiConversation._message,
    "tool_use": GeminiConversation._tool_use,
    "tool_result": GeminiConversation._tool_result,
    "error": GeminiConversation._failed,
    "result": GeminiConversation._result,
}
