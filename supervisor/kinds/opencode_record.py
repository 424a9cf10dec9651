"""Reads what an opencode printed once, in any of its modes, to the same books as a live run: `run --format json`, the
events of its server, and the Agent Client Protocol."""

from __future__ import annotations

from collections.abc import Mapping

from supervisor.core.facts import Fact
from supervisor.core.ledger import Report, Usage
from supervisor.kinds import acp, fields
from supervisor.kinds.fields import LineError
from supervisor.kinds.kind import Seat, garbled
from supervisor.kinds.opencode_talk import OpencodeConversation

#: How a line of server-sent events begins.
_EVENT = b"data: "


class OpencodeRecord:
    """A reader that takes each line as what it is."""

    def __init__(self, seat: Seat) -> None:
        self._run = OpencodeConversation(seat)
        self._served = _Served(seat)
        self._acp = _Acp(seat)

    def read(self, line: bytes) -> list[Fact]:
        if line.startswith(_EVENT):
            return self._served.read(line.removeprefix(_EVENT))
        return self._acp.read(line) if line.startswith(acp.MARK) else self._run.read(line)

    def overlong(self, head: bytes, size: int) -> list[Fact]:
        return [] if head.startswith((_EVENT, acp.MARK)) else self._run.overlong(head, size)

    def ended(self) -> list[Fact]:
        return [*self._run.ended(), *self._served.ended(), *self._acp.ended()]


class _Served(OpencodeConversation):
    """Events of a server: one task after the other in one stream, each over when its session is idle."""

    def read(self, line: bytes) -> list[Fact]:
        try:
            said = fields.decode(line)
            facts = self.event(said)
            self._hear(fields.member(said, "properties"))
            return [*facts, *self.ended()] if said.get("type") == "session.idle" and self._turn else facts
        except LineError as error:
            return [garbled(self._seat, len(line), str(error))]

    def _hear(self, told: Mapping[str, object]) -> None:
        part = told.get("part")
        if isinstance(part, dict) and part.get("type") == "text" and part.get("messageID") in self._models:
            self._text = fields.words(part, "text")

    def _aborted(self) -> list[Fact]:
        self._cut = False
        return super()._aborted()


class _Acp(acp.AcpRecord):
    """A prompt's answer has the numbers of its last call alone, and so have the answers of two that ran as one; what a
    session cost so far is told in full."""

    def _reports(self, result: Mapping[str, object], name: str) -> tuple[Report, ...]:
        told = result.get("usage")
        if not isinstance(told, dict):
            return ()
        reasoning = fields.whole(told, "thoughtTokens")
        usage = Usage(
            input=fields.whole(told, "inputTokens"),
            cache_read=fields.whole(told, "cachedReadTokens"),
            cache_write=fields.whole(told, "cachedWriteTokens"),
            output=fields.whole(told, "outputTokens") + reasoning,
            reasoning=reasoning,
            calls=1,
        )
        return (Report("call", usage, id=fields.clip(f"{self._session}:{self._message}", fields.LAST)),)

    def _lost(self, reports: tuple[Report, ...]) -> int:
        return self._calls - len(reports)

    def _used(self, told: Mapping[str, object]) -> list[Fact]:
        cost = told.get("cost")
        spent = Usage(cost=fields.dollars(cost, "amount") if isinstance(cost, dict) else 0)
        size, used = fields.whole(told, "size"), fields.whole(told, "used")
        full = min(100.0, 100 * used / size) if size else None
        return self._spent((Report("total", spent, epoch=self._session, context=full, window=size or None, held=used),))
