"""The status line `limited`: what a program says when its provider takes no more for now."""

from __future__ import annotations

from typing import cast, get_args

from supervisor.core.facts import Fact, Limit, Limited
from supervisor.kinds import fields
from supervisor.kinds.fields import LineError
from supervisor.kinds.kind import Seat
from supervisor.kinds.readable import readable


def read(seat: Seat, said: dict[str, object]) -> list[Fact]:
    """`until` is in Unix seconds, or words that name a time; where it is missing, `text` may name one."""
    sort = fields.words(said, "sort")
    if sort not in get_args(Limit):
        raise LineError(f"`sort` is none of {', '.join(get_args(Limit))}")
    text, until = readable(fields.words(said, "text")), said.get("until")
    if isinstance(until, str):
        # Resolved where there is a clock.
        return [
            Limited(seat.agent, seat.run, cast("Limit", sort), None, f"until {fields.clip(until, 200)} {text}".strip())
        ]
    then = fields.number(said, "until", fields.EXACT) if until is not None else None
    return [Limited(seat.agent, seat.run, cast("Limit", sort), then, text)]
