"""A fork that waits in line for its caller: it asks again whenever it may have room, and gives its place up when its
caller does. It decides nothing: who goes first, and whether there is room, is the core's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio
from attrs import evolve

from supervisor.core.authority import Principal
from supervisor.core.decide import room as rooms
from supervisor.core.facts import LinedUp, OutOfLine
from supervisor.core.refusals import RefusedError
from supervisor.core.requests import Fork
from supervisor.doors import wire
from supervisor.doors.calls import told
from supervisor.runtime.answer import Answer
from supervisor.runtime.projects import Room
from supervisor.runtime.watches import ROOM

#: Whether the fork's program is there, looked at right before it is asked for.
Present = Callable[[Fork], Awaitable[None]]


async def until_born(room: Room, by: Principal, request: Fork, present: Present, seconds: float | None) -> Answer:
    """The answer that brought the agent, on disk; raises its refusal, or TimedOut. Whatever ends the wait ends the
    place in line with it: the caller's hanging up cancels this."""
    deadline = trio.current_time() + (seconds if seconds is not None else float("inf"))
    answer = room.desk.ask(by, request)
    place = next((fact.place for fact in answer.facts if isinstance(fact, LinedUp)), "")
    again, why = evolve(request, place=place), "asker"
    try:
        await told(answer)
        while place and not answer.born:
            # What was asked for is not given up while it becomes durable: an agent may have been born.
            with trio.CancelScope(deadline=deadline) as wait:
                await room.desk.until(ROOM, lambda: rooms.due(room.project, place))
                await present(again)
            if wait.cancelled_caught:
                raise wire.TimedOut(f"no room became free within {seconds} s; the fork waits no longer")
            answer = await told(room.desk.ask(by, again))
    except RefusedError as no:
        why = no.refusal.code
        raise
    finally:
        if place in room.project.line:
            room.desk.observe(OutOfLine(place, why))
    return answer
