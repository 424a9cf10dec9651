"""Reads what an agent printed once in the Agent Client Protocol: JSON-RPC answers, and updates of a session. What was
said to it is not among that: a turn begins with the first that it says, and model calls are counted by what is seen of
them. It never speaks to a living agent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from supervisor.core.facts import Fact, Ready
from supervisor.core.ledger import Report
from supervisor.kinds import fields
from supervisor.kinds.fields import LineError
from supervisor.kinds.kind import Seat, garbled
from supervisor.kinds.once import OnceConversation

#: How each line of the protocol begins.
MARK = b'{"jsonrpc"'


class AcpRecord(OnceConversation, ABC):
    """A recorded stream. What a program tells of its usage differs: that is for those that follow this one."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._tools: set[str] = set()
        self._message = ""
        #: model calls of the turn that began; whether one of them has said nothing yet
        self._calls = 0
        self._silent = False

    def read(self, line: bytes) -> list[Fact]:
        try:
            said = fields.decode(line)
            if said.get("method") == "session/update":
                return self._update(said)
            return self._answer(said) if "id" in said and "method" not in said else []
        except LineError as error:
            return [garbled(self._seat, len(line), str(error))]

    def overlong(self, head: bytes, size: int) -> list[Fact]:
        """The answers, which are all that is booked of, are short."""
        return []

    def ended(self) -> list[Fact]:
        return self._spent((), self._calls) if self._turn else []

    # --- what one program does not share with another

    @abstractmethod
    def _reports(self, result: Mapping[str, object], name: str) -> tuple[Report, ...]:
        """What the answer to a prompt says of usage; `name` is the prompt's."""

    @abstractmethod
    def _lost(self, reports: tuple[Report, ...]) -> int:
        """Of how many calls no whole report came."""

    def _used(self, told: Mapping[str, object]) -> list[Fact]:
        """An update of usage, where a program has such."""
        return []

    # --- lines

    def _update(self, said: Mapping[str, object]) -> list[Fact]:
        params = said.get("params")
        told = params.get("update") if isinstance(params, dict) else None
        if not isinstance(told, dict):
            raise LineError("no update of a session")
        kind, tool = fields.words(told, "sessionUpdate"), fields.words(told, "toolCallId")
        if kind == "usage_update":
            return self._used(told)
        if kind not in {"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"}:
            return []
        begun = self._start()
        if kind == "tool_call":
            self._tools.add(tool)
            self._text, self._silent = "", False
        elif kind == "tool_call_update":
            if told.get("status") in ("completed", "failed") and tool in self._tools:
                self._tools.remove(tool)
                self._again(when=not self._tools)
        else:
            self._word(told, shown=kind == "agent_message_chunk")
        return begun

    def _start(self) -> list[Fact]:
        if not self._turn:
            self._tools.clear()
            self._calls, self._silent = 1, True
        return self._begin()

    def _again(self, *, when: bool) -> None:
        """The model is asked once more."""
        self._calls += when
        self._silent = when

    def _word(self, told: Mapping[str, object], *, shown: bool) -> None:
        content, message = told.get("content"), fields.words(told, "messageId")
        if message != self._message:
            # A message that nothing led to: what was said to it meanwhile was answered in the same turn.
            self._again(when=not self._silent)
            self._text, self._message = "", message
        self._silent = False
        if shown and isinstance(content, dict):
            self._text = fields.clip(self._text + fields.words(content, "text"))

    def _answer(self, said: Mapping[str, object]) -> list[Fact]:
        result, error = said.get("result"), said.get("error")
        if isinstance(result, dict) and "sessionId" in result:
            self._session = fields.words(result, "sessionId")
            return [Ready(self._seat.agent, self._seat.run, self._session)]
        if isinstance(result, dict) and "stopReason" in result:
            return self._over(result, f"{self._session}:{said.get('id')}")
        if isinstance(error, dict) and self._turn:
            lost = self._calls - 1  # the one that failed has no numbers to lose
            self._error = fields.words(error, "message")
            return [*self._spent((), lost), *self._end()]
        return []

    def _over(self, result: Mapping[str, object], name: str) -> list[Fact]:
        reports = self._reports(result, name)
        if not self._turn:  # the same line once more, or of a prompt that was answered with the one before
            return self._spent(reports)
        spent = self._spent(reports, self._lost(reports))
        return [*spent, *(self._aborted() if result.get("stopReason") == "cancelled" else self._end())]
