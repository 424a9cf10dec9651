"""What is said to a program that reads stream-json. It must write nothing but whole JSON lines: one that is none ends
such a program."""

from __future__ import annotations

import json
from collections.abc import Mapping

from supervisor.core.facts import Input
from supervisor.kinds import claude_lines
from supervisor.kinds.kind import Seat

#: Said before a text that was given to a program which ended before it was seen to begin with it.
_AGAIN = "[fleet: given again, because your process ended before it was seen to begin with this]\n"
#: The id of our first request, to which the answer says that the program is there.
FIRST = "fleet-1"
#: Why a tool is refused.
NOT_GRANTED = "This tool is not in your grant."
DENIED = "A person has denied this."
UNANSWERED = "Nobody has answered in time."


class Outbox:
    """What waits for the program's stdin."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._number = 0
        self._queue: list[bytes] = []

    def take(self) -> bytes:
        """All that waits."""
        queued, self._queue = b"".join(self._queue), []
        return queued

    def control(self, subtype: str, **more: object) -> str:
        """A request of ours; its id."""
        self._number += 1
        name = f"fleet-{self._number}"
        self._say({"type": "control_request", "request_id": name, "request": {"subtype": subtype, **more}})
        return name

    def texts(self, inputs: tuple[Input, ...], words: str) -> str:
        """All texts are one message, in their order; its id, which no other run of an agent uses."""
        self._number += 1
        name = claude_lines.uuid(self._seat.home, self._seat.agent, self._seat.run, self._number)
        texts = [_AGAIN + item.text if item.again else item.text for item in inputs]
        content = [{"type": "text", "text": "\n\n".join([words, *texts] if words else texts)}]
        self._say({"type": "user", "message": {"role": "user", "content": content}, "uuid": name})
        return name

    def permit(self, prompt: str, request: Mapping[str, object], denied: str = "") -> None:
        """The answer to a request to use a tool: it may be used as it was to be, or not, and why."""
        if denied:
            self._answer(prompt, {"behavior": "deny", "message": denied})
        else:
            self.allow(prompt, request.get("input") or {})

    def allow(self, prompt: str, given: object) -> None:
        """The tool may be used with this input."""
        self._answer(prompt, {"behavior": "allow", "updatedInput": given})

    def _answer(self, prompt: str, answer: Mapping[str, object]) -> None:
        response = {"subtype": "success", "request_id": prompt, "response": answer}
        self._say({"type": "control_response", "response": response})

    def _say(self, message: Mapping[str, object]) -> None:
        # ASCII alone: no character of a text can end a line or be none.
        self._queue.append(json.dumps(message).encode() + b"\n")
