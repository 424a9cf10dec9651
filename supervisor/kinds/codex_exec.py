"""Reads what a codex printed once: an app-server as it would live, and `codex exec --json`.

The latter tells a thread's total at the end of each turn and nothing in between: no call of it can be told apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from supervisor.core.facts import Fact, Limited, Ready, Spent, Spoke, TurnEnded, TurnStarted
from supervisor.core.ledger import Report, Usage
from supervisor.kinds import codex_lines, fields
from supervisor.kinds.codex_talk import CodexConversation
from supervisor.kinds.fields import LineError
from supervisor.kinds.kind import Seat, garbled

#: Items that codex writes by itself.
_NOTES = frozenset({"error", "todo_list"})
_WORDS = frozenset({"agent_message", "reasoning"})


class ExecReader:
    """One recording. Model calls are not told: their number is taken from the items, a new one after each tool."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._thread = self._text = ""
        self._running = self._told = False
        self._calls = 0
        self._seen: set[str] = set()

    def take(self, said: dict[str, object]) -> list[Fact]:
        """One line."""
        reader = _READERS.get(fields.words(said, "type"))
        return reader(self, said) if reader else []

    def ended(self) -> list[Fact]:
        """The recording is over; a turn that did not end has told no usage."""
        return self._missing(max(1, self._calls)) if self._running else []

    def _missing(self, calls: int) -> list[Fact]:
        self._running = False
        return [Spent(self._seat.agent, self._seat.run, (), incomplete=calls)] if calls else []

    def _thread_started(self, said: Mapping[str, object]) -> list[Fact]:
        thread = fields.words(said, "thread_id")
        if thread == self._thread:
            return []
        self._thread = thread
        return [Ready(self._seat.agent, self._seat.run, session=self._thread)]

    def _turn_started(self, _said: Mapping[str, object]) -> list[Fact]:
        if self._running:
            return []
        self._running, self._calls, self._told, self._text = True, 0, False, ""
        self._seen = set()
        return [TurnStarted(self._seat.agent, self._seat.run)]

    def _item(self, said: Mapping[str, object]) -> list[Fact]:
        item = fields.member(said, "item")
        kind, name = fields.words(item, "type"), fields.words(item, "id")
        if kind in _NOTES:
            return []
        # What a tool was told goes into another call; one that was running beside it does not.
        if name not in self._seen and (not self._calls or self._told):
            self._calls, self._told = self._calls + 1, False
        self._seen.add(name)
        if fields.words(said, "type") != "item.completed":
            return []
        self._told = self._told or kind not in _WORDS
        if kind != "agent_message":
            return []
        self._text = codex_lines.text(item, "text")
        last = fields.last_line(self._text)
        return [Spoke(self._seat.agent, self._seat.run, last)] if last else []

    def _turn_completed(self, said: Mapping[str, object]) -> list[Fact]:
        if not self._running:
            return []
        total = codex_lines.executed(fields.member(said, "usage"))
        calls = Report("call", Usage(calls=max(1, self._calls)), id=f"{self._thread}:{total.tokens}")
        self._running = False
        seat = self._seat
        spent = Spent(seat.agent, seat.run, (Report("total", total, epoch=self._thread), calls))
        return [spent, TurnEnded(seat.agent, seat.run, "ok", text=self._text)]

    def _turn_failed(self, said: Mapping[str, object]) -> list[Fact]:
        if not self._running:
            return []
        told = fields.member(said, "error")
        error, sort = codex_lines.error(told), codex_lines.limit(told)
        seat = self._seat
        limits: list[Fact] = [Limited(seat.agent, seat.run, sort, None, error)] if sort is not None else []
        return [*self._missing(self._calls), *limits, TurnEnded(seat.agent, seat.run, "error", error=error)]


_READERS: dict[str, Callable[[ExecReader, dict[str, object]], list[Fact]]] = {
    "thread.started": ExecReader._thread_started,
    "turn.started": ExecReader._turn_started,
    "item.started": ExecReader._item,
    "item.completed": ExecReader._item,
    "turn.completed": ExecReader._turn_completed,
    "turn.failed": ExecReader._turn_failed,
}


class RecordedReader:
    """Tells by each line which of the two it was."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._server = CodexConversation(seat, recorded=True)
        self._exec = ExecReader(seat)

    def read(self, line: bytes) -> list[Fact]:
        if not line.startswith(b'{"type":'):
            return self._server.read(line)
        try:
            return self._exec.take(fields.decode(line))
        except LineError as error:
            return [garbled(self._seat, len(line), str(error))]

    def overlong(self, head: bytes, size: int) -> list[Fact]:
        """Of an exec's lines only the items can be long, and they tell no usage."""
        return [] if head.startswith(b'{"type":"item.') else self._server.overlong(head, size)

    def ended(self) -> list[Fact]:
        return [*self._server.ended(), *self._exec.ended()]
