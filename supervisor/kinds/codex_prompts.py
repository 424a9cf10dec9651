"""What codex asks of the person: approvals, which are answered yes or no, and questions, which are answered by a text.

A request that is not known here is never taken: its asker is told so, and does not wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from supervisor.core.facts import Blocked, Fact, Read, Withdrawn
from supervisor.kinds import codex_lines, fields, stream_prompts
from supervisor.kinds.kind import Seat

_Answer = Callable[[Mapping[str, object], bool], dict[str, object]]


def _decision(yes: str, no: str) -> _Answer:
    return lambda _params, allow: {"decision": yes if allow else no}


def _permissions(params: Mapping[str, object], allow: bool) -> dict[str, object]:
    return {"permissions": params.get("permissions") if allow else {}, "scope": "turn"}


def _elicitation(_params: Mapping[str, object], allow: bool) -> dict[str, object]:
    return {"action": "accept", "content": {}} if allow else {"action": "decline", "content": None}


_ANSWERS: dict[str, _Answer] = {
    "item/commandExecution/requestApproval": _decision("accept", "decline"),
    "item/fileChange/requestApproval": _decision("accept", "decline"),
    "item/permissions/requestApproval": _permissions,
    "mcpServer/elicitation/request": _elicitation,
    "execCommandApproval": _decision("approved", "denied"),
    "applyPatchApproval": _decision("approved", "denied"),
}
_QUESTION = "item/tool/requestUserInput"


@frozen
class Open:
    """One that waits: codex's id of it, and what it asks. `inputs` are the texts that answered it."""

    number: object
    method: str
    params: Mapping[str, object]
    inputs: tuple[str, ...] = ()


class Prompts:
    """Those of one run that are open."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._open: dict[str, Open] = {}
        #: questions that were answered and of which codex has not said that it took the answer
        self._told: list[Open] = []

    def asked(self, method: str, said: Mapping[str, object]) -> Blocked | None:
        """What the person is shown; None where this is nothing for them."""
        if method != _QUESTION and method not in _ANSWERS:
            return None
        one = Open(said["id"], method, fields.member(said, "params"))
        name = f"codex-{one.number}"
        words = stream_prompts.shown(one.params.get("questions")) if method == _QUESTION else _words(method, one.params)
        self._open[name] = one
        prompt = "" if method == _QUESTION else name
        return Blocked(self._seat.agent, self._seat.run, on="person", question=words, prompt=prompt)

    def answered(self, prompt: str, *, allow: bool) -> dict[str, object] | None:
        """The reply to an approval, once."""
        one = self._open.get(prompt)
        if one is None or one.method == _QUESTION:
            return None
        del self._open[prompt]
        return {"id": one.number, "result": _ANSWERS[one.method](one.params, allow)}

    def told(self, text: str, inputs: tuple[str, ...]) -> dict[str, object] | None:
        """The reply to the question that waits for a text, if one does: the same for all that it asks."""
        name = next((name for name, one in self._open.items() if one.method == _QUESTION), None)
        if name is None:
            return None
        one = self._open.pop(name)
        self._told.append(Open(one.number, one.method, one.params, inputs))
        asked = fields.listed(one.params.get("questions"))
        answers = {str(each.get("id")): {"answers": [text]} for each in asked}
        return {"id": one.number, "result": {"answers": answers}}

    def resolved(self, number: object) -> list[Fact]:
        """codex waits for this one no more: it took a text as the answer, or nobody needs to answer it."""
        seat = self._seat
        taken = tuple(name for one in self._told if one.number == number for name in one.inputs)
        self._told = [one for one in self._told if one.number != number]
        gone = [name for name, one in self._open.items() if one.number == number]
        back = [self._back(name) for name in gone]
        return [*([Read(seat.agent, seat.run, taken)] if taken else []), *back]

    def over(self, thread: str, say: Callable[[Mapping[str, object]], None], *, ended: bool) -> list[Fact]:
        """A turn of this thread is over, and what it asked with it: codex may say so of each only later. When the
        agent's own turn has `ended` nothing that others ask can be answered either: it is denied, so that no agent of
        codex's waits for ever."""
        mine = [name for name, one in self._open.items() if one.params.get("threadId", thread) == thread]
        others = [name for name in self._open if name not in mine] if ended else []
        for one in map(self._open.__getitem__, others):
            no: dict[str, object] = {"answers": {}}
            say(
                {"id": one.number, "result": no if one.method == _QUESTION else _ANSWERS[one.method](one.params, False)}
            )
        return [self._back(name) for name in (*mine, *others)]

    def _back(self, name: str) -> Fact:
        """Nobody needs to answer it any more. A question has no name."""
        asks = self._open.pop(name).method == _QUESTION
        return Withdrawn(self._seat.agent, self._seat.run, "" if asks else name)


def _words(method: str, params: Mapping[str, object]) -> str:
    """What an approval is about."""
    reason, command = codex_lines.text(params, "reason"), params.get("command")
    what = " ".join(map(str, command)) if isinstance(command, list) else codex_lines.text(params, "command")
    network = params.get("networkApprovalContext")
    if isinstance(network, dict):
        what = f"{what} (network: {network.get('host')})"
    if method == "item/permissions/requestApproval":
        what = "more permissions for this turn"
    elif method == "mcpServer/elicitation/request":
        what = f"{codex_lines.text(params, 'serverName')}: {codex_lines.text(params, 'message')}"
    elif not what:
        root = codex_lines.text(params, "grantRoot")
        what = f"write below {root}" if root else "change files"
    return fields.clip(f"{what}: {reason}" if reason else what)
