"""The one gate of a project: requests and facts pass here, are applied at once, and act only when they are durable.
It decides nothing itself and awaits nothing between deciding and applying."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager

import trio
from attrs import define, evolve

from supervisor.core.authority import Agent, Principal
from supervisor.core.decide.gate import decide, take
from supervisor.core.decide.moment import Moment
from supervisor.core.facts import Fact
from supervisor.core.refusals import Refusal
from supervisor.core.requests import VERB, Fork, Hold, Instruct, Request, Stamp, Start, Up
from supervisor.core.state import Project
from supervisor.runtime import points, turn
from supervisor.runtime.allowance import Allowance
from supervisor.runtime.answer import Answer
from supervisor.runtime.journal import snapshot
from supervisor.runtime.journal.chain import Batch
from supervisor.runtime.journal.journal import Journal
from supervisor.runtime.journal.recent import Recent
from supervisor.runtime.refused import Refusals
from supervisor.runtime.watches import Watch, Watches

#: What a disk that is nearly full has no room for. All else goes on: it may be what makes room.
NEW_WORK = (Fork, Instruct, Start, Up)
#: Forks are counted over this many seconds.
RATE_WINDOW = 60.0
#: What the requests of one agent may add to the journal: this much at once, and this much a second (bytes).
BURST, RATE = 4 * 1024 * 1024, 64 * 1024
#: For so many agents it is remembered before those that are quiet again are forgotten.
REMEMBERED = 1000


@define
class _Open:
    """A batch that waits for the disk."""

    batch: Batch
    line: bytes
    answer: Answer


class Desk:
    """One project's state, journal and gate. `act` is called for each durable fact, in order; `next_agent` gives the
    daemon's next free agent number; `forked` tells it which was used."""

    def __init__(
        self,
        project: Project,
        journal: Journal,
        act: Callable[[Fact], None],
        next_agent: Callable[[], int],
        admit_work: Callable[[], Refusal | None] = lambda: None,
    ) -> None:
        self.project = project
        self.journal = journal
        #: by agent, what passes on usage that was reported and still waits for more
        self.gathered: dict[str, Callable[[], None]] = {}
        self.recent = Recent()
        self._act = act
        self._next_agent = next_agent
        self._admit_work = admit_work
        self._waiting: list[_Open] = []
        self._work = trio.Event()
        self._newest = Answer()
        self._newest.durable.set()
        self._watches = Watches()
        self._followers: set[Callable[[Batch], None]] = set()
        self._forks: dict[str, deque[float]] = {}
        self._refusals = Refusals()
        self._written: dict[str, Allowance] = {}

    @property
    def unrecorded(self) -> int:
        """Refusals that are not on record one by one."""
        return self._refusals.unrecorded

    # --- the gate

    def ask(self, by: Principal, request: Request) -> Answer:
        """Decide and apply a request. Its reply belongs to the caller only once `durable` is set."""
        if isinstance(request, Fork | Hold):
            # What is left of a budget is asked for: all that is known to be spent must be in the books.
            for flush in tuple(self.gathered.values()):
                flush()
        stamp = self._stamp(by)
        moment = Moment.of(self.project, stamp)
        refusal = (self._admit_work() if isinstance(request, NEW_WORK) else None) or self._too_much(by)
        decided = refusal or decide(self.project, by, request, moment)
        if isinstance(decided, Refusal):
            return self._refuse(str(by), VERB[type(request)], decided)
        taken = take(self.project, decided, moment)
        if isinstance(request, Fork) and not request.place:
            self._forks.setdefault(self._instance(by), deque()).append(trio.current_time())
        answer = self._record(str(by), taken, stamp.at)
        if isinstance(by, Agent):
            self._written[str(by)].take(answer.size)
        return answer

    def plan(self, by: Principal, request: Request) -> list[Fact] | Refusal:
        """What a request would come to, without what follows from it; nothing happens."""
        return decide(self.project, by, request, Moment.of(self.project, self._stamp(by)))

    def observe(self, *facts: Fact) -> Answer:
        """Take what happened."""
        points.reach("observing", facts)
        stamp = self._stamp()
        taken = take(self.project, list(facts), Moment.of(self.project, stamp))
        return self._record("fleet", taken, stamp.at)

    def refuse(self, by: Principal, verb: str, refusal: Refusal) -> Answer:
        """Put a refusal of a door on record."""
        return self._refuse(str(by), verb, refusal)

    def _instance(self, by: Principal | None) -> str:
        """Whose forks are counted together: those of a whole instance, so that a chain of agents that each fork one is
        a loop as well."""
        node = self.project.agents.get(by.agent) if isinstance(by, Agent) else None
        return [*self.project.up(node)][-1].id if node is not None else str(by)

    def _stamp(self, by: Principal | None = None) -> Stamp:
        now, instance = trio.current_time(), self._instance(by)
        forks = self._forks.get(instance)
        while forks and forks[0] < now - RATE_WINDOW:
            forks.popleft()
        if forks is not None and not forks:
            del self._forks[instance]
        chance = random.random()  # noqa: S311  # jitter, no secret
        return Stamp(time.time(), self._next_agent(), len(forks or ()), chance, time.strftime("%Y-%m-%d"))

    def _refuse(self, by: str, verb: str, refusal: Refusal) -> Answer:
        fact, moment = self._refusals.take(by, verb, refusal), Moment.of(self.project, self._stamp())
        taken = take(self.project, [fact], moment) if fact is not None else []
        return Answer(refusal, durable=self._record(by, taken, moment.stamp.at).durable)

    def _too_much(self, by: Principal) -> Refusal | None:
        """An agent that changes things in a loop would fill the disk, one small change at a time."""
        if not isinstance(by, Agent):
            return None
        if len(self._written) > REMEMBERED:
            self._written = {who: allowance for who, allowance in self._written.items() if not allowance.full}
        if self._written.setdefault(str(by), Allowance(BURST, RATE)).wait == 0:
            return None
        message = f"{by} has changed so much that it must wait: {RATE} bytes a second of the journal are for one agent"
        return Refusal("rate", message, field="journal", held=RATE)

    def _record(self, by: str, taken: list[Fact], at: float) -> Answer:
        if not taken:
            # Nothing new, but what it rests on may still be on its way to the disk.
            return Answer(seq=self.journal.seq, durable=self._newest.durable)
        points.reach("decided", taken)
        answer = Answer(facts=tuple(taken))
        if self.journal.fault is not None:
            return answer  # the disk failed and the daemon ends: this never was, and nobody acts on it
        self._newest = answer
        batch = Batch(at, by, tuple(taken))
        line = self.journal.encode(batch)
        answer.seq, answer.size = self.journal.seq, len(line)
        self._waiting.append(_Open(evolve(batch, seq=answer.seq), line, answer))
        points.reach("appended", taken)
        self._work.set()
        self._watches.look(answer)
        return answer

    # --- durability

    async def run(self) -> None:
        """The flusher: one write and one fsync at a time; what arrives meanwhile shares the next. An error of the
        disk leaves here and ends the daemon before anything of the batch was acted on."""
        while True:
            await self._work.wait()
            self._work = trio.Event()
            # What is decided while the disk is busy belongs to the next segment: the state is taken now.
            seq, state = self.journal.seq, snapshot.copied(self.project) if self.journal.full() else None
            await self._flush()
            if state is not None:
                await trio.to_thread.run_sync(self.journal.rotate, state, seq)

    async def _flush(self) -> None:
        ready, self._waiting = self._waiting, []
        if not ready:
            return
        with trio.CancelScope(shield=True):  # what was taken from `_waiting` is written, acted on and answered
            await trio.to_thread.run_sync(self.journal.write, [item.line for item in ready])
            for item in ready:
                points.reach("flushed", item.batch.facts)
            await self._settle(ready)

    async def _settle(self, ready: list[_Open]) -> None:
        """These are on disk: act, answer and tell, in order."""
        watch = turn.Watch()
        for item in ready:
            if watch.over:
                await trio.lowlevel.checkpoint()
                watch.again()
            self.recent.append(item.batch, len(item.line))
            for fact in item.batch.facts:
                self._act(fact)
            points.reach("acted", item.batch.facts)
            item.answer.durable.set()
            for follower in tuple(self._followers):
                follower(item.batch)

    async def drain(self) -> None:
        """Make everything durable that was taken so far; for the end of the daemon, when `run` is over."""
        while self._waiting:
            await self._flush()

    # --- waiting and watching

    async def recorded(self) -> None:
        """Wait until all that is decided by now is on record."""
        await self._newest.durable.wait()

    def follow(self, follower: Callable[[Batch], None]) -> Callable[[], None]:
        """Call `follower` with each durable batch, without waiting for it; returns what ends that."""
        self._followers.add(follower)
        return lambda: self._followers.discard(follower)

    async def until(self, agent: str, condition: Callable[[], bool]) -> None:
        """Wait until the condition was true at a fact about the agent (or is by now), durably."""
        with self.watch(agent, condition) as watch:
            await watch.wait()

    def watch(self, agent: str, condition: Callable[[], bool]) -> AbstractContextManager[Watch]:
        """A watch that looks at what is decided by now, and at each fact about the agent."""
        return self._watches.watch(agent, condition, self._newest)
