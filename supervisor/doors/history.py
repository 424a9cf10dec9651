"""The facts of the journal for who asks: the newest from memory, older ones from disk, some at a time. It follows the
walls; it never reads a disk on the loop, nor holds more than it is about to send."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from itertools import islice

import trio

from supervisor.core.authority import Agent, Principal
from supervisor.core.names import sees
from supervisor.core.refusals import refuse
from supervisor.doors.calls import Plain
from supervisor.doors.service import Call
from supervisor.runtime import codec, segments
from supervisor.runtime.chain import Batch
from supervisor.runtime.projects import Room

#: What is shown when no number is given.
LAST = 40
#: So many batches are looked at together; one answer holds the facts of at most `PAGE` times as many.
SOME = 200
PAGE = 5
#: What is read from disk together has about so many bytes.
BYTES = 256 * 1024


async def page(room: Room, by: Principal, since: int | None) -> Plain:
    """The last facts; or those from batch `since` on, with `next` where another answer goes on."""
    if since is None:
        return {"events": (await _last(room, by))[0]}
    events: list[Plain] = []
    taken = 0
    async for batches in _from(room, since):
        events += _seen(room, by, batches)
        taken += 1
        if taken == PAGE:
            return {"events": events, "next": batches[-1]["seq"] + 1}
    return {"events": events}


async def follow(call: Call, room: Room, since: int | None) -> None:
    """The same, and then each fact as it is recorded, as notifications until the caller leaves."""

    def tell(events: list[Plain]) -> None:
        for event in events:
            call.notify(event)

    if since is None:
        events, since = await _last(room, call.principal)
        tell(events)
    async for batches in _from(room, since):
        tell(_seen(room, call.principal, batches))
        await call.drained()
    # All that was recorded is told, and there was no waiting since: from here on it is told as it comes.
    waiting: list[Batch] = []
    come = trio.Event()

    def see(batch: Batch) -> None:
        waiting.append(batch)
        come.set()

    unfollow = room.desk.follow(see)
    try:
        while True:
            await come.wait()
            come = trio.Event()
            tell(_seen(room, call.principal, map(_plain, waiting)))
            waiting.clear()
    finally:
        unfollow()


async def _last(room: Room, by: Principal) -> tuple[list[Plain], int]:
    """The last few facts, and the batch that comes after them."""
    events: list[Plain] = []
    begin = _begin(room)
    if begin > 1 and len(_seen(room, by, map(_plain, room.desk.recent))) < LAST:
        events = _seen(room, by, await _read(room, max(1, begin - SOME), begin - 1))
    events += _seen(room, by, (_plain(batch) for batch in room.desk.recent if batch.seq >= begin))
    return events[-LAST:], (room.desk.recent[-1].seq + 1 if room.desk.recent else begin)


async def _from(room: Room, since: int) -> AsyncIterator[list[Plain]]:
    """All batches from `since` to the newest, some together, oldest first."""
    at = since
    while True:
        begin = _begin(room)
        if at < begin:
            # What a person put away is not there: go on with what is.
            batches = await _read(room, at, begin - 1) or [{"seq": begin - 1, "facts": []}]
        else:
            batches = [_plain(batch) for batch in islice(room.desk.recent, at - begin, at - begin + SOME)]
            if not batches:
                return
        yield batches
        at = batches[-1]["seq"] + 1


def _begin(room: Room) -> int:
    """The oldest batch in memory, or the next one."""
    return room.desk.recent[0].seq if room.desk.recent else room.desk.journal.durable + 1


async def _read(room: Room, since: int, until: int) -> list[Plain]:
    def some() -> list[Plain]:
        return segments.read(room.directory, since, min(until, since + SOME - 1), BYTES)

    try:
        return await trio.to_thread.run_sync(some)
    except segments.LostError as error:
        raise refuse("disk", str(error), field="since", asked=since) from None


def _plain(batch: Batch) -> Plain:
    return {"seq": batch.seq, "at": batch.at, "by": batch.by, "facts": [codec.dump(fact) for fact in batch.facts]}


def _seen(room: Room, by: Principal, batches: Iterable[Plain]) -> list[Plain]:
    """The facts that the caller may see, each with its batch's number, time and cause."""
    return [
        {"seq": batch["seq"], "at": batch["at"], "by": batch["by"]} | fact
        for batch in batches
        for fact in batch["facts"]
        if _may_see(room, by, fact)
    ]


def _may_see(room: Room, by: Principal, fact: Plain) -> bool:
    if not isinstance(by, Agent):
        return True
    node = room.project.agents.get(fact.get("agent", ""))
    return node is not None and sees(room.project, by, node) and room.project.within(node, by.agent)
