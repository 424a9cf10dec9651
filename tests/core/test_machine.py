"""The core against everything that can be asked of it and all that a lying world can report, in any order."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from attrs import evolve
from hypothesis import HealthCheck, event, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from supervisor.core import books, facts
from supervisor.core.authority import Agent, Nobody, Principal
from supervisor.core.decide import leave, room
from supervisor.core.facts import Fact
from supervisor.core.line import Place
from supervisor.core.names import automatic
from supervisor.core.refusals import Refusal
from supervisor.core.requests import Down, Fork, Request, Start
from supervisor.core.state import Node
from tests.core import anything, invariants
from tests.core.allowed import Before, could_be_given, was_the_callers_to_ask
from tests.core.books import SPENT
from tests.core.play import OPERATOR, Play, accept
from tests.core.refused import RIGHT, Case

OUTCOMES: list[facts.Outcome] = ["ok", "ok", "ok", "error", "aborted"]
#: One seed a step; what is done with it is noted: a failure reads as a list of what was asked and what happened.
RANDOM = st.randoms(use_true_random=True)
#: So little is kept that everything is folded, and folded again.
FEW = {"DAYS": 2, "ROWS": 8, "MODELS": 2, "PAIRS": 3, "SUMMED": 4, "EVER": 4}


class Core(RuleBasedStateMachine):
    """One project for its whole life. The rules are few, so that each run meets all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.watch = invariants.Watch()
        self.play = Play(each=self.watch.apply)
        self.whole: set[tuple[str, str]] = set()
        self.waits: dict[str, tuple[Fork, Principal]] = {}
        self.seen = 0
        self.kept, leave.GONE_KEPT = leave.GONE_KEPT, 4
        self.bounds = {name: getattr(books, name) for name in FEW}
        for name, few in FEW.items():
            setattr(books, name, few)

    # --- who

    def pick(self, rnd: Random, what: Callable[[Node], bool] = lambda _: True) -> Node | None:
        """An agent of which this is true."""
        nodes = [node for node in self.play.project.agents.values() if what(node)]
        return rnd.choice(nodes) if nodes else None

    def caller(self, rnd: Random) -> Principal:
        """A person mostly, an agent often, nobody at times."""
        which = rnd.choice(["person"] * 12 + ["agent"] * 10 + ["old", "foreign", "nobody"])
        if which in ("person", "nobody"):
            return OPERATOR if which == "person" else Nobody("seen from afar")
        node = self.pick(rnd, lambda node: node.alive or which != "agent")
        if node is None:
            return Agent("project-1", "a999", 1)
        return Agent("project-1" if which != "foreign" else "project-2", node.id, node.run - (which == "old"))

    def target(self, rnd: Random) -> str:
        """An agent as someone may write it."""
        node = self.pick(rnd, lambda node: node.state != "gone" or not rnd.randrange(6))
        if node is None or not rnd.randrange(30):
            return "a999"
        if rnd.randrange(4):
            return node.id
        old = rnd.choice([*self.play.project.former] or ["was"])
        return rnd.choice(
            [node.name, node.name.upper(), node.name[:3], f" {node.name} ", "role:reviewer", "role:", "", "e", old]
        )

    def ask(self, request: Request, by: Principal = OPERATOR) -> None:
        """Ask, and hold a refusal to have been right."""
        numbers, before = {*self.watch.numbers}, Before.of(self.play.project, by, request, self.play.stamp)
        line = {**self.play.project.line}
        said = self.play.ask(request, by)
        note(f"{by} asks {request}: {said}")
        event(said.code if isinstance(said, Refusal) else type(request).__name__)
        if isinstance(said, Refusal):
            RIGHT[said.code](Case(self.play.project, by, request, self.play.stamp, said))
        else:
            was_the_callers_to_ask(before)
            could_be_given(self.play.project, before, said)
            self.forked(request, by, line, said)
        if (
            not isinstance(said, Refusal)
            and isinstance(request, Fork)
            and not request.name
            and (born := next((fact for fact in said if isinstance(fact, facts.Born)), None)) is not None
        ):
            assert automatic(born.name) > max(numbers), "a made name is made once"
        self.all_holds()

    def forked(self, request: Request, by: Principal, line: dict[str, Place], said: list[Fact]) -> None:
        """A fork that was not refused waits, or was given nothing that others wait for."""
        if not isinstance(request, Fork):
            return
        for fact in said:
            if isinstance(fact, facts.LinedUp):
                self.waits[fact.place] = (evolve(request, place=fact.place), by)
        if isinstance(said[0] if said else None, facts.Born | facts.OutOfLine):
            born = next(fact for fact in said if isinstance(fact, facts.Born))
            invariants.nobody_was_passed(self.play.project, born, line, request.place)

    @rule(rnd=RANDOM)
    def the_line(self, rnd: Random) -> None:
        """Those whose turn it may be ask again; some ask for nothing, some have hung up."""
        for place in [*self.play.project.line]:
            request, by = self.waits[place]
            if not rnd.randrange(6):
                self.tell(facts.OutOfLine(place, "asker"))
            elif place in self.play.project.line and (room.due(self.play.project, place) or not rnd.randrange(4)):
                due, batches = room.due(self.play.project, place), len(self.play.batches)
                self.ask(request, by)
                answered = any(self.play.batches[batches][1])
                assert answered or not due, "whose turn it may be is told something"
                self.gives_up(place, batches)

    def gives_up(self, place: str, batches: int) -> None:
        """One that was refused waits no longer: whoever asks for it sees to that."""
        if any(isinstance(fact, facts.Refused) for fact in self.play.batches[batches][1]):
            self.tell(facts.OutOfLine(place, "refused"))

    def tell(self, *happened: Fact) -> None:
        """The world reports."""
        note(f"{happened}: {self.play.tell(*happened)}")
        event(type(happened[0]).__name__)
        self.all_holds()

    # --- people and agents ask

    @initialize(rnd=RANDOM)
    def begin(self, rnd: Random) -> None:
        """The first file."""
        self.ask(accept(rnd.choice([anything.GOOD, anything.content(rnd)])))

    @rule(rnd=RANDOM, many=st.integers(2, 8))
    def requests(self, rnd: Random, many: int) -> None:
        """Anything, of anyone, by anyone; and agents that fork, as they do all day."""
        for _ in range(many):
            self.play.stamp = evolve(self.play.stamp, forks=anything.rarely(rnd, 10, 0, 30), chance=rnd.random())
            if not self.play.project.living and rnd.randrange(3):
                self.revive(rnd)
            elif not rnd.randrange(4) and (node := self.pick(rnd, lambda node: node.alive)) is not None:
                self.ask(anything.modest_fork(rnd), Agent("project-1", node.id, node.run))
            elif not rnd.randrange(6):
                self.file(rnd)
            else:
                self.ask(anything.request(rnd, self.target(rnd)), self.caller(rnd))

    def revive(self, rnd: Random) -> None:
        """Nobody is left: someone comes back, or all begins anew."""
        node = self.pick(rnd, lambda node: node.state == "stopped" or not rnd.randrange(3))
        if node is not None and rnd.randrange(2):
            self.ask(Start(node.id))
        else:
            self.ask(Down())
            self.ask(accept(rnd.choice([anything.GOOD, anything.content(rnd)])))

    def file(self, rnd: Random) -> None:
        """The same file with one change, the first one again, or another; at times the project goes down."""
        now = self.play.project.fleet
        if now is not None and self.play.project.wanted and rnd.randrange(3):
            self.ask(accept(anything.changed(rnd, now)))
        else:
            again = accept(anything.GOOD)
            which: list[Request] = [again, accept(anything.content(rnd)), Down() if not rnd.randrange(3) else again]
            self.ask(rnd.choice(which), self.caller(rnd))

    # --- the world does what is asked, and lies

    @rule(rnd=RANDOM, many=st.integers(2, 12))
    def proceed(self, rnd: Random, many: int) -> None:
        """What would come next for some of the agents."""
        for _ in range(many):
            node = self.pick(rnd, lambda node: node.alive or node.state in ("backoff", "parked"))
            if node is not None:
                self.next(rnd, node)

    def next(self, rnd: Random, node: Node) -> None:
        """What would come next for one."""
        run = (node.id, node.run)
        if node.state == "backoff" or (node.state == "parked" and rnd.randrange(3)):
            self.tell(facts.Due(*run))
        elif node.state == "stopping" or node.rerun is not None:
            self.tell(facts.Exited(*run, *rnd.choice([(0, None), (1, None), (None, 9)]), 5.0))
        elif node.talk.once and node.talk.turn == "over":
            self.tell(facts.Exited(*run, *rnd.choice([(0, None), (0, None), (1, None), (None, 15)]), 1.0, stood=2.0))
        elif node.state == "starting":
            self.started(rnd, node)
        elif node.state == "parked" and node.alive:
            ends: list[Fact] = [facts.Exited(*run, 1, None, 5.0), facts.TurnEnded(*run, "error", "", "429")]
            self.tell(rnd.choice(ends))
        elif node.state == "working" and not rnd.randrange(4):
            self.tell(anything.limited(rnd, *run))
        elif node.state == "working":
            outcome = rnd.choice(OUTCOMES)
            self.tell(facts.TurnEnded(*run, outcome, "All done."))

    def started(self, rnd: Random, node: Node) -> None:
        """Its program is there, unless its login is known to be stopped."""
        run, login = (node.id, node.run), rnd.choice(anything.LOGINS)
        if login in self.play.project.tripped and not node.trying:
            self.tell(facts.Unstarted(*run, "its login is stopped", login))
        else:
            ready = facts.Ready(*run, "session", tells=rnd.choice([True, False]))
            self.tell(facts.Started(*run, 10, 1, login), ready)

    def run(self, rnd: Random) -> tuple[str, int]:
        """An agent and one of its runs, the present one mostly."""
        node = self.pick(rnd, lambda node: node.alive or not rnd.randrange(8))
        return (
            (node.id, max(0, node.run + anything.rarely(rnd, rnd.choice([-1, 1]), 0)))
            if node is not None
            else ("a999", 1)
        )

    @rule(rnd=RANDOM, many=st.integers(1, 6))
    def the_world(self, rnd: Random, many: int) -> None:
        """Any fact at any time, perhaps twice; usage in every scope, in time or late."""
        if not rnd.randrange(4):
            self.play.stamp = evolve(self.play.stamp, day=anything.day(rnd))
        for _ in range(many):
            node = self.pick(rnd, lambda node: bool(node.handed))
            if not rnd.randrange(12):
                self.tell(anything.elsewhere(rnd, self.play.stamp.at))
            elif rnd.randrange(2):
                self.spend(rnd)
            elif node is not None and not rnd.randrange(3):
                self.tell(anything.read(rnd, node.id, node.run, [item.id for item in node.handed]))
            else:
                fact = anything.observation(rnd, *self.run(rnd))
                self.tell(*[fact] * rnd.choice([1, 1, 2]))

    def spend(self, rnd: Random) -> None:
        """A turn that goes on with nothing left is cut."""
        one, run = self.run(rnd)
        reports = tuple(anything.report(rnd) for _ in range(rnd.randrange(4)))
        self.tell(facts.Spent(one, run, reports, rnd.choice([0, 0, 0, 1, -1])))
        node = self.play.project.agents.get(one)
        if node is not None and node.state == "working" and node.alive:
            used_up = [node.accounts.get(field) for field in ("tokens", "cost")]
            assert node.cut or all(account is None or account.free for account in used_up)

    @rule(rnd=RANDOM)
    def another_daemon(self, rnd: Random) -> None:
        """The daemon dies, or leaves in order with all runs, and another one takes over."""
        how = rnd.choice(["stays"] * 6 + ["dies", "leaves", "leaves for long"])
        if how.startswith("leaves"):
            self.tell(facts.Closing())
            for node in [node for node in self.play.project.agents.values() if node.alive]:
                self.tell(facts.Exited(node.id, node.run, 0, None, 1.0))
            assert not any(node.alive for node in self.play.project.agents.values())
        if how in ("dies", "leaves"):
            self.tell(facts.Opened("2", "warden"))

    # --- what holds

    @invariant()
    def all_holds(self) -> None:
        """At every step."""
        for _, batch in self.play.batches[self.seen :]:
            self.follow(batch)
        self.seen = len(self.play.batches)
        for holds in invariants.STATE:
            holds(self.play.project)
        invariants.a_main_answers_for_its_branch(self.play.project, self.whole)

    def follow(self, batch: tuple[Fact, ...]) -> None:
        """Which mains' budgets stand for their whole branches: those that were there from their birth."""
        for fact in batch:
            if isinstance(fact, facts.Born) and fact.parent is None:
                self.whole |= {(fact.agent, field) for field in SPENT if getattr(fact.grant, field) is not None}
            if isinstance(fact, facts.Granted):
                self.whole -= {(fact.agent, field) for field in SPENT if getattr(fact.grant, field) is None}

    def teardown(self) -> None:
        """A daemon that has only the journal knows the same."""
        try:
            assert self.play.replayed() == self.play.project
        finally:
            leave.GONE_KEPT = self.kept
            for name, bound in self.bounds.items():
                setattr(books, name, bound)


TestCore = Core.TestCase
TestCore.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
