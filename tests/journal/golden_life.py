"""The golden life: what one project went through, as today's core recorded it, and what its facts come to.
`python -m tests.journal.golden_life` adds chapters that are not told yet, and says anew what the state consists of; it
never changes a record that stands there, nor what the chapters before came to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from attrs import evolve

from supervisor.core import facts, requests, view
from supervisor.core.authority import Agent, Operator, Principal
from supervisor.core.decide.gate import decide, take
from supervisor.core.decide.moment import Moment
from supervisor.core.facts import Fact, Killed
from supervisor.core.grants import Grant
from supervisor.core.ledger import Report, Usage
from supervisor.core.refusals import Refusal
from supervisor.core.requests import Request, Stamp
from supervisor.core.spec import Declared, Fleet, KindSpec, Role, Spec
from supervisor.core.state import Project
from supervisor.runtime.journal import snapshot
from supervisor.runtime.journal.chain import Batch, Link
from supervisor.runtime.journal.codec import FACTS
from supervisor.runtime.journal.journal import Journal
from supervisor.runtime.journal.segments import NAME

LIFE = Path(__file__).with_name("golden.life.jsonl")
#: What the tree looks like after each chapter: fields that came since do not count.
TREES = Path(__file__).with_name("golden.trees.json")
#: The shape of the state and its digest at the end: what `apply` means, to the last field.
STATE = Path(__file__).with_name("golden.state.json")
PROJECT = "golden-89abcdef"
NOW = 1750009999.0


class Life:
    """The project, driven by hand: requests and what happens go in, batches come out."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.batches: list[Batch] = []
        self.at = 1750000000.0 + len(project.agents)
        self.day = project.books.day

    def ask(self, request: Request, by: Principal = Operator()) -> list[Fact]:  # noqa: B008  a value
        """A request that is granted."""
        moment = self._moment()
        decided = decide(self.project, by, request, moment)
        assert not isinstance(decided, Refusal), decided
        return self._keep(str(by), take(self.project, decided, moment))

    def see(self, *happened: Fact) -> list[Fact]:
        """Something that happened."""
        return self._keep("fleet", take(self.project, [*happened], self._moment()))

    def run(self, name: str, pid: int, session: str = "") -> None:
        """The agent's run starts and is ready."""
        node = self.project.agents[self.id(name)]
        self.see(facts.Started(node.id, node.run, pid, pid * 10))
        self.see(facts.Ready(node.id, node.run, session, "big-1"))

    def spend(self, name: str, tokens: int, call: str) -> list[Fact]:
        node = self.project.agents[self.id(name)]
        usage = Usage(tokens // 2, tokens // 4, tokens // 8, tokens // 8, tokens // 16, 1, 0, tokens * 1000)
        return self.see(facts.Spent(node.id, node.run, (Report("call", usage, call, "s1", "big-1", 12.5),)))

    def end_turn(self, name: str, text: str) -> list[Fact]:
        node = self.project.agents[self.id(name)]
        return self.see(facts.TurnEnded(node.id, node.run, "ok", text))

    def leave(self, name: str, *killed: Killed, code: int | None = 0) -> list[Fact]:
        """The agent's run is empty."""
        node = self.project.agents[self.id(name)]
        return self.see(facts.Exited(node.id, node.run, code, None if code is not None else 9, 12.5, killed))

    def id(self, name: str) -> str:
        return self.project.names[name.casefold()]

    def run_of(self, name: str) -> int:
        return self.project.agents[self.id(name)].run

    def caller(self, name: str) -> Agent:
        return Agent(self.project.id, self.id(name), self.run_of(name))

    def _moment(self) -> Moment:
        self.at += 1.5
        return Moment.of(self.project, Stamp(self.at, chance=0.5, day=self.day))

    def _keep(self, by: str, taken: list[Fact]) -> list[Fact]:
        self.batches.append(Batch(self.at, by, tuple(taken)))
        return taken


FLEET = Fleet(
    "golden",
    (
        Declared(
            "lead",
            Spec("lines", "integrator", "keeps it together", "/home/me/g", "big-*", "Begin ä", restart="on-failure"),
            Grant(("read", "edit"), tokens=1_000_000, turns=50, descendants=10, cost=5_000_000_000, fork=True),
            (Declared("tests", Spec("lines", task="Test", max_tasks=2, replace=True), Grant(tokens=100_000, turns=9)),),
        ),
        Declared("clock", Spec("lines", restart="always", resume="continue", env=(("A", "b"),)), Grant(wall=3600.0)),
    ),
    (Role("scout", Spec("lines", "scout", "looks", max_tasks=3), Grant(tools=("read",), tokens=20_000)),),
    (KindSpec("lines", "lines", ("mine", "--jsonl")), KindSpec("other", "lines", ("other",), "pipe")),
    forks_per_minute=120,
)  # fmt: skip


def beginning(life: Life) -> None:
    """Accepted, started, at work; forks, budgets, names."""
    life.see(facts.Opened("4242", "cgroup"))
    life.ask(requests.Up("/home/me/g/agents.toml", "a" * 64, "/usr/local/bin:/usr/bin", FLEET))
    for pid, name in enumerate(("lead", "tests", "clock"), 100):
        life.run(name, pid, f"session-{name}")
    life.spend("lead", 4000, "call-1")
    life.see(facts.Spoke(life.id("lead"), 1, "Reading ä\udc80"))
    life.ask(requests.Fork("Look around", role="scout", name="eyes"), life.caller("lead"))
    life.ask(requests.Fork(kind="lines", grant=Grant(tokens=1000)), life.caller("lead"))
    life.run("eyes", 110)
    life.run("SubAgent-01", 111)
    life.ask(requests.Rename("SubAgent-01", "ears"))
    life.spend("eyes", 17_000, "call-1")
    life.spend("eyes", 17_000, "call-1")
    life.spend("eyes", 4_000, "call-2")
    life.see(facts.TurnEnded(life.id("eyes"), 1, "aborted", "", "out of tokens"))
    life.ask(requests.Hold("eyes", Grant(tokens=60_000)))
    life.see(facts.Refused("fork", "budget", "no", "tokens", 10, 5, 4, 1, "lead", 3))
    life.see(facts.Said(life.id("lead"), 1, "done", "pass", "all green"))
    life.end_turn("lead", "All 14 tests pass.\nReally.")


def troubles(life: Life) -> None:
    """Tasks, their end, crashes, restarts, what is left behind, a reload."""
    life.ask(requests.Instruct("tests", "Again"))
    life.see(facts.Garbled(life.id("tests"), 1, 3, 4096, "no JSON"))
    life.end_turn("tests", "one")
    life.see(facts.Blocked(life.id("tests"), 1, "person", "Merge it?"))
    life.ask(requests.Instruct("tests", "Yes"))
    life.end_turn("tests", "two")
    life.leave("tests", Killed(77, "sleeper", "KILL", escaped=True))
    life.run("tests", 120)
    life.leave("clock", code=1)
    life.see(facts.Due(life.id("clock"), life.run_of("clock")))
    life.see(facts.Unstarted(life.id("clock"), life.run_of("clock"), "exec: no such file"))
    life.see(facts.Due(life.id("clock"), life.run_of("clock")))
    life.run("clock", 121)
    life.ask(requests.Restarting("lead"))
    life.leave("lead")
    life.run("lead", 122, "session-lead")
    life.see(facts.TurnStarted(life.id("lead"), life.run_of("lead")))
    life.ask(requests.Stop("ears"))
    life.leave("ears", code=None)
    life.ask(requests.Start("ears"))
    life.run("ears", 123)
    life.ask(requests.Disband("ears"), life.caller("lead"))
    life.leave("ears")
    life.see(facts.Repaired(17))
    more = Fleet(
        "golden", (FLEET.agents[0], Declared("clock", Spec("lines", description="ticks"))), FLEET.roles, FLEET.kinds
    )
    life.ask(requests.Up("/home/me/g/agents.toml", "b" * 64, "/usr/bin", more, again=True))


def dead(life: Life) -> None:
    """The daemon leaves, comes back, dies, comes back; a wall is over; a conversation is given up."""
    life.see(facts.Closing())
    for name in ("eyes", "tests", "lead", "clock"):
        life.leave(name)
    life.see(facts.Opened("4343", "warden"))
    for pid, name in enumerate(("lead", "tests", "eyes"), 130):
        life.run(name, pid, f"session-{name}")
    life.ask(requests.Instruct("eyes", "Look again"))
    life.see(facts.Opened("4444", "warden"))
    for pid, name in enumerate(("lead", "tests", "eyes"), 140):
        life.run(name, pid, f"session-{name}")
    life.spend("eyes", 900, "call-2")
    life.see(facts.Expired(life.id("eyes")))
    life.leave("eyes")
    for pid in (150, 151):
        life.leave("lead", code=1)
        life.see(facts.Due(life.id("lead"), life.run_of("lead")))
        life.see(facts.Started(life.id("lead"), life.run_of("lead"), pid, pid))
    life.leave("lead", code=1)
    life.see(facts.Due(life.id("lead"), life.run_of("lead")))


def end(life: Life) -> None:
    """Texts that are read, and one that is not; who is gone is forgotten, and the project ends."""
    node = life.project.agents[life.id("lead")]
    life.see(facts.Started(node.id, node.run, 160, 160))
    life.see(facts.Ready(node.id, node.run, "session-fresh", "big-2", fresh=True, tells=True))
    life.see(facts.Read(node.id, node.run, tuple(item.id for item in node.handed)))
    life.end_turn("lead", "There again.")
    life.ask(requests.Instruct("lead", "And now this"))
    life.ask(requests.Restarting("lead"))
    life.leave("lead")
    life.see(facts.Forgotten("a5"))
    life.run("lead", 161, "session-fresh")
    life.ask(requests.Down())
    for name in ("tests", "lead"):
        life.leave(name)


def limits(life: Life) -> None:
    """A provider takes no more: one waits for itself, one for all who have its login; they come back one by one."""
    life.see(facts.Opened("4545", "cgroup"))
    life.ask(requests.Up("/home/me/g/agents.toml", "c" * 64, "/usr/bin", FLEET))
    for pid, name in enumerate(("lead", "tests", "clock"), 170):
        node = life.project.agents[life.id(name)]
        life.see(facts.Started(node.id, node.run, pid, pid, "login-1" if name != "clock" else "login-2"))
        life.see(facts.Ready(node.id, node.run, f"session-{name}", "big-1"))
    lead, tests, clock = (life.id(name) for name in ("lead", "tests", "clock"))
    life.ask(requests.Instruct("clock", "Tick"))
    life.see(facts.Limited(clock, life.run_of("clock"), "rate", None, "slow down"))
    life.see(facts.TurnEnded(clock, life.run_of("clock"), "error", "", "429"))
    life.see(facts.Due(clock, life.run_of("clock")))
    life.end_turn("clock", "Tock.")
    life.end_turn("lead", "Begun.")
    life.see(facts.Limited(tests, life.run_of("tests"), "quota", life.at + 3600, "usage limit reached"))
    life.see(facts.TurnEnded(tests, life.run_of("tests"), "error", "", "usage limit reached"))
    life.leave("tests", code=1)
    life.ask(requests.Fork("Look", role="scout", name="late"), life.caller("lead"))
    life.see(facts.Unstarted(life.id("late"), 1, "its login is stopped", "login-1"))
    life.see(facts.Due(tests, life.run_of("tests")))
    life.see(facts.Due(lead, life.run_of("lead")))
    life.run("tests", 180, "session-tests")
    life.see(facts.Started(tests, life.run_of("tests"), 180, 180, "login-1"))
    life.spend("tests", 800, "call-9")
    life.ask(requests.Start("lead"))
    life.see(facts.Tripped("login-2", life.at + 100, "auth", "log in again", elsewhere=True))
    life.see(facts.Mended("login-2", elsewhere=True))


def strange(life: Life) -> None:
    """Up once more; a program uses a model that its agent does not hold, and its provider has had enough of it."""
    modest = Declared("modest", Spec("lines", model="small-1", model_from="agents.toml"), Grant(models=("small-*",)))
    fleet = Fleet("golden", (Declared("lead", Spec("lines"), children=(modest,)),), FLEET.roles, FLEET.kinds)
    life.ask(requests.Up("/home/me/g/agents.toml", "c" * 64, "/usr/bin", fleet))
    life.run("lead", 170, "session-lead")
    node = life.project.agents[life.id("modest")]
    whose = f"grant of modest ({node.id})"
    life.see(facts.Started(node.id, 1, 171, 1710, "5e55", "small-1", "agents.toml", ("read",), whose))
    life.see(facts.Ready(node.id, 1, "session-modest", "big-1"))
    life.see(facts.Limited(node.id, 1, "rate", None, "slow down"))
    life.ask(requests.Down())
    for name in ("modest", "lead"):
        life.leave(name)


def errands(life: Life) -> None:
    """A program that does one task and ends: it stands by, is started with a text, fails, and stands by again."""
    kinds = (*FLEET.kinds, KindSpec("errand", "lines", ("errand",), once=True))
    boy = Declared("boy", Spec("errand", restart="on-failure"), Grant(turns=5))
    life.ask(requests.Up("/home/me/g/agents.toml", "c" * 64, "/usr/bin", Fleet("golden", (boy,), (), kinds)))
    life.ask(requests.Instruct("boy", "Fetch it"))
    life.run("boy", 170)
    life.see(facts.TurnStarted(life.id("boy"), life.run_of("boy")))
    life.see(facts.Limited(life.id("boy"), life.run_of("boy"), "rate", 1750000900.0, "try again in 20s"))
    life.end_turn("boy", "Here it is.")
    life.leave("boy", Killed(171, "sleeper", "TERM"))
    life.ask(requests.Instruct("boy", "Fetch more"))
    life.run("boy", 172)
    life.see(facts.TurnStarted(life.id("boy"), life.run_of("boy")))
    life.leave("boy", code=None)
    life.see(facts.Due(life.id("boy"), life.run_of("boy")))


def days(life: Life) -> None:
    """Usage on days, by models, estimated and incomplete; of one who is forgotten, and of days long ago."""
    author = Declared("author", Spec("lines", "integrator"), Grant(), (Declared("typist", Spec("lines", "scribe")),))
    life.ask(requests.Up("/home/me/g/agents.toml", "d" * 64, "/usr/bin", evolve(FLEET, agents=(author,))))
    for pid, name in enumerate(("author", "typist"), 200):
        life.run(name, pid, f"session-{name}")
    life.ask(requests.Fork("Look around", role="scout", name="spy"), life.caller("author"))
    life.run("spy", 210)
    for number in range(1, 31):
        life.day = f"2026-09-{number:02}"
        life.spend("author", 40 + number, f"day-{number}")
    priced = Report("call", Usage(5, 6, 7, 8, 1, 1, 0, 900, 0, 900), "priced", model="big-3", prices="table 1 of 2026")
    spy = life.id("spy")
    life.see(facts.Spent(spy, 1, (priced,), incomplete=2))
    life.ask(requests.Disband("spy"))
    life.leave("spy")
    life.see(facts.Forgotten(spy))
    for number in range(1, 32):
        life.day = f"2026-10-{number:02}"
        life.spend("typist", 60 + number, f"day-{number}")


def questions(life: Life) -> None:
    """What a person approves or denies, what is taken back, and a silence that is too long."""
    author = Declared("author", Spec("lines", restart="on-failure", quiet_kill=1800.0))
    life.ask(requests.Up("/home/me/g/agents.toml", "e" * 64, "/usr/bin", evolve(FLEET, agents=(author,))))
    life.ask(requests.Instruct("author", "Clean up"))
    for prompt in ("p1", "p2"):
        life.see(facts.Blocked(life.id("author"), life.run_of("author"), "person", "May I?", prompt))
    life.see(facts.Withdrawn(life.id("author"), life.run_of("author"), "p1"))
    life.ask(requests.Deny("author", text="Not now."))
    life.see(facts.Silent(life.id("author"), life.run_of("author"), 1800.5))
    life.leave("author")
    life.see(facts.Due(life.id("author"), life.run_of("author")))
    life.run("author", 300, "session-author")


def room(life: Life) -> None:
    """A task that waits for a child's, and forks that wait for room: one gets it, one gives up, one still waits."""
    author = Declared("author", Spec("lines", restart="on-failure"), Grant(children=2))
    life.ask(requests.Up("/home/me/g/agents.toml", "f" * 64, "/usr/bin", evolve(FLEET, agents=(author,))))
    life.ask(requests.Instruct("author", "Build it"))
    life.ask(requests.Fork("A part of it", kind="lines", name="helper"), life.caller("author"))
    life.run("helper", 310)
    life.end_turn("author", "helper is at it")
    waits = requests.Fork("Another part", kind="lines", name="second", queue=True)
    for _ in range(3):
        life.ask(waits, life.caller("author"))
    life.see(facts.OutOfLine("q1", "asker"))
    life.end_turn("helper", "my part is done")
    life.end_turn("author", "all of it is done")
    life.ask(requests.Disband("helper"), life.caller("author"))
    life.leave("helper")
    life.ask(evolve(waits, place="q2"), life.caller("author"))


#: Told in this order; a new one is appended.
CHAPTERS: tuple[Callable[[Life], None], ...] = (
    beginning, troubles, dead, end, limits, strange, errands, days, questions, room,
)  # fmt: skip


def tree(project: Project) -> dict[str, Any]:
    """What a person sees, as JSON values."""
    return cast("dict[str, Any]", json.loads(json.dumps(view.tree(project, Operator(), "cgroup", NOW))))


def missing(batches: list[Batch]) -> set[str]:
    """The facts that the life does not hold."""
    return FACTS.keys() - {type(fact).__name__ for batch in batches for fact in batch.facts}


def main() -> None:
    """Tell what is not told yet."""
    trees = json.loads(TREES.read_text()) if TREES.exists() else []
    complete = len(trees) == len(CHAPTERS)
    with TemporaryDirectory() as name:
        if LIFE.exists():
            (Path(name) / NAME).write_bytes(LIFE.read_bytes())
        journal, past, _ = Journal.open(Path(name), PROJECT)
        told = list(past.batches)
        project = past.project()
        for chapter in CHAPTERS[len(trees) :]:
            life = Life(project)
            chapter(life)
            journal.write([journal.encode(batch) for batch in life.batches])
            told += life.batches
            trees.append({"seq": journal.seq, "chapter": chapter.__name__, "tree": tree(project)})
        journal.abandon()
        LIFE.write_bytes((Path(name) / NAME).read_bytes())
    if missing(told):
        raise SystemExit(f"nothing of the life has {', '.join(sorted(missing(told)))}: write another chapter")
    TREES.write_text(json.dumps(trees, indent=1, sort_keys=True) + "\n")
    state = {"meaning": snapshot.MEANING, "shape": snapshot.SHAPE, "digest": snapshot.digest(project, Link(0, ""))}
    if complete and STATE.exists():
        then = json.loads(STATE.read_text())
        if (then["meaning"], then["shape"]) == (snapshot.MEANING, snapshot.SHAPE) and then != state:
            raise SystemExit("the same facts come to another state: raise snapshot.MEANING first")
    STATE.write_text(json.dumps(state, indent=1) + "\n")


if __name__ == "__main__":
    main()
