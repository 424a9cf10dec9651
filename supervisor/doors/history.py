"""The facts that are on record, for who asks for them: the newest from memory, older ones from disk, some at a time. It
never reads a disk on the loop, nor holds more than it is about to send."""

from __future__ import annotations

import trio

from supervisor.core.authority import Principal
from supervisor.core.refusals import refuse
from supervisor.doors import feed
from supervisor.doors.aside import aside
from supervisor.doors.calls import Plain
from supervisor.doors.service import Call
from supervisor.runtime import turn
from supervisor.runtime.journal import segments
from supervisor.runtime.journal.chain import Batch
from supervisor.runtime.projects import Room

#: So many are shown when no number is given.
LAST = 40
#: What is read from disk together: so many batches, of about so many bytes.
SOME, BYTES = 1000, 512 * 1024


async def page(room: Room, by: Principal, since: int | None) -> Plain:
    """The last facts; or those from batch `since` on, with `next` where another answer goes on."""
    first = await _first(room, by) if since is None else since
    found: list[dict[str, object]] = []
    watch = turn.Watch()
    while batches := await _some(room, first):
        for batch in batches:
            found += feed.events(room, by, batch)
            first = batch.seq + 1
            if watch.over:
                await trio.lowlevel.checkpoint()
                watch.again()
        if since is not None:
            return {"events": found} | ({"next": first} if first < room.desk.recent.end else {})
    return {"events": found[-LAST:]}


async def tell(room: Room, call: Call, since: int | None) -> None:
    """The same as notifications, to the newest: who follows from then on without waiting in between misses none and
    hears none twice."""
    first = await _first(room, call.principal) if since is None else since
    watch = turn.Watch()
    while batches := await _some(room, first):
        for batch in batches:
            call.relay(feed.lines(room, call.principal, batch))
            first = batch.seq + 1
            if watch.over:
                await call.drained()
                await trio.lowlevel.checkpoint()
                watch.again()


async def _first(room: Room, by: Principal) -> int:
    """From which batch on there are about as many facts as are shown when no number is given."""
    count, first = 0, _begin(room)
    for batch in reversed(list(room.desk.recent)):
        count += len(feed.events(room, by, batch))
        first = batch.seq
        if count >= LAST:
            return first
    for batch in reversed(await _older(room, max(1, first - SOME), first - 1) if first > 1 else []):
        count += len(feed.events(room, by, batch))
        first = batch.seq
        if count >= LAST:
            break
    return first


async def _some(room: Room, first: int) -> list[Batch]:
    """What is on record from batch `first` on, as much as is looked at together. None is all: it was not waited for."""
    while first < (begin := _begin(room)):
        if older := await _older(room, first, begin - 1):
            return older
        first = begin  # a person put away what was before
    return [batch for batch in room.desk.recent if batch.seq >= first]


def _begin(room: Room) -> int:
    """The oldest batch in memory, else the next one."""
    return room.desk.recent.begin or room.desk.journal.durable + 1


async def _older(room: Room, since: int, until: int) -> list[Batch]:
    until = min(until, since + SOME - 1)
    try:
        return await aside(lambda: segments.read(room.directory, max(1, since), until, BYTES))
    except segments.LostError as error:
        raise refuse("disk", str(error), field="since", asked=since) from None
