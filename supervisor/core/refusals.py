"""The answer no: one shape for every door, which always says what was asked, what there is, and whom to ask."""

from __future__ import annotations

from typing import Literal

from attrs import asdict, frozen

Value = int | float | str | None

#: Every reason there is. The docs' table and one invariant of the state machine test stand behind each.
Code = Literal[
    "nobody",  # the caller has no name
    "authority",  # not the caller's to ask
    "unknown",  # no such agent, role or kind
    "ambiguous",  # several agents fit
    "renamed",  # an old name; the message names the new one
    "name",  # not a name, or taken
    "rights",  # a right that the parent does not hold
    "budget",  # more than the parent has left
    "bound",  # beyond the parent's children, depth or wall
    "depth",  # deeper than the project's cap
    "agents",  # more agents than the project's cap
    "rate",  # forks per minute
    "state",  # not in this state
    "empty",  # a text with nothing in it
    "value",  # a value out of its range
    "down",  # the project is not wanted
    "disk",  # low on disk
]


@frozen
class Refusal:
    """Why a request was refused. Counts are whole numbers, `cost` is in USD, `wall` in seconds; sets are text.
    What does not apply is None. `holder` names the agent that would have to hold more, `ask` who could give it: an
    agent, or `operator`."""

    code: Code
    message: str
    field: str = ""
    asked: Value = None
    held: Value = None
    used: Value = None
    reserved: Value = None
    ask: str = ""
    holder: str = ""

    def plain(self) -> dict[str, Value]:
        """The wire's shape."""
        return asdict(self)


#: A refusal goes into the journal: it shows the beginning of what was asked, however much that was.
LONGEST_VALUE, LONGEST_MESSAGE = 200, 1000


def _begins(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\u2026"


class RefusedError(Exception):
    """Carries a refusal out of nested checks; the gate turns it into an answer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def refuse(
    code: Code,
    message: str,
    *,
    field: str = "",
    asked: Value = None,
    held: Value = None,
    used: Value = None,
    reserved: Value = None,
    ask: str = "",
    holder: str = "",
) -> RefusedError:
    """A refusal to raise."""
    asked, held = (_begins(value, LONGEST_VALUE) if isinstance(value, str) else value for value in (asked, held))
    message = _begins(message, LONGEST_MESSAGE)
    return RefusedError(Refusal(code, message, field, asked, held, used, reserved, ask, holder))
