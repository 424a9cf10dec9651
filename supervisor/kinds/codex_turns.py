"""Texts on their way to codex and the turns that take them.

A text that codex has accepted is not yet one that it has begun with; one that it never begins with is said to be
dropped, and a turn is over only when no text is on its way that begins the next one at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from attrs import evolve, frozen

from supervisor.core.facts import Fact, Outcome, TurnEnded, TurnStarted
from supervisor.kinds import codex_lines, fields
from supervisor.kinds.kind import Seat

_Said = Mapping[str, object]
_DROPPED = "a text was dropped unread"


class Ask(Protocol):
    """Queues a command; `then` takes its answer."""

    def __call__(self, method: str, then: Callable[[_Said], list[Fact]] | None = None, /, **params: object) -> int: ...


@frozen
class Given:
    """A text. `number` is the command that it went with, until codex has answered for it; `turn` the one that it was
    accepted into; `steer` says that it was to join one."""

    inputs: tuple[str, ...]
    text: str
    number: int | None = None
    turn: str = ""
    steer: bool = False


class Turns:
    """Those of one run."""

    def __init__(self, seat: Seat, ask: Ask) -> None:
        self.thread = ""
        #: the words of the turn so far, and why it fails
        self.text = self.error = ""
        self.cut = False
        self._seat = seat
        self._ask = ask
        #: texts that codex has not begun with, by the name that we gave them
        self._given: dict[str, Given] = {}
        #: the turn that is over: what is said of it again says nothing
        self.last = ""
        self._turn = self._dropped = ""
        self._running = False
        #: how the last turn ended, while it is not known that no other follows at once
        self._over: tuple[Outcome, str] | None = None

    # --- towards codex

    def opened(self, thread: str) -> None:
        """There is a thread: what waited for it goes."""
        self.thread = thread
        for name, given in self._given.items():
            self._send(name, given)
        if self.cut:
            self._stop("")

    def give(self, name: str, inputs: tuple[str, ...], text: str) -> None:
        """A text for the running turn, or for the next one."""
        self._send(name, Given(inputs, text, steer=bool(self._turn)))

    def interrupt(self) -> None:
        """A turn that is yet to start has no id: without one codex cuts whichever it is."""
        if self._running or self._given:
            self.cut = True
            self._stop(self._turn)

    def _send(self, name: str, given: Given) -> None:
        """While a turn starts that has no id yet, codex takes a `turn/start` into it."""
        if self.thread:
            text = [{"type": "text", "text": given.text, "text_elements": []}]
            more: dict[str, object] = {"threadId": self.thread, "input": text, "clientUserMessageId": name}
            if given.steer:
                number = self._ask("turn/steer", self._answered, expectedTurnId=self._turn, **more)
            else:
                number = self._ask("turn/start", self._answered, **more)
            given = evolve(given, number=number)
        self._given[name] = given

    def _stop(self, turn: str) -> None:
        """What runs in a terminal lives on after an interruption."""
        if self.thread:
            self._ask("turn/interrupt", threadId=self.thread, turnId=turn)
            self._clean()

    def _clean(self) -> None:
        self._ask("thread/backgroundTerminals/clean", threadId=self.thread)

    # --- from codex

    def _answered(self, said: _Said) -> list[Fact]:
        """codex has taken a text, or not: what comes too late for a turn begins the next one."""
        name = next((name for name, given in self._given.items() if given.number == said["id"]), None)
        if name is None:
            return []  # it has begun with it already
        given = self._given[name]
        if "error" not in said:
            self._given[name] = evolve(given, number=None, turn=codex_lines.turn_of(said))
        elif given.steer and not self.cut:
            self._send(name, evolve(given, steer=False))
        else:
            del self._given[name]
            self._dropped = codex_lines.error(fields.member(said, "error")) if not self.cut else _DROPPED
            if not self._running:  # it was to begin a turn, and none will
                self._over = self._over or ("aborted" if self.cut else "error", "")
        self._drop()
        return self._settle()

    def started(self, turn: str) -> list[Fact]:
        """A turn of codex's has begun."""
        self._turn, self._over, self.error = turn, None, ""
        if self.cut:  # the interruption came before the turn that it was meant for
            self._stop(turn)
        if self._running:
            return []
        self._running = True
        return [TurnStarted(self._seat.agent, self._seat.run)]

    def begun(self, name: str) -> tuple[str, ...]:
        """A text is with the model from now on. Returns the inputs that it was made of."""
        given = self._given.pop(name, None)
        return given.inputs if given is not None else ()

    def finish(self, outcome: Outcome, error: str = "", turn: str = "") -> list[Fact]:
        """A turn of codex's is over."""
        self._over, self._turn, self.last = (outcome, error), "", turn or self._turn
        if outcome == "aborted":  # a command that had only just begun was no terminal yet when the cut was asked for
            self._clean()
        self._drop()
        return self._settle()

    def _drop(self) -> None:
        """What was accepted into a turn that is over is not read any more."""
        lost = [name for name, given in self._given.items() if given.turn and given.turn == self.last]
        for name in lost:
            del self._given[name]
            self._dropped = _DROPPED

    def _settle(self) -> list[Fact]:
        if self._over is None or self._given:
            return []
        outcome, error = self._over
        if self._dropped:
            error = f"{error}; {self._dropped}" if error else self._dropped
            outcome = "error" if outcome == "ok" else outcome
        ended = TurnEnded(self._seat.agent, self._seat.run, outcome, text=self.text, error=error)
        self._over, self._running, self.cut = None, False, False
        self.text = self.error = self._dropped = ""
        return [ended]
