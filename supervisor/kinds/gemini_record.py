"""Reads what a gemini printed once, in any of its modes, to the same books as a live run: its stream of JSON lines, its
one JSON object over many lines, and the Agent Client Protocol."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from supervisor.core.facts import Fact
from supervisor.core.ledger import Report, Usage
from supervisor.kinds import acp, fields, gemini_lines
from supervisor.kinds.fields import LineError
from supervisor.kinds.gemini_talk import GeminiConversation
from supervisor.kinds.kind import LINE_LIMIT, Seat, garbled


class GeminiRecord:
    """A reader that takes each line as what it is."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._stream = _Stream(seat)
        self._acp = _Acp(seat)
        self._object: list[bytes] = []
        self._size = 0

    def read(self, line: bytes) -> list[Fact]:
        bare = line.rstrip()
        inside = self._object and (bare == b"}" or line[:1].isspace())
        if inside or bare == b"{":
            return self._gather(bare)
        if bare == b"}":
            return []
        return self._acp.read(line) if line.startswith(acp.MARK) else self._stream.read(line)

    def overlong(self, head: bytes, size: int) -> list[Fact]:
        return [] if head.startswith(acp.MARK) else self._stream.overlong(head, size)

    def ended(self) -> list[Fact]:
        torn = self._stream.torn(len(self._object), self._size) if self._object else []
        return [*torn, *self._stream.ended(), *self._acp.ended()]

    def _gather(self, line: bytes) -> list[Fact]:
        """The object of `-o json`, whose lines are indented and whose last one is a lone bracket. No line of it stands
        twice in a row."""
        if self._object and line == self._object[-1]:
            return []
        self._object.append(line)
        self._size += len(line) + 1
        if line != b"}" and self._size <= LINE_LIMIT:
            return []
        whole, self._object, self._size = b"\n".join(self._object), [], 0
        try:
            return self._stream.whole(fields.decode(whole))
        except LineError as error:
            return [garbled(self._seat, len(whole), str(error))]


class _Stream(GeminiConversation):
    """A task of gemini's, in lines or in one object."""

    def torn(self, lines: int, size: int) -> list[Fact]:
        """An object without its end: of the task that it tells of nothing is known but that it began. A lone bracket
        may be the beginning of any line."""
        return [garbled(self._seat, size, "an object without its end"), *(self._begin() if lines > 1 else ())]

    def whole(self, said: Mapping[str, object]) -> list[Fact]:
        """The object of a task that is over."""
        session, told, failed = fields.words(said, "session_id"), said.get("stats"), said.get("error")
        models = fields.member(told, "models") if isinstance(told, dict) else {}
        used = [_used(name, fields.member(models, name), session) for name in models]
        begun = [*self._known(session, self._model), *self._begin()]
        failure = gemini_lines.failure(fields.words(failed, "message") if isinstance(failed, dict) else "")
        self._text, self._error = fields.words(said, "response"), failure.text
        spent = self._spent(tuple(report for report in used if report.usage.tokens))
        return [*begun, *spent, *self._end(failure.status)]


def _used(name: str, told: Mapping[str, object], session: str) -> Report:
    tokens, asked = fields.member(told, "tokens"), fields.member(told, "api")
    thoughts = fields.whole(tokens, "thoughts")
    usage = Usage(
        input=fields.whole(tokens, "input"),
        cache_read=fields.whole(tokens, "cached"),
        output=fields.whole(tokens, "candidates") + thoughts,
        reasoning=thoughts,
        calls=max(0, fields.whole(asked, "totalRequests") - fields.whole(asked, "totalErrors")),
    )
    return Report("call", usage, id=fields.clip(f"{session}:{name}", fields.LAST), model=fields.clip(name, fields.LAST))


class _Acp(acp.AcpRecord):
    """gemini's numbers have neither cached input apart nor thoughts: what they come to is less than the bill."""

    def _reports(self, result: Mapping[str, object], name: str) -> tuple[Report, ...]:
        meta = result.get("_meta")
        quota = meta.get("quota") if isinstance(meta, dict) else None
        told = quota.get("model_usage") if isinstance(quota, dict) else None
        found = [_quota(each, name) for each in fields.listed(told)]
        if found and self._turn:
            found[0] = evolve(found[0], usage=evolve(found[0].usage, calls=self._calls))
        return tuple(found)

    def _lost(self, reports: tuple[Report, ...]) -> int:
        return self._calls


def _quota(told: Mapping[str, object], name: str) -> Report:
    count, model = fields.member(told, "token_count"), fields.words(told, "model", most=fields.LAST)
    usage = Usage(input=fields.whole(count, "input_tokens"), output=fields.whole(count, "output_tokens"))
    return Report("call", usage, id=fields.clip(f"{name}:{model}", fields.LAST), model=model)
