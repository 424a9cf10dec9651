"""What must be true of a fleet that has settled, whatever it went through: each check says what is wrong, in words.
It only looks."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from attrs import evolve, frozen

from supervisor.conformance.lives import Agents, Lives
from supervisor.core import view
from supervisor.core.apply import apply
from supervisor.core.facts import (
    Fact,
    Forgotten,
    Handed,
    Parked,
    Queued,
    Read,
    Returned,
    Starting,
    TurnEnded,
    TurnStarted,
)
from supervisor.core.ledger import NANO, ZERO, Usage
from supervisor.core.state import Project
from supervisor.runtime.containment import marks
from supervisor.runtime.journal import codec
from supervisor.runtime.journal.segments import NAME
from supervisor.runtime.journal.verify import verify

#: What is shown of an agent and changes without a fact.
_CLOCKS = frozenset({"elapsed", "parent", "ages", "silent", "quiet"})


@frozen
class Memory:
    """What a kind's own program remembers of one agent: each text that it acted on, as often as it did, what it spent,
    and how often it was told who it is."""

    heard: Counter[str]
    spent: Usage
    told: int


#: Reads an agent's home. None: this kind cannot be asked.
Recall = Callable[[Path], Memory]


class Record:
    """A project as its journal says: the state that it comes to, every fact that led there, and by agent what its
    forgotten children spent. Whether the chain holds is `journals`' to say, and the daemon's at each of its starts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.project = Project(directory.name)
        self.facts: list[Fact] = []
        self.forgotten: dict[str, Usage] = {}
        self._at = 0

    def read_on(self) -> None:
        """Replay what was added since the last time."""
        with (self.directory / NAME).open("rb") as file:
            file.seek(self._at)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # it is being written
                self._at += len(line)
                batch = json.loads(line)
                for fact in map(codec.load, batch.get("facts", ())):
                    self._take(fact, batch["at"])

    def _take(self, fact: Fact, at: float) -> None:
        if isinstance(fact, Forgotten) and (node := self.project.agents.get(fact.agent)) is not None and node.parent:
            self.forgotten[node.parent] = self.forgotten.get(node.parent, ZERO) + node.branch
        apply(self.project, fact, at)
        self.facts.append(fact)


def all_of(lives: Lives, record: Record, agents: Agents, recall: Recall | None) -> list[str]:
    """Everything that is wrong with a settled fleet."""
    record.read_on()
    wrong = [*processes(lives, record, agents), *shown(record, agents), *books(record), *turns(record), *inputs(record)]
    if recall is not None:
        wrong += memories(record, recall)
    return wrong


def journals(lives: Lives) -> Iterator[str]:
    """Every journal is whole."""
    for path in lives.state.glob("*/" + NAME):
        if (verdict := verify(path)).state == "broken":
            yield f"the journal of {path.parent.name} is {verdict}"


def processes(lives: Lives, record: Record, agents: Agents) -> Iterator[str]:
    """The tree is the processes that exist: no agent without one but those that stand by without, none without its
    agent, and no second daemon."""
    daemons = [each.pid for each in _living(lives.warden.pid)]
    if daemons != [lives.pid]:
        yield f"below the warden live {daemons}; the daemon is {lives.pid}"
    leaders = {each.pid: each for each in _living(lives.pid)}
    for agent in agents.values():
        known = record.project.agents.get(agent["id"])
        stands = known is not None and known.stands
        pid = agent["pid"]
        # A parked one may have its process, or wait without.
        waits = agent["state"] == "parked" and pid is None
        runs = agent["state"] not in ("stopped", "gone") and not stands and not waits
        if runs and leaders.pop(pid, None) is None:
            yield f"{agent['name']} is {agent['state']} as process {pid}, which is none of the daemon's"
        elif runs and (named := marks.named(pid)) is not None and named[1] != agent["id"]:
            yield f"process {pid} of {agent['name']} is marked as that of {named[1]}"
        elif not runs and pid is not None:
            yield f"{agent['name']} is {agent['state']} and has process {pid}"
    for pid, found in leaders.items():
        yield f"process {pid} ({found.comm}, {marks.argv0(pid)}) is no agent's"


def _living(pid: int) -> list[marks.Stat]:
    """The children of a process, without those that wait to be buried."""
    return [found for child in marks.children(pid) if (found := marks.stat(child)) is not None and found.alive]


def shown(record: Record, agents: Agents) -> Iterator[str]:
    """What the daemon shows is what its journal comes to."""
    drawn = [view.agent(record.project, node, time.time()) for node in record.project.agents.values()]
    for one in drawn:
        other = agents.get(one["id"])
        if other is None:
            yield f"the journal has {one['name']} ({one['id']}), the daemon has not"
            continue
        odd = [key for key, value in one.items() if key not in _CLOCKS and _plain(other[key]) != _plain(value)]
        for key in odd:
            yield f"{one['name']}: {key} is {other[key]!r} in the daemon and {one[key]!r} by its journal"
    for name in agents.keys() - {one["id"] for one in drawn}:
        yield f"the daemon has {name}, its journal has not"


def _plain(value: object) -> object:
    """As JSON gives it back."""
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return {key: _plain(each) for key, each in value.items()} if isinstance(value, dict) else value


def books(record: Record) -> Iterator[str]:
    """Nothing is charged twice, reserved twice or lost: each account holds what the agents below it hold of it."""
    project = record.project
    for node in project.agents.values():
        below = [project.agents[child] for child in node.children]
        if node.branch != sum((child.branch for child in below), node.own + record.forgotten.get(node.id, ZERO)):
            yield f"{node.name} and its children do not add up to its branch"
        for field, account in node.accounts.items():
            carved = [at.accounts[field] for at in project.down(node) if at is not node and field in at.accounts]
            reserved = sum(each.held for each in carved if each.holder == node.id)
            if account.reserved != reserved:
                yield f"{node.name} has {account.reserved} {field} reserved, its living children hold {reserved}"
    names = Counter(node.name.casefold() for node in project.agents.values() if node.state != "gone")
    yield from (f"{many} agents are called {name}" for name, many in names.items() if many > 1)


def turns(record: Record) -> Iterator[str]:
    """A turn is charged when it is handed, once, however often its texts are given again; or when the program begins
    one by itself."""
    charged: Counter[str] = Counter()
    under_way: dict[str, set[str]] = {}
    for fact in record.facts:
        if isinstance(fact, Handed) and fact.turn:
            under_way[fact.agent] = set(fact.inputs)
            charged[fact.agent] += 1
        elif isinstance(fact, Read) and under_way.get(fact.agent):
            under_way[fact.agent] = {""}  # it has begun
        elif isinstance(fact, Returned) and under_way.get(fact.agent) == set(fact.inputs):
            charged[fact.agent] -= 1
        elif isinstance(fact, Parked) and under_way.get(fact.agent):
            under_way.pop(fact.agent)
            charged[fact.agent] -= 1  # the turn that goes on with it is the same one
        elif isinstance(fact, TurnStarted) and not under_way.get(fact.agent):
            charged[fact.agent] += 1
        if isinstance(fact, TurnEnded | Returned | Starting):
            under_way.pop(fact.agent, None)
    for node in record.project.agents.values():
        if node.state not in ("stopped", "gone") and node.own.turns != charged[node.id] + node.talk.owed:
            yield f"{node.name} had {charged[node.id]} turns, {node.own.turns} are charged"


def inputs(record: Record) -> Iterator[str]:
    """No text is lost and none is given twice: each waits, or was handed once to a program that began with it."""
    queued: dict[str, str] = {}
    handed: Counter[str] = Counter()
    for fact in record.facts:
        if isinstance(fact, Queued):
            queued[fact.input.id] = fact.agent
        elif isinstance(fact, Handed):
            handed.update(fact.inputs)
        elif isinstance(fact, Returned):
            handed.subtract(fact.inputs)
    for name, agent in queued.items():
        node = record.project.agents.get(agent)
        waits = node is not None and any(item.id == name for item in node.inbox)
        if node is not None and node.state != "gone" and handed[name] + waits != 1:
            yield f"{name} for {node.name} was handed {handed[name]} times for good and waits {int(waits)} times"


def memories(record: Record, recall: Recall) -> Iterator[str]:
    """What the programs themselves remember: each text was acted on once, and the ledger is their bill."""
    given: dict[str, list[str]] = {agent: [] for agent in record.project.agents}
    for fact in record.facts:
        if isinstance(fact, Handed) and fact.agent in given:
            given[fact.agent] += fact.inputs
        elif isinstance(fact, Returned) and fact.agent in given:
            given[fact.agent] = [name for name in given[fact.agent] if name not in fact.inputs]
    for agent, names in given.items():
        node = record.project.agents[agent]
        memory = recall(record.directory / "agents" / agent)
        if node.introduced and memory.heard and not memory.told:
            yield f"{node.name} was never told who it is"
        yield from (f"{node.name} acted {many} times on {name}" for name, many in memory.heard.items() if many > 1)
        if node.state not in ("stopped", "gone"):
            yield from (f"{node.name} never heard of {name}" for name in names if not memory.heard[name])
        own = evolve(node.own, turns=0)  # those are counted by the fleet
        # One that has no process says what it spent as its last one died when it is started again.
        silent = node.state == "gone" or node.stands
        if (own.highest(memory.spent) if silent else own) != memory.spent:
            yield f"{node.name} says that it spent {memory.spent}, the ledger says {own}"


def scripted(home: Path) -> Memory:
    """What a scripted agent remembers, from its session files."""
    heard: Counter[str] = Counter()
    spent: Counter[str] = Counter()
    told = 0
    for path in home.glob("*.session"):
        for line in path.read_text("utf-8").splitlines():
            word, _, rest = line.partition(" ")
            if word == "input":
                heard[rest] += 1
            elif word == "told":
                told += 1
            elif word == "spent":
                for name, _, number in (pair.partition("=") for pair in rest.split()):
                    spent[name] += round(float(number) * NANO) if name == "cost" else int(number)
    return Memory(heard, Usage(**spent), told)
