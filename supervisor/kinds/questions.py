"""Questions that a program which speaks stream-json asks its person, and that a text answers. It must give each one
answer, and say that a text was begun with only when the program has taken it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from supervisor.core.facts import Input
from supervisor.kinds import claude_lines, fields


@frozen
class Reply:
    """What answers the request `prompt`: the tool's input, with the answers in it."""

    prompt: str
    input: Mapping[str, object]


class Questions:
    """Those of one run. `tool` is the program's tool for asking; `key` names the answer to the question at a place."""

    def __init__(self, tool: str, key: Callable[[int, str], str]) -> None:
        self._tool = tool
        self._key = key
        self._open: dict[str, Mapping[str, object]] = {}
        #: texts that answered, by the id of the call that asked
        self._told: dict[str, tuple[str, ...]] = {}

    def asked(self, prompt: str, request: Mapping[str, object]) -> bool:
        """Whether this request is a question; one that is known waits for its text from now on."""
        if fields.words(request, "tool_name") != self._tool or not _questions(request):
            return False
        self._open[prompt] = request
        return True

    def answered(self, inputs: tuple[Input, ...]) -> Reply | None:
        """What these texts answer, if anything waits for an answer: each question of the oldest request, alike."""
        if not self._open or not inputs:
            return None
        prompt = next(iter(self._open))
        request = self._open.pop(prompt)
        self._told[fields.words(request, "tool_use_id")] = tuple(item.id for item in inputs)
        text = "\n\n".join(item.text for item in inputs)
        answers = {self._key(at, question): text for at, question in enumerate(_questions(request))}
        return Reply(prompt, {**claude_lines.member(request, "input"), "answers": answers})

    def taken(self, message: Mapping[str, object]) -> tuple[str, ...]:
        """The texts whose answer the program has taken, by its line that the call which asked has ended."""
        ended = [each.get("tool_use_id") for each in listed(message.get("content"))] if self._told else ()
        return tuple(name for call in ended for name in self._told.pop(str(call), ()))

    def over(self, prompt: str = "") -> None:
        """Nobody waits for this answer any more; for none, where it is not said which."""
        if prompt:
            self._open.pop(prompt, None)
        else:
            self._open.clear()
            self._told.clear()


def wanted(request: Mapping[str, object]) -> str:
    """What a person is asked when the program wants to use a tool."""
    if _questions(request):
        return shown(claude_lines.member(request, "input").get("questions"))
    return fields.clip(f"{fields.words(request, 'tool_name')}: {claude_lines.shown(request.get('input'))}")


def shown(asked: object) -> str:
    """Questions with what may be chosen."""
    lines = []
    for each in listed(asked):
        labels = [str(one.get("label")) for one in listed(each.get("options"))]
        lines.append(_text(each) + (f" ({' | '.join(labels)})" if labels else ""))
    return fields.clip("\n".join(lines))


def listed(several: object) -> list[Mapping[str, object]]:
    """The objects of a list; none where it is no list."""
    return [each for each in several if isinstance(each, dict)] if isinstance(several, list) else []


def _questions(request: Mapping[str, object]) -> list[str]:
    return [_text(each) for each in listed(claude_lines.member(request, "input").get("questions"))]


def _text(question: Mapping[str, object]) -> str:
    return str(question.get("question") or "")
