"""What a program that speaks stream-json asks its person: tools that it wants to use, which are approved or denied, and
questions, which a text answers. It must give each one answer, and say that a text was begun with only when the program
has taken it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from supervisor.core.facts import Blocked, Fact, Input, Read, Withdrawn
from supervisor.kinds import claude_lines, fields
from supervisor.kinds.kind import Seat
from supervisor.kinds.stream_json import DENIED, UNANSWERED, Outbox


class Prompts:
    """Those of one run that are open, by the id of their request. `tool` is the program's own for asking; `key` names
    the answer to the question at a place; the program waits `lasts` seconds for an answer, for ever if it is 0."""

    def __init__(
        self, seat: Seat, outbox: Outbox, tool: str, key: Callable[[int, str], str], lasts: float = 0.0
    ) -> None:
        self._seat = seat
        self._outbox = outbox
        self._tool = tool
        self._key = key
        self._lasts = lasts
        self._tools: dict[str, Mapping[str, object]] = {}
        self._questions: dict[str, Mapping[str, object]] = {}
        #: texts that answered a question, by the id of the call that asked it
        self._told: dict[str, tuple[str, ...]] = {}

    def asked(self, prompt: str, request: Mapping[str, object]) -> list[Fact]:
        """The person is asked. A question that cannot be read is approved or denied as any tool."""
        asks = fields.words(request, "tool_name") == self._tool and bool(_questions(request))
        (self._questions if asks else self._tools)[prompt] = request
        named, seat = "" if asks else prompt, self._seat
        return [Blocked(seat.agent, seat.run, "person", wanted(request), named, self._lasts)]

    def answer(self, prompt: str, *, allow: bool | None, text: str) -> None:
        """A tool is approved or denied, once; so is a question that nobody has answered in time."""
        if allow is None:
            known = ((name, each) for name, each in self._questions.items() if not prompt and wanted(each) == text)
            prompt, request = next(known, (prompt, self._tools.get(prompt)))
            text = UNANSWERED
        else:
            request = self._tools.get(prompt)
        if request is not None:
            self._tools.pop(prompt, None)
            self._questions.pop(prompt, None)
            self._outbox.permit(prompt, request, "" if allow else text or DENIED)

    def tell(self, inputs: tuple[Input, ...]) -> bool:
        """Whether these texts answer a question: then they answer all that the oldest request asks, alike."""
        if not self._questions or not inputs:
            return False
        prompt = next(iter(self._questions))
        request = self._questions.pop(prompt)
        self._told[fields.words(request, "tool_use_id")] = tuple(item.id for item in inputs)
        text = "\n\n".join(item.text for item in inputs)
        answers = {self._key(at, question): text for at, question in enumerate(_questions(request))}
        self._outbox.allow(prompt, {**claude_lines.member(request, "input"), "answers": answers})
        return True

    def taken(self, message: Mapping[str, object]) -> list[Fact]:
        """The program says which calls have ended: those that asked have their answer."""
        calls = [str(each.get("tool_use_id")) for each in fields.listed(message.get("content"))] if self._told else []
        return self._read([name for call in calls for name in self._told.pop(call, ())])

    def withdrawn(self, prompt: str) -> list[Fact]:
        """The program takes one back."""
        if self._questions.pop(prompt, None) is not None:
            return [Withdrawn(self._seat.agent, self._seat.run, "")]
        known = self._tools.pop(prompt, None) is not None
        return [Withdrawn(self._seat.agent, self._seat.run, prompt)] if known else []

    def over(self) -> list[Fact]:
        """The turn is over, and with it what it asked, whether the program says so of each or not."""
        back = [fact for prompt in (*self._tools, *self._questions) for fact in self.withdrawn(prompt)]
        told, self._told = self._told, {}
        return [*self._read([name for texts in told.values() for name in texts]), *back]

    def _read(self, names: list[str]) -> list[Fact]:
        return [Read(self._seat.agent, self._seat.run, tuple(names))] if names else []


def wanted(request: Mapping[str, object]) -> str:
    """What a person is asked when the program wants to use a tool."""
    if _questions(request):
        return shown(claude_lines.member(request, "input").get("questions"))
    return fields.clip(f"{fields.words(request, 'tool_name')}: {claude_lines.shown(request.get('input'))}")


def shown(asked: object) -> str:
    """Questions with what may be chosen."""
    lines = []
    for each in fields.listed(asked):
        labels = [str(one.get("label")) for one in fields.listed(each.get("options"))]
        lines.append(_text(each) + (f" ({' | '.join(labels)})" if labels else ""))
    return fields.clip("\n".join(lines))


def _questions(request: Mapping[str, object]) -> list[str]:
    return [_text(each) for each in fields.listed(claude_lines.member(request, "input").get("questions"))]


def _text(question: Mapping[str, object]) -> str:
    return str(question.get("question") or "")
