"""Who waits until something is true of an agent, and what makes them look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio
from attrs import define, field

from supervisor.core.facts import Accepted, Closing, Downed, Granted, Leaving, Left, LinedUp, OutOfLine
from supervisor.runtime.answer import Answer

#: Watched like an agent: the room that the tree has, and these are the facts that may change it.
ROOM = "room"
_ROOM = (Accepted, Closing, Downed, Granted, Leaving, Left, LinedUp, OutOfLine)


@define(eq=False)
class Watch:
    """Someone waits for a condition; `answer` is the batch that made it true."""

    condition: Callable[[], bool]
    answer: Answer
    met: trio.Event = field(factory=trio.Event)

    def look(self, answer: Answer) -> None:
        """This happened: is it true now?"""
        if not self.met.is_set() and self.condition():
            self.answer = answer
            self.met.set()

    async def wait(self) -> None:
        """Until it was true, and that is on disk."""
        await self.met.wait()
        await self.answer.durable.wait()


class Watches:
    """Those of one project, by agent."""

    def __init__(self) -> None:
        self._watches: dict[str, set[Watch]] = {}

    def look(self, answer: Answer) -> None:
        """Whom its facts are about, their watches look."""
        seen = {getattr(fact, "agent", "") for fact in answer.facts}
        if ROOM in self._watches and any(isinstance(fact, _ROOM) for fact in answer.facts):
            seen.add(ROOM)
        for agent in seen & self._watches.keys():
            for watch in tuple(self._watches[agent]):
                watch.look(answer)

    @contextmanager
    def watch(self, agent: str, condition: Callable[[], bool], newest: Answer) -> Iterator[Watch]:
        """Looks at the condition now, with the newest answer, and at each fact about the agent: what is true for a
        moment only counts. Who asked for what makes it true begins to watch before it awaits anything."""
        watch = Watch(condition, newest)
        watches = self._watches.setdefault(agent, set())
        watches.add(watch)
        try:
            watch.look(newest)
            yield watch
        finally:
            watches.discard(watch)
            if not watches and self._watches.get(agent) is watches:
                del self._watches[agent]
