"""The facts of one project as they are recorded, for all who follow them: each is made into a line once, however many
read it. Must never wait for a reader."""

from __future__ import annotations

from collections.abc import Callable

from supervisor.core.authority import Agent, Principal
from supervisor.core.facts import Fact
from supervisor.core.names import sees
from supervisor.doors import wire
from supervisor.runtime.journal import codec
from supervisor.runtime.journal.chain import Batch
from supervisor.runtime.projects import Room

#: Takes lines for one reader.
Relay = Callable[[bytes], None]


class Feed:
    """One project's readers, by who they are: what one may see, all of the same name may."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._readers: dict[Principal, list[Relay]] = {}
        self._unfollow: Callable[[], None] = lambda: None

    def follow(self, by: Principal, relay: Relay) -> Callable[[], None]:
        """Relay what is recorded from now on; returns what ends that."""
        if not self._readers:
            self._unfollow = self._room.desk.follow(self._tell)
        self._readers.setdefault(by, []).append(relay)
        return lambda: self._leave(by, relay)

    def _leave(self, by: Principal, relay: Relay) -> None:
        self._readers[by].remove(relay)
        if not self._readers[by]:
            del self._readers[by]
        if not self._readers:
            self._unfollow()

    def _tell(self, batch: Batch) -> None:
        for by, relays in self._readers.items():
            told = lines(self._room, by, batch)
            for relay in relays if told else ():
                relay(told)


def lines(room: Room, by: Principal, batch: Batch) -> bytes:
    """The events of a batch as notifications."""
    return b"".join(wire.notification("events", event) for event in events(room, by, batch))


def events(room: Room, by: Principal, batch: Batch) -> list[dict[str, object]]:
    """What of a batch the caller may see: an agent its own branch."""
    return [
        {"seq": batch.seq, "at": batch.at, "by": batch.by, **codec.dump(fact)}
        for fact in batch.facts
        if _seen(room, by, fact)
    ]


def _seen(room: Room, by: Principal, fact: Fact) -> bool:
    if not isinstance(by, Agent):
        return True
    node = room.project.agents.get(getattr(fact, "agent", ""))
    return node is not None and sees(room.project, by, node) and room.project.within(node, by.agent)
