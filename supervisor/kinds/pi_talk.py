"""The dialogue with one pi in RPC mode, JSON lines both ways.

A text that pi has not begun with is never lost in silence: it is given again, or said to be dropped."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from supervisor.core.facts import Blocked, Fact, Input, Limited, Outcome, Read, Ready, Spoke, TurnEnded, TurnStarted
from supervisor.kinds import fields, limits, pi_dialogs, pi_lines
from supervisor.kinds.fields import LineError
from supervisor.kinds.kind import Seat, too_long, typed
from supervisor.kinds.pi_books import Books
from supervisor.kinds.pi_dialogs import Dialog

_SYSTEM = b'{"type":"message_end","message":{"role":"system"'
_ANSWER = b'{"type":"message_end","message":{"role":"assistant"'
#: Asked for at a resume, for what it may add to the books: a conversation too long to be read adds nothing.
_MESSAGES = b'"command":"get_messages"'
#: What is only shown to people.
_SHOWN = frozenset({"tool_execution_start", "auto_retry_start", "extension_error"})
#: Said before a text that was given to a pi which ended before it was seen to begin with it.
_AGAIN = "[fleet: given again, because your process ended before it was seen to begin with this]\n"
#: What pi refuses a text with while it rewrites its conversation; the text is then said again afterwards.
_COMPACTING = "compaction is in progress"


class PiConversation:
    """One run's dialogue with pi. A `recorded` one knows no command of its own."""

    def __init__(self, seat: Seat, *, recorded: bool = False) -> None:
        self._seat = seat
        self._recorded = recorded
        self._books = Books(seat)
        self._number = 0
        self._queue: list[bytes] = []
        #: texts that pi has not yet answered for, by the id of their command
        self._sent: dict[str, tuple[str, list[str]]] = {}
        #: texts that wait for the end of a compaction
        self._held: list[tuple[str, list[str]]] = []
        self._dialogs: dict[str, Dialog] = {}
        #: said at the next line: what a text of ours answered
        self._answers: list[Fact] = []
        self._ready = self._running = self._settled = self._cut = self._compacting = False
        self._stop = self._text = self._error = self._refused = ""

    # --- what the host calls

    @property
    def polite(self) -> bool:
        return True

    def open(self) -> list[Fact]:
        self._command("get_state")
        return []

    def read(self, line: bytes) -> list[Fact]:
        kind = pi_lines.kind(line)
        self._books.line(kind)
        answers, self._answers = self._answers, []
        if kind and (kind not in _READERS or line.startswith(_SYSTEM)):
            return answers
        return answers + typed(self, self._seat, line, _READERS)

    def overlong(self, head: bytes, size: int) -> list[Fact]:
        """The messages of a whole run stand in one line at its end, each of which had its own before."""
        if _MESSAGES in head[:100]:
            return []
        kind = pi_lines.kind(head)
        told = kind == "message_end" and not head.startswith(_ANSWER)
        if kind and (kind not in _READERS or kind in _SHOWN or told):
            return []
        return [too_long(self._seat, size)]

    def hand(self, inputs: tuple[Input, ...], words: str) -> None:
        """All texts are one prompt, in their order: a prompt for each would cost a model call for each. What answers a
        question that waits goes no other way."""
        texts = [_AGAIN + item.text if item.again else item.text for item in inputs]
        names = [item.id for item in inputs]
        text = "\n\n".join([words, *texts] if words else texts)
        for dialog in self._dialogs.values() if texts else ():
            if (reply := pi_dialogs.told(dialog, text)) is not None:
                del self._dialogs[dialog.name]
                self._say(reply)
                self._answers.append(Read(self._seat.agent, self._seat.run, tuple(names)))
                return
        if texts:
            self._prompt(text, names)

    def interrupt(self) -> None:
        """An abort alone would go on with what is queued."""
        self._say(*pi_dialogs.cancel(self._dialogs, questions=True))
        if self._running or self._sent:
            self._cut = True
            self._command("clear_queue")
            self._command("abort")

    @property
    def finished(self) -> bool:
        return False

    def answer(self, prompt: str, *, allow: bool | None, text: str = "") -> None:
        """A dialog of an extension, by its id. It takes no reason: that joins the turn as a text."""
        dialog = pi_dialogs.named(self._dialogs, prompt, text if allow is None else "")
        if dialog is not None:
            del self._dialogs[dialog.name]
            self._say(pi_dialogs.decided(dialog, allow=allow))
            if text and allow is not None:
                self._prompt(text, [])

    def close(self) -> None:
        """pi leaves in order when its stdin ends, and ends its tools before."""

    def ended(self) -> list[Fact]:
        answers, self._answers = self._answers, []
        return answers + self._books.ended(running=self._running)

    def outgoing(self) -> bytes:
        queued, self._queue = b"".join(self._queue), []
        return queued

    # --- what is said to pi

    def _say(self, *commands: Mapping[str, object]) -> None:
        self._queue += [json.dumps(command).encode() + b"\n" for command in commands]

    def _command(self, kind: str, **more: str) -> str:
        self._number += 1
        name = f"fleet-{self._number}"
        self._say({"id": name, "type": kind, **more})
        return name

    def _prompt(self, text: str, names: list[str]) -> None:
        if self._compacting:
            self._held.append((text, names))
            return
        # Said this way a text starts a turn when pi is idle and joins the running one when it is not; pi's
        # own `steer` would be queued when idle, and start nothing.
        self._sent[self._command("prompt", message=text, streamingBehavior="steer")] = (text, names)

    # --- what pi says, a reader a type

    def _agent_start(self, _said: dict[str, object]) -> list[Fact]:
        if self._cut:  # the interruption came before the run that it was meant for
            self._command("abort")
        self._settled = False
        if self._running:  # each automatic retry starts again
            return []
        self._running = True
        return [*self._read(*self._sent.values()), TurnStarted(self._seat.agent, self._seat.run)]

    def _read(self, *sent: tuple[str, list[str]]) -> list[Fact]:
        """These are with the model from now on; said once."""
        names = tuple(given.pop(0) for _, given in sent for _ in range(len(given)))
        return [Read(self._seat.agent, self._seat.run, names)] if names else []

    def _message_end(self, said: dict[str, object]) -> list[Fact]:
        message = fields.member(said, "message")
        role = fields.words(message, "role")
        if role != "assistant":
            # A tool that asked a model itself tells what it used; no other line of pi books that.
            return self._books.spent(message, f"tool:{message.get('toolCallId')}") if "usage" in message else []
        text = pi_lines.text(message)
        facts = self._books.answer(message)
        self._stop, self._error = fields.words(message, "stopReason"), fields.words(message, "errorMessage")
        self._text = text or self._text
        return facts + self._spoke(text)

    def _compaction_start(self, _said: dict[str, object]) -> list[Fact]:
        self._compacting = True
        return self._spoke("compacting its conversation")

    def _compaction_end(self, said: dict[str, object]) -> list[Fact]:
        self._compacting = False
        self._release()
        return self._books.compacted(said)

    def _release(self) -> None:
        held, self._held = self._held, []
        for text, names in held:
            self._prompt(text, names)

    def _agent_settled(self, said: dict[str, object]) -> list[Fact]:
        aborted = said.get("aborted") is True or self._stop == "aborted"
        self._stop = "aborted" if aborted else self._stop
        self._settled = True
        return self._end()

    def _end(self) -> list[Fact]:
        """The turn is over, unless a run is on, or a text on its way that begins the next one at once."""
        if self._sent or self._held or (self._running and not self._settled):
            return []
        self._command("get_session_stats")
        self._say(*pi_dialogs.cancel(self._dialogs, questions=False))
        outcome: Outcome = "ok"
        error = self._refused or self._error
        if self._stop == "aborted":
            outcome = "aborted"
        elif error or self._stop == "error":
            outcome, error = "error", error or "the model call failed"
        sort, error = limits.met(error) if outcome == "error" else (None, error)
        seat = self._seat
        facts: list[Fact] = [Limited(seat.agent, seat.run, sort, None, error)] if sort is not None else []
        facts.append(TurnEnded(seat.agent, seat.run, outcome, text=self._text, error=error))
        self._running = self._settled = self._cut = False
        self._stop = self._text = self._error = self._refused = ""
        return facts

    def _dialog(self, said: dict[str, object]) -> list[Fact]:
        dialog = pi_dialogs.asked(said)
        if dialog is None:
            return self._spoke(pi_dialogs.shown(said)) if said.get("method") == "notify" else []
        self._dialogs[dialog.name] = dialog
        seat = self._seat
        return [Blocked(seat.agent, seat.run, "person", dialog.question, dialog.prompt, dialog.lasts)]

    def _session(self, said: dict[str, object]) -> list[Fact]:
        """The head of what `pi --mode json` prints, which answers no command."""
        if self._ready:
            return []
        self._ready = True
        return [Ready(self._seat.agent, self._seat.run, session=fields.words(said, "id"))]

    def _spoke(self, text: str) -> list[Fact]:
        last = fields.last_line(text)
        return [Spoke(self._seat.agent, self._seat.run, last)] if last else []

    # --- pi's answers to our commands

    def _response(self, said: dict[str, object]) -> list[Fact]:
        command, good = fields.words(said, "command"), said.get("success") is True
        if command == "prompt":
            return self._answered(said, good=good)
        if command == "parse":
            raise LineError("pi could not read a line of ours")
        data = said.get("data")
        if not good or not isinstance(data, dict):
            return []
        if command == "get_state" and not self._ready:
            self._ready = True
            session, model = fields.words(data, "sessionId"), pi_lines.model(data.get("model"))
            self._books.window = pi_lines.window(data.get("model"))
            # A conversation that was killed before its first answer is not kept.
            fresh = data.get("messageCount") == 0
            if self._seat.resume and not fresh:
                self._command("get_messages")
            return [Ready(self._seat.agent, self._seat.run, session=session, model=model, fresh=fresh, tells=True)]
        if command == "get_messages":
            return self._books.book(*pi_lines.remembered(data))
        if command == "get_session_stats":
            return self._books.context(data)
        if command == "clear_queue":
            dropped = len(self._held) + sum(len(part) for part in data.values() if isinstance(part, list))
            self._held.clear()
            self._refused = f"{dropped} queued texts were dropped unread" if dropped else self._refused
        return []

    def _answered(self, said: dict[str, object], *, good: bool) -> list[Fact]:
        sent = self._sent.pop(fields.words(said, "id"), None)
        if sent is None:
            if self._recorded and not good and not self._running:
                self._refused = fields.words(said, "error")
                return self._end()
            return []
        if good:
            data = said.get("data")
            # A command of pi's own starts no run, so none will settle.
            handled = isinstance(data, dict) and data.get("disposition") == "handled"
            return [*self._read(sent), *(self._end() if handled else [])]
        error = fields.words(said, "error")
        if _COMPACTING in error:
            self._held.append(sent)
            if not self._compacting:
                self._release()
            return []
        self._refused = error or "pi refused the text"
        return self._end()


_READERS: dict[str, Callable[[PiConversation, dict[str, object]], list[Fact]]] = {
    "response": PiConversation._response,
    "session": PiConversation._session,
    "agent_start": PiConversation._agent_start,
    "message_end": PiConversation._message_end,
    "entry_appended": lambda talk, said: talk._books.entry(said),
    "compaction_start": PiConversation._compaction_start,
    "compaction_end": PiConversation._compaction_end,
    "agent_settled": PiConversation._agent_settled,
    "extension_ui_request": PiConversation._dialog,
    **dict.fromkeys(_SHOWN, lambda talk, said: talk._spoke(pi_lines.told(said))),
}
