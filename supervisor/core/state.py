"""One project's state: the tree of agents with all that is known of them. It is changed by `apply` alone."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import Factory, define

from supervisor.core.books import Books, Key, Rows
from supervisor.core.facts import Exited, Input, Killed, Started
from supervisor.core.grants import Grant
from supervisor.core.ledger import ZERO, Meter, Usage
from supervisor.core.lifecycle import AWAY, LIVE, State
from supervisor.core.likeness import shape
from supervisor.core.line import Place
from supervisor.core.parking import Park, Trip
from supervisor.core.spec import Fleet, Spec
from supervisor.core.talk import Talk


@define
class Account:
    """One budget that an agent holds. `holder` is the agent that it was carved from, always the nearest one above that
    holds this budget ("" where none does: the agent's own limit). `spent` counts its own use, what draws on it, and
    what carved children are over; `reserved` is what living carved children hold."""

    held: int
    holder: str
    spent: int = 0
    reserved: int = 0

    @property
    def committed(self) -> int:
        """What is spent or promised."""
        return self.spent + self.reserved

    @property
    def free(self) -> int:
        """What can still be asked for, never below zero."""
        return max(0, self.held - self.committed)

    @property
    def over(self) -> int:
        """What was spent past the limit: usage arrives after spending. It is the holder's to bear, at once."""
        return max(0, self.committed - self.held)


@define
class Node:
    """One agent. `born`, `since` and `until` are Unix seconds, for people. `entry` is the folded name under which the
    accepted file declares it, whatever it is called now; `declares` has the newest agent of each entry below it."""

    id: str
    name: str
    parent: str | None
    spec: Spec
    grant: Grant
    declared: bool
    by: str
    born: float
    since: float
    replaces: str = ""
    state: State = "stopped"
    wanted: str = "running"
    entry: str = ""
    children: list[str] = Factory(list)
    declares: dict[str, str] = Factory(dict)
    #: how many of its children are not away, and how many are not gone
    around: int = 0
    here: int = 0
    # its runs
    run: int = 0
    alive: bool = False
    rerun: bool | None = None
    #: it stands by without a process, because its program does one task and ends
    stands: bool = False
    pid: int = 0
    session: str = ""
    introduced: bool = False
    talk: Talk = Factory(Talk)
    model: str = ""
    #: what its last run was started with, and the models that it said it uses and does not hold
    started: Started | None = None
    outside: tuple[str, ...] = ()
    crashes: int = 0
    crashed: int = 0
    exit: Exited | None = None
    killed: tuple[Killed, ...] = ()
    reason: str = ""
    # its work
    inbox: list[Input] = Factory(list)
    handed: list[Input] = Factory(list)
    task: Input | None = None
    tasks: int = 0
    last: str = ""
    text: str = ""
    summary: str = ""
    verdict: str = ""
    status: str = ""
    waiting_on: str = ""
    garbled: int = 0
    #: a turn runs, in whatever state; it was told to end; how many texts there had been when it asked for an answer
    turn: bool = False
    cut: bool = False
    asked: int = 0
    #: its task waits for those of its children
    awaits: bool = False
    #: it asked something that a text answers; what it asks that a person approves or denies, oldest first
    asks: bool = False
    prompts: dict[str, str] = Factory(dict)
    #: why it leaves, and who asked for it
    leaving: str = ""
    ended_by: str = ""
    until: float | None = None
    # what its provider takes: which login it has, why it is parked, the limit that its task waits out, how often it
    # was parked since a model answered, and whether it is tried although its login is stopped
    credential: str = ""
    park: Park | None = None
    limited: str = ""
    parks: int = 0
    trying: bool = False
    # what it holds and spent
    accounts: dict[str, Account] = Factory(dict)
    seat: str = ""
    warned: set[tuple[str, int]] = Factory(set)
    meter: Meter = Factory(Meter)
    own: Usage = ZERO
    branch: Usage = ZERO
    #: its own by day and model: of the last day, of those before, and what of it is not kept by day any more
    rows: dict[Key, Usage] = Factory(dict)
    days: Rows = ()
    earlier: Usage = ZERO
    #: how full its conversation's window is (percent), its size, what the last call held, and the table of that size
    context: float | None = None
    window: int | None = None
    held: int | None = None
    sized: str = ""
    lasted: float = 0.0

    @property
    def live(self) -> bool:
        """Neither leaving nor away."""
        return self.state in LIVE

    @property
    def away(self) -> bool:
        """Stopped or gone."""
        return self.state in AWAY


@define
class Project:
    """The whole of one project. `names` maps a folded name to its id; `former` an old folded name to who had it;
    `declares` the entries of the accepted file to the newest main of each. `gone` and `waiting` are ordered sets of
    ids: who is only kept in view, and for whom texts wait."""

    id: str
    name: str = ""
    file: str = ""
    sha256: str = ""
    path: str = ""
    fleet: Fleet | None = None
    wanted: bool = False
    closing: bool = False
    #: the daemon that took the project up last
    instance: str = ""
    agents: dict[str, Node] = Factory(dict)
    mains: list[str] = Factory(list)
    names: dict[str, str] = Factory(dict)
    former: dict[str, str] = Factory(dict)
    declares: dict[str, str] = Factory(dict)
    gone: dict[str, None] = Factory(dict)
    waiting: dict[str, None] = Factory(dict)
    #: whose tasks wait for those of their children
    awaiting: dict[str, None] = Factory(dict)
    #: the logins that take no more for now
    tripped: dict[str, Trip] = Factory(dict)
    #: the forks that wait for room, in the order they were asked for; how many have so far
    line: dict[str, Place] = Factory(dict)
    lined: int = 0
    unnamed: int = 0
    inputs: int = 0
    highest: int = 0
    living: int = 0
    refused: int = 0
    folded: Usage = ZERO
    books: Books = Factory(Books)

    def up(self, node: Node) -> Iterator[Node]:
        """The agent, then its parent, to the main."""
        at: Node | None = node
        while at is not None:
            yield at
            at = self.agents[at.parent] if at.parent is not None else None

    def down(self, node: Node) -> Iterator[Node]:
        """The agent, then all below it, parents first."""
        stack = [node.id]
        while stack:
            at = self.agents[stack.pop()]
            yield at
            stack.extend(reversed(at.children))

    def within(self, node: Node, branch: str) -> bool:
        """Whether the agent is in the branch of `branch`, itself included."""
        return any(at.id == branch for at in self.up(node))

    def level(self, node: Node) -> int:
        """How many agents stand above it: 0 for a main."""
        return sum(1 for _ in self.up(node)) - 1

    def holder(self, node: Node | None, field: str) -> Node | None:
        """The nearest agent, itself included, that holds a budget of this field."""
        return next((at for at in self.up(node) if field in at.accounts), None) if node is not None else None

    def above(self, node: Node) -> Node | None:
        """The parent; None above a main."""
        return self.agents[node.parent] if node.parent is not None else None

    def once(self, node: Node) -> bool:
        """Whether the agent's program does one task and ends, so that it stands by without a process."""
        return self.fleet is not None and self.fleet.once(node.spec.kind)

    def giver(self, node: Node) -> str:
        """Who could give the agent more: its parent, by name, or a person."""
        return self.agents[node.parent].name if node.parent is not None else "operator"


def fold(name: str) -> str:
    """How names are compared: trimmed, without case, and by what they look like."""
    return shape(name.strip())
