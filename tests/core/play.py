"""One project's core, driven by hand: what is asked and what happens goes in, facts come out; a second state that only
replays these facts must be equal at every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve

from supervisor.core.apply import apply
from supervisor.core.authority import Agent, Operator, Principal
from supervisor.core.decide.gate import decide, take
from supervisor.core.decide.moment import Moment
from supervisor.core.facts import (
    Due,
    Exited,
    Fact,
    Opened,
    Ready,
    Refused,
    Spent,
    Started,
    TurnEnded,
)
from supervisor.core.grants import Grant
from supervisor.core.ledger import Report, Usage
from supervisor.core.refusals import Refusal
from supervisor.core.requests import VERB, Request, Stamp, Up
from supervisor.core.spec import Declared, Fleet, KindSpec, Role, Spec
from supervisor.core.state import Node, Project, fold

OPERATOR = Operator()
#: How each digest begins.
EVENT = "[fleet: an automatic event, not a request from the person] "
KINDS = (KindSpec("lines", "lines"), KindSpec("other", "lines"), KindSpec("errand", "lines", once=True))


def agent(name: str, *children: Declared, grant: Grant = Grant(), **spec: Any) -> Declared:
    """A declared agent, of the kind `lines` if nothing else is said."""
    return Declared(name, Spec(**{"kind": "lines", "task": "", **spec}), grant, children)


def fleet(*agents: Declared, roles: tuple[Role, ...] = (), **settings: Any) -> Fleet:
    """A project that declares these agents."""
    return Fleet("project", agents, roles, **{"kinds": KINDS, **settings})


def accept(content: Fleet, file: str = "/p/agents.toml") -> Up:
    """The request to run this content."""
    return Up(file, str(hash(repr(content))), "/bin", content)


def usage(tokens: int = 0, **more: int) -> Usage:
    """Fresh input of so many tokens."""
    return Usage(input=tokens, **more)


class Play:
    """The project, its replayed twin, and every batch so far. Agents are named by name or id."""

    def __init__(self, content: Fleet | None = None, *, each: Callable[[Project, Fact, float], None] = apply) -> None:
        self.project = Project("project-1")
        self.twin = Project("project-1")
        self.batches: list[tuple[float, tuple[Fact, ...]]] = []
        self.stamp = Stamp(1000.0)
        self._each = each
        if content is not None:
            self.facts(accept(content))

    # --- in

    def ask(self, request: Request, by: Principal = OPERATOR) -> list[Fact] | Refusal:
        """What a request comes to, taken. Deciding alone may not change anything, nor may a refusal."""
        moment = self._moment()
        decided = decide(self.project, by, request, moment)
        assert self.project == self.twin
        if isinstance(decided, Refusal):
            self._take([Refused(VERB[type(request)], decided.code, decided.message)], moment)
            return decided
        return self._take(decided, moment)

    def tell(self, *happened: Fact) -> list[Fact]:
        """What follows from what happened, itself included."""
        return self._take(list(happened), self._moment())

    def _moment(self) -> Moment:
        self.stamp = evolve(self.stamp, at=self.stamp.at + 1)
        return Moment.of(self.project, self.stamp)

    def _take(self, facts: list[Fact], moment: Moment) -> list[Fact]:
        taken = take(self.project, facts, moment)
        self.batches.append((moment.stamp.at, tuple(taken)))
        for fact in taken:
            self._each(self.twin, fact, moment.stamp.at)
        assert self.project == self.twin
        return taken

    # --- the same, where only one outcome will do

    def facts(self, request: Request, by: Principal = OPERATOR) -> list[Fact]:
        """The facts of a request that must not be refused."""
        said = self.ask(request, by)
        assert not isinstance(said, Refusal), said
        return said

    def refused(self, request: Request, by: Principal = OPERATOR) -> Refusal:
        """The refusal of a request that must be refused."""
        said = self.ask(request, by)
        assert isinstance(said, Refusal), said
        return said

    # --- who

    def node(self, name: str) -> Node:
        """The agent that has this name or id."""
        project = self.project
        return project.agents[name] if name in project.agents else project.agents[project.names[fold(name)]]

    def by(self, name: str) -> Agent:
        """The agent as a caller: its running run."""
        node = self.node(name)
        return Agent(self.project.id, node.id, node.run)

    # --- what the world does

    def ready(self, *names: str, session: str = "s") -> list[Fact]:
        """Their programs run and take input."""
        taken: list[Fact] = []
        for name in names:
            node = self.node(name)
            taken += self.tell(Started(node.id, node.run, 100 + node.run, 1))
            taken += self.tell(Ready(node.id, node.run, session))
        return taken

    def spend(self, name: str, tokens: int, **more: int) -> list[Fact]:
        """One model call of so many tokens."""
        node = self.node(name)
        return self.tell(Spent(node.id, node.run, (Report("call", usage(tokens, **more)),)))

    def end_turn(self, name: str, text: str = "") -> list[Fact]:
        """Its turn ends well."""
        node = self.node(name)
        return self.tell(TurnEnded(node.id, node.run, "ok", text))

    def exit(self, name: str, code: int | None = 0, signal: int | None = None, lasted: float = 5.0) -> list[Fact]:
        """Its run is over and empty."""
        node = self.node(name)
        return self.tell(Exited(node.id, node.run, code, signal, lasted))

    def due(self, name: str) -> list[Fact]:
        """Its wait is over."""
        node = self.node(name)
        return self.tell(Due(node.id, node.run))

    def reopen(self) -> list[Fact]:
        """Another daemon takes the project up after a crash."""
        return self.tell(Opened("2", "warden"))

    # --- afterwards

    def replayed(self) -> Project:
        """The state of a daemon that has only the journal."""
        project = Project("project-1")
        for at, facts in self.batches:
            for fact in facts:
                apply(project, fact, at)
        return project
