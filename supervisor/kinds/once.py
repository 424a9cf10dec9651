"""What conversations have in common whose program takes its task on stdin, does it and ends. The texts are all that
goes to it, once: nothing joins a task that runs."""

from __future__ import annotations

from supervisor.core.facts import Fact, Input, Limited, Outcome, Read, Ready, Spent, Spoke, TurnEnded, TurnStarted
from supervisor.core.ledger import Report
from supervisor.kinds import fields, limits
from supervisor.kinds.kind import Seat
from supervisor.kinds.readable import readable

#: Said before a text that was given to a process which ended before it was seen to begin with it.
AGAIN = "[fleet: given again, because your process ended before it was seen to begin with this]\n"


class OnceConversation:
    """The half of a conversation that does not depend on the program's lines."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._session = seat.session if seat.resume else ""
        self._model = seat.spec.model
        self._given: list[str] = []
        self._queue = b""
        self._finished = self._cut = self._turn = False
        self._text = self._error = ""

    # --- what the host calls

    @property
    def polite(self) -> bool:
        """Its stdin has ended long before."""
        return False

    @property
    def finished(self) -> bool:
        return self._finished

    def open(self) -> list[Fact]:
        """It reads its stdin as soon as it can: there is nothing to wait for."""
        seat = self._seat
        return [Ready(seat.agent, seat.run, self._session, self._model, fresh=not seat.resume, tells=True)]

    def hand(self, inputs: tuple[Input, ...], words: str) -> None:
        """All texts are one task, in their order; a conversation that is new begins with who the agent is."""
        if not inputs or self._finished:
            return
        texts = [AGAIN + item.text if item.again else item.text for item in inputs]
        said = "\n\n".join([*self._first(words), *texts])
        self._queue = said.encode("utf-8", "replace")
        self._given = [item.id for item in inputs]
        self._finished = True

    def _first(self, words: str) -> list[str]:
        return [words] if words else []

    def interrupt(self) -> None:
        """Its process is ended; that its task was cut is all there is to know here."""
        self._cut = True

    def answer(self, prompt: str, *, allow: bool | None, text: str = "") -> None:
        """It asks nobody: what it would ask for is refused by itself."""

    def close(self) -> None:
        """There is no other word to stop than a signal."""

    def outgoing(self) -> bytes:
        queued, self._queue = self._queue, b""
        return queued

    # --- what its lines come to

    def _known(self, session: str, model: str) -> list[Fact]:
        """The names that the program told; nothing where they are known."""
        if (session, model) == (self._session, self._model) or not session:
            return []
        self._session, self._model = session, model
        return [Ready(self._seat.agent, self._seat.run, session, model, tells=True)]

    def _begin(self) -> list[Fact]:
        """It has begun with its task; said once."""
        if self._turn:
            return []
        self._turn = True
        names, self._given = tuple(self._given), []
        begun = TurnStarted(self._seat.agent, self._seat.run)
        return [Read(self._seat.agent, self._seat.run, names), begun] if names else [begun]

    def _end(self, status: int = 0) -> list[Fact]:
        """The task is over: cut, failed with `_error`, or done."""
        seat, said, text = self._seat, self._error, self._text
        self._turn, self._error, self._text = False, "", ""
        if not said:
            return [TurnEnded(seat.agent, seat.run, "ok", text=text)]
        why, error = limits.met(said, status or None)
        found: list[Fact] = [Limited(seat.agent, seat.run, why, None, error)] if why and not self._cut else []
        outcome: Outcome = "aborted" if self._cut else "error"
        return [*found, TurnEnded(seat.agent, seat.run, outcome, text=text, error=error)]

    def _aborted(self) -> list[Fact]:
        """It was ended on purpose before it was done."""
        text, error = self._text, readable(self._error)
        self._turn, self._text, self._error = False, "", ""
        return [TurnEnded(self._seat.agent, self._seat.run, "aborted", text=text, error=error)]

    def _spent(self, reports: tuple[Report, ...], incomplete: int = 0) -> list[Fact]:
        return [Spent(self._seat.agent, self._seat.run, reports, incomplete)] if reports or incomplete else []

    def _spoke(self, text: str) -> list[Fact]:
        last = fields.last_line(text)
        return [Spoke(self._seat.agent, self._seat.run, last)] if last else []
