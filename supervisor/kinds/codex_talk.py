"""The dialogue with one codex app-server, JSON-RPC lines both ways.

A request of codex's is always answered, if only by an error: one that waited for ever would hang its turn."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from supervisor.core.facts import Fact, Input, Limited, Outcome, Read, Ready, Spoke
from supervisor.kinds import codex_grant, codex_lines, fields
from supervisor.kinds.codex_books import Books
from supervisor.kinds.codex_prompts import Prompts
from supervisor.kinds.codex_turns import Turns
from supervisor.kinds.fields import LineError
from supervisor.kinds.kind import Seat, garbled, too_long

#: Said before a text that was given to a codex which ended before it was seen to begin with it.
_AGAIN = "[fleet: given again, because your process ended before it was seen to begin with this]\n"
_CLIENT = {"name": "fleet-supervisor", "title": "Fleet Supervisor", "version": "1"}
_UNKNOWN = -32601  # JSON-RPC: there is no such method
_Said = Mapping[str, object]


class CodexConversation:
    """One run's dialogue with codex. A `recorded` one is read only."""

    def __init__(self, seat: Seat, *, recorded: bool = False) -> None:
        self._seat = seat
        self._recorded = recorded
        self._books = Books(seat, recorded=recorded)
        self._prompts = Prompts(seat)
        self._turns = Turns(seat, self._ask)
        self._number = 0
        self._queue: list[bytes] = []
        #: what is to be done with the answer to a command
        self._asked: dict[int, Callable[[_Said], list[Fact]]] = {}
        self._kept = self._hopeless = False
        self._limits: _Said = {}

    # --- what the host calls

    @property
    def polite(self) -> bool:
        return True

    @property
    def finished(self) -> bool:
        """A codex that cannot open its thread would stand there for ever."""
        return self._hopeless

    def open(self) -> list[Fact]:
        self._ask("initialize", self._initialized, clientInfo=_CLIENT, capabilities={"experimentalApi": True})
        return []

    def read(self, line: bytes) -> list[Fact]:
        method, number = codex_lines.method(line)
        if method and number is None and method not in _READERS:
            return []
        try:
            return self._take(fields.decode(line))
        except LineError as error:
            self._refuse(number, f"this request could not be read: {error}")
            return [garbled(self._seat, len(line), str(error))]

    def overlong(self, head: bytes, size: int) -> list[Fact]:
        """An item may be of any length, such as a picture: its beginning is enough, but of an agent's words."""
        method, number = codex_lines.method(head)
        if not method and (thread := codex_lines.thread_of(head)):
            return self._opened(thread, "")
        if number is not None:
            self._refuse(number, "this request is too long")
        elif method in {"item/started", "item/completed"}:
            kind, name, client = codex_lines.item_of(head)
            done = method == "item/completed"
            self._books.item(kind, name, done=done)
            lost: list[Fact] = [too_long(self._seat, size)] if kind == "agentMessage" and done else []
            return [*self._begin(client), *lost]
        elif method and method not in _MATTER:
            return []
        facts: list[Fact] = [too_long(self._seat, size)]
        if method == "turn/completed":  # nothing else will say that it is over
            outcome: Outcome = "aborted" if self._turns.cut else "error" if self._turns.error else "ok"
            facts += [*self._books.over(outcome), *self._finish(outcome, self._turns.error)]
        return facts

    def hand(self, inputs: tuple[Input, ...], words: str) -> None:
        """All texts are one, in their order: each alone could be a turn of its own."""
        texts = [_AGAIN + item.text if item.again else item.text for item in inputs]
        names = tuple(item.id for item in inputs)
        if not texts:
            return
        text = "\n\n".join([words, *texts] if words else texts)
        if (reply := self._prompts.told(text, names)) is not None:
            self._say(reply)
        else:
            self._turns.give("+".join(names), names, text)

    def interrupt(self) -> None:
        self._turns.interrupt()

    def answer(self, prompt: str, *, allow: bool | None, text: str = "") -> None:
        """An answer of codex's takes no reason: that joins the turn as a text."""
        if (reply := self._prompts.answered(prompt, allow=bool(allow))) is not None:
            self._say(reply)
            if text:
                self._turns.give(f"answer-{prompt}", (), text)

    def close(self) -> None:
        """codex leaves when its stdin ends. A turn is cut before: then its thread keeps what that turn has used."""
        self._turns.interrupt()

    def ended(self) -> list[Fact]:
        return self._books.ended()

    def outgoing(self) -> bytes:
        queued, self._queue = b"".join(self._queue), []
        return queued

    # --- what is said to codex

    def _say(self, message: _Said) -> None:
        if not self._recorded:
            self._queue.append(json.dumps(message).encode() + b"\n")

    def _ask(self, method: str, then: Callable[[_Said], list[Fact]] | None = None, /, **params: object) -> int:
        self._number += 1
        if then is not None:
            self._asked[self._number] = then
        self._say({"id": self._number, "method": method, "params": params})
        return self._number

    def _refuse(self, number: object, why: str) -> None:
        if number is not None:
            self._say({"id": number, "error": {"code": _UNKNOWN, "message": why}})

    # --- the thread is opened

    def _initialized(self, _said: _Said) -> list[Fact]:
        self._say({"method": "initialized"})
        self._ask("config/read", self._configured, includeLayers=False, cwd=self._place())
        return []

    def _place(self) -> str:
        return self._seat.spec.directory or self._seat.home or "/"

    def _configured(self, said: _Said) -> list[Fact]:
        """The person's MCP servers are known: the thread is opened without those that the grant does not name."""
        seat = self._seat
        params: dict[str, object] = {"cwd": self._place(), **codex_grant.sandbox(seat.tools)}
        params["config"] = codex_grant.settings(seat.tools, codex_lines.servers(said.get("result")))
        if seat.spec.model:
            params["model"] = seat.spec.model
        if seat.instructions:
            params["developerInstructions"] = seat.instructions
        if seat.resume:
            self._ask("thread/resume", self._refused, threadId=seat.session, excludeTurns=True, **params)
        else:
            self._ask("thread/start", self._refused, **params)
        return []

    def _refused(self, said: _Said) -> list[Fact]:
        """Whether codex has no thread for us."""
        if "error" not in said:
            return []
        self._hopeless = True
        return self._spoke(f"codex cannot open its thread: {codex_lines.error(fields.member(said, 'error'))}")

    def _opened(self, thread: str, model: str) -> list[Fact]:
        """codex keeps a thread from its first turn on: until then there is nothing to go on with."""
        if self._turns.thread:
            return []
        self._books.thread, self._books.model = thread, model
        self._kept = self._seat.resume or self._recorded
        self._turns.opened(thread)
        return self._ready(fresh=not self._seat.resume)

    def _ready(self, *, fresh: bool = False) -> list[Fact]:
        seat, session = self._seat, self._turns.thread if self._kept else ""
        return [Ready(seat.agent, seat.run, session=session, model=self._books.model, fresh=fresh, tells=True)]

    # --- what codex says

    def _take(self, said: dict[str, object]) -> list[Fact]:
        if "method" not in said:
            return self._reply(said)
        method = fields.words(said, "method")
        if "id" in said:
            asked = self._prompts.asked(method, said)
            if asked is None:
                self._refuse(said["id"], f"{method} is not answered here")
            return [asked] if asked is not None else []
        reader = _READERS.get(method)
        return reader(self, fields.member(said, "params")) if reader else []

    def _reply(self, said: _Said) -> list[Fact]:
        number, result = said.get("id"), said.get("result")
        then = self._asked.pop(number, None) if isinstance(number, int) else None
        facts = then(said) if then is not None else []
        if isinstance(result, dict) and isinstance(result.get("thread"), dict) and "model" in result:
            facts += self._opened(fields.words(result["thread"], "id"), codex_lines.text(result, "model"))
        return facts

    def _ours(self, params: _Said) -> bool:
        """codex's own agents have threads of their own."""
        return fields.words(params, "threadId") == self._turns.thread

    def _turn_started(self, params: _Said) -> list[Fact]:
        self._books.started(fields.words(params, "threadId"))
        turn = codex_lines.turn_of(params)
        return self._turns.started(turn) if self._ours(params) and turn != self._turns.last else []

    def _turn_completed(self, params: _Said) -> list[Fact]:
        turn = fields.member(params, "turn")
        if not self._ours(params) or turn.get("id") == self._turns.last:
            return []
        name, status, told = fields.words(turn, "id"), fields.words(turn, "status"), turn.get("error")
        if status != "failed":
            outcome: Outcome = "aborted" if status == "interrupted" else "ok"
            return [*self._books.over(outcome), *self._finish(outcome, turn=name)]
        failure = told if isinstance(told, dict) else {}
        error = codex_lines.error(failure) or self._turns.error or "the turn failed"
        facts = self._books.over("error")
        if (sort := codex_lines.limit(failure)) is not None:
            until = codex_lines.reset(self._limits) if sort == "quota" else None
            facts.append(Limited(self._seat.agent, self._seat.run, sort, until, error))
        return facts + self._finish("error", error, name)

    def _finish(self, outcome: Outcome, error: str = "", turn: str = "") -> list[Fact]:
        facts = self._turns.finish(outcome, error, turn)
        return [*self._prompts.over(self._turns.thread, self._say, ended=bool(facts)), *facts]

    def _started(self, params: _Said) -> list[Fact]:
        if not self._ours(params):
            return []
        item = fields.member(params, "item")
        self._books.item(fields.words(item, "type"), fields.words(item, "id"))
        return self._begin(codex_lines.text(item, "clientId")) + self._spoke(codex_lines.shown(item))

    def _completed(self, params: _Said) -> list[Fact]:
        if not self._ours(params):
            return []
        item = fields.member(params, "item")
        self._books.item(kind := fields.words(item, "type"), fields.words(item, "id"), done=True)
        if kind != "agentMessage":
            return []
        text = codex_lines.text(item, "text").strip()
        self._turns.text = text or self._turns.text
        return self._spoke(text)

    def _begin(self, name: str) -> list[Fact]:
        """A text of ours is with the model from now on, and with it the thread is kept."""
        inputs = self._turns.begun(name)
        if not inputs:
            return []
        told: list[Fact] = [Read(self._seat.agent, self._seat.run, inputs)]
        if self._kept:
            return told
        self._kept = True
        return [*self._ready(), *told]

    def _error(self, params: _Said) -> list[Fact]:
        """What codex tries again by itself is only shown; what it gives up is told again when the turn ends."""
        words = codex_lines.error(fields.member(params, "error"))
        if params.get("willRetry") is not True and self._ours(params):
            self._turns.error = words
        return self._spoke(words)

    def _rerouted(self, params: _Said) -> list[Fact]:
        if not self._ours(params):
            return []
        self._books.model = fields.words(params, "toModel")
        return self._spoke(f"goes on with the model {self._books.model}")

    def _limited(self, params: _Said) -> list[Fact]:
        self._limits = fields.member(params, "rateLimits")
        return []

    def _spoke(self, text: str) -> list[Fact]:
        last = fields.last_line(text)
        return [Spoke(self._seat.agent, self._seat.run, last)] if last else []


_READERS: dict[str, Callable[[CodexConversation, _Said], list[Fact]]] = {
    "turn/started": CodexConversation._turn_started,
    "turn/completed": CodexConversation._turn_completed,
    "item/started": CodexConversation._started,
    "item/completed": CodexConversation._completed,
    "thread/tokenUsage/updated": lambda talk, params: talk._books.used(params),
    "serverRequest/resolved": lambda talk, params: talk._prompts.resolved(params.get("requestId")),
    "error": CodexConversation._error,
    "model/rerouted": CodexConversation._rerouted,
    "account/rateLimits/updated": CodexConversation._limited,
}
#: A line of these that is too long is a loss.
_MATTER = frozenset({"turn/started", "turn/completed", "thread/tokenUsage/updated", "serverRequest/resolved"})
