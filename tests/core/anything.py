"""What can be asked of a project and what can happen to it, drawn so that names and numbers meet: few of each, some of
them bad."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar

from attrs import evolve

from supervisor.core import facts
from supervisor.core import requests as ask
from supervisor.core.facts import Fact
from supervisor.core.grants import Grant
from supervisor.core.ledger import Report, Usage
from supervisor.core.requests import Request
from supervisor.core.spec import Declared, Fleet, Role, Spec
from tests.core.play import agent, fleet

T = TypeVar("T")
NAMES = ["lead", "Scribe", "tests", "more", "SubAgent-02", "subagent-3"]
LOGINS = ["", "login-1", "login-2"]
NO_NAMES = ["a7", "fleet", "x" * 65, "new/one", " "]
ROLES = (
    Role("reviewer", Spec(kind="lines", role="reviewer", max_tasks=2, replace=True), Grant(tokens=20)),
    Role("long", Spec(kind="other", role="long", restart="always", resume="continue")),
)
GOOD = fleet(
    agent(
        "lead",
        agent("scribe", grant=Grant(tokens=30, turns=3), max_tasks=2, replace=True),
        agent("steady", restart="on-failure", resume="continue", task="Begin."),
        agent("boy", kind="errand", restart="on-failure", task="Begin."),
        grant=Grant(tokens=100, turns=10, descendants=6),
    ),
    agent("second", restart="always", grant=Grant(cost=50, models=("big-*",), wall=100.0)),
    roles=ROLES,
    forks_per_minute=10,
)


def rarely(rnd: Random, value: T, otherwise: T, times: int = 8) -> T:
    """One of so many times the first."""
    return value if not rnd.randrange(times) else otherwise


def name(rnd: Random) -> str:
    """A name, seldom one that can be none."""
    return rarely(rnd, rnd.choice(NO_NAMES), rnd.choice(NAMES))


def _small(rnd: Random) -> int | None:
    return rnd.choice([None, None, None, 1, 3, 10, 10, 30, 60, 100, rarely(rnd, -5, 0, 4)])


def grant(rnd: Random) -> Grant:
    """Any grant; a third of them names nothing."""
    if not rnd.randrange(3):
        return Grant()
    return Grant(
        tools=rnd.choice([None, None, None, ("read",), ("read", "bash"), ()]),
        models=rnd.choice([None, None, None, ("big-*",), ("big-one",), ("*",), ()]),
        paths=rnd.choice([None, None, None, ("/p",), ("/p/in", "/q")]),
        kinds=rnd.choice([None, None, None, None, ("lines",)]),
        fork=rnd.choice([None, None, None, None, True, False]),
        tokens=_small(rnd),
        turns=_small(rnd),
        cost=_small(rnd),
        descendants=rnd.choice([None, None, 0, 1, 2, 4]),
        children=rnd.choice([None, None, None, 1, 3]),
        depth=rnd.choice([None, None, None, 0, 1, 3]),
        wall=rnd.choice([None, None, None, None, 10.0, 50.0, rarely(rnd, float("nan"), 90.0)]),
    )


def one_budget(rnd: Random) -> Grant:
    """A grant that agents give their children."""
    field, value = rnd.choice([("tokens", 10), ("turns", 2), ("cost", 5), ("descendants", 1), ("tokens", 3)])
    return rnd.choice([Grant(), Grant(**{field: value})])  # type: ignore[arg-type]  # the fields are budgets


def _declared(rnd: Random, names: list[str], level: int = 0) -> Declared:
    own = names.pop(rnd.randrange(len(names)))
    children = [_declared(rnd, names, level + 1) for _ in range(rnd.randrange(3)) if names and level < 2]
    return agent(
        own,
        *children,
        kind=rnd.choice(["lines", "lines", "errand"]),
        grant=rnd.choice([grant(rnd), Grant(tokens=100, turns=10, cost=100), Grant(), Grant()]),
        task=rnd.choice(["", "Begin."]),
        max_tasks=rarely(rnd, rnd.choice([0, 33]), rnd.choice([None, None, 1, 2])),
        replace=rnd.choice([True, False]),
        restart=rnd.choice(["never", "on-failure", "always"]),
        quiet_kill=rnd.choice([0.0, 60.0]),
        resume=rnd.choice(["stand", "continue"]),
        model=rnd.choice(["", "big-one", "small"]),
    )


def content(rnd: Random) -> Fleet:
    """A file; most are good, some say what cannot be."""
    names = ["lead", "Scribe", "tests", "other", "more", "last", "SubAgent-02"]
    return fleet(
        *(_declared(rnd, names) for _ in range(rnd.randrange(1, 3)) if names),
        roles=ROLES,
        agent_talk=rnd.choice(["mains", "instance", "project"]),
        depth=rnd.choice([32, 32, 2, 3]),
        agents_max=rnd.choice([3000, 3000, 12, 6]),
        forks_per_minute=10,
    )


def changed(rnd: Random, now: Fleet) -> Fleet:
    """The same file with one entry changed."""
    which = rnd.randrange(len(now.agents))
    return evolve(now, agents=(*now.agents[:which], _one_change(rnd, now.agents[which]), *now.agents[which + 1 :]))


def _one_change(rnd: Random, entry: Declared) -> Declared:
    if entry.children and rnd.randrange(2):
        which = rnd.randrange(len(entry.children))
        below = _one_change(rnd, entry.children[which])
        return evolve(entry, children=(*entry.children[:which], below, *entry.children[which + 1 :]))
    match rnd.randrange(6):
        case 0:
            return evolve(entry, children=entry.children[:1])
        case 5:
            return evolve(entry, spec=evolve(entry.spec, kind=rnd.choice(["lines", "errand"])))
        case 1:
            return evolve(entry, children=(*entry.children, agent(f"extra-{rnd.randrange(3)}", grant=one_budget(rnd))))
        case 2:
            return evolve(
                entry, spec=evolve(entry.spec, model=rnd.choice(["", "big-one"]), max_tasks=rnd.choice([None, 1, 2]))
            )
        case _:
            return evolve(entry, grant=grant(rnd))


def fork(rnd: Random, parent: str) -> Request:
    """Any fork."""
    return ask.Fork(
        parent=rnd.choice(["", parent]),
        name=rnd.choice(["", name(rnd)]),
        grant=grant(rnd),
        task=rnd.choice(["", "Do it."]),
        role=rnd.choice(["", "", "reviewer", "long", rarely(rnd, "label", "reviewer", 3)]),
        kind=rnd.choice(["lines", "lines", "errand", "", rarely(rnd, "odd", "other", 6)]),
        max_tasks=rnd.choice([None, None, 1, 2, rarely(rnd, 0, 32, 2)]),
        replace=rnd.choice([None, True]),
        restart=rnd.choice([None, "on-failure", "always"]),
        model=rnd.choice(["", "", "big-one", "small"]),
        directory=rnd.choice(["", "", "/p/in", "/p/in/../../etc"]),
        queue=rnd.choice([True, False]),
    )


def modest_fork(rnd: Random) -> Request:
    """What agents do all day."""
    return ask.Fork(
        kind=rnd.choice(["lines", "lines", "errand"]),
        task=rnd.choice(["Go.", ""]),
        grant=one_budget(rnd),
        max_tasks=rnd.choice([None, 1, 2]),
        replace=rnd.choice([True, False]),
        restart=rnd.choice([None, "on-failure", "always"]),
        queue=rnd.choice([True, False]),
    )


def request(rnd: Random, target: str) -> Request:
    """Anything that can be asked of one agent."""
    return rnd.choice(_REQUESTS)(rnd, target)


_REQUESTS: list[Callable[[Random, str], Request]] = [
    fork,
    lambda rnd, target: ask.Instruct(target, rarely(rnd, " \n", "Go on.")),
    lambda rnd, target: ask.Instruct(target, rarely(rnd, " \n", "Go.")),
    lambda rnd, target: ask.Approve(target, rnd.choice(["", "p1", "p2"])),
    lambda rnd, target: ask.Deny(target, rnd.choice(["", "p1", "p2"]), "No."),
    lambda _, target: ask.Stop(target),
    lambda _, target: ask.Start(target),
    lambda rnd, target: ask.Restarting(target, rnd.choice([True, False])),
    lambda _, target: ask.Disband(target),
    lambda rnd, target: ask.Hold(target, grant(rnd)),
    lambda rnd, target: ask.Hold(target, one_budget(rnd)),
    lambda rnd, target: ask.Rename(target, name(rnd)),
]


def observation(rnd: Random, one: str, run: int, *, limits: bool = True) -> Fact:
    """Anything a program or its end can make known; limits have times."""
    return rnd.choice(_OBSERVED + (_LIMITS if limits else []))(one, run)


def read(rnd: Random, one: str, run: int, handed: list[str]) -> Fact:
    """The program has begun with some of what it was handed, or says so of what it was not."""
    return facts.Read(one, run, tuple(item for item in [*handed, "m1", "m999"] if rnd.randrange(2)))


def limited(rnd: Random, one: str, run: int) -> Fact:
    """A limit of any sort, with an end or without, or with one that cannot be."""
    until = rnd.choice([None, None, 1.0, 1010.0, 1100.0, 9000.0, 1e12, float("nan"), float("inf")])
    return facts.Limited(one, run, rnd.choice(["rate", "quota", "auth", "overload"]), until, "Come back\nlater.")


def elsewhere(rnd: Random, at: float) -> Fact:
    """What other projects, or the end of a wait, make known of a login."""
    login = rnd.choice(LOGINS[1:])
    until = at + rnd.choice([-5.0, 3.0, 500.0])
    told: list[Fact] = [
        facts.Mended(login),
        facts.Mended(login, elsewhere=True),
        facts.Tripped(login, until, "quota", "", elsewhere=True),
    ]
    return rnd.choice(told)


_LIMITS: list[Callable[[str, int], Fact]] = [
    lambda one, run: facts.Started(one, run, 77, 5, "login-1"),
    lambda one, run: facts.Unstarted(one, run, "its login is stopped", "login-1"),
    lambda one, run: facts.Limited(one, run, "rate"),
    lambda one, run: facts.Limited(one, run, "quota", 2000.0, "until then"),
    lambda one, run: facts.Limited(one, run, "auth"),
]
_OBSERVED: list[Callable[[str, int], Fact]] = [
    lambda one, run: facts.Started(one, run, 77, 5),
    lambda one, run: facts.Ready(one, run, "s2", "big-two"),
    lambda one, run: facts.Ready(one, run, "s2", fresh=True, tells=True),
    facts.TurnStarted,
    lambda one, run: facts.TurnEnded(one, run, "ok", "Words."),
    lambda one, run: facts.TurnEnded(one, run, "error", "", "broken"),
    lambda one, run: facts.Spoke(one, run, "a line"),
    lambda one, run: facts.Said(one, run, "done", "good", "It is done."),
    lambda one, run: facts.Blocked(one, run, "person", "May I?"),
    lambda one, run: facts.Blocked(one, run, "person", "May I?", "p1"),
    lambda one, run: facts.Blocked(one, run, "person", "Really?", "p2"),
    lambda one, run: facts.Withdrawn(one, run, "p1"),
    lambda one, run: facts.Withdrawn(one, run, ""),
    lambda one, run: facts.Garbled(one, run, 1, 9, "odd"),
    lambda one, run: facts.Exited(one, run, 0, None, 0.2),
    lambda one, run: facts.Exited(one, run, 3, None, 700.0),
    lambda one, run: facts.Exited(one, run, None, 9, 2.0),
    lambda one, run: facts.Exited(one, run, None, None, 2.0, (facts.Killed(5, "sh", "KILL", True),), (6,)),
    lambda one, run: facts.Unstarted(one, run, "no such file"),
    lambda one, run: facts.Silent(one, run, 59.0),
    lambda one, run: facts.Silent(one, run, 60.5),
    facts.Due,
    lambda one, _run: facts.Expired(one),
]


def report(rnd: Random) -> Report:
    """A usage line in any scope, perhaps one that was there before."""
    return Report(
        rnd.choice(["call", "call", "turn", "total"]),
        Usage(
            input=rnd.choice([0, 1, 3, 8, 20, rarely(rnd, 10**12, 90)]),
            output=rnd.choice([0, 2]),
            calls=rnd.randrange(2),
            turns=rnd.randrange(3),
            cost=rnd.choice([0, 2, 7, 40]),
            estimated=rnd.choice([0, 0, 2]),
        ),
        id=rnd.choice(["", f"c{rnd.randrange(9)}", "t1"]),
        epoch=rnd.choice(["", "e1", "e2"]),
        model=rnd.choice(["", "", "big-one", "small", f"m{rnd.randrange(5)}"]),
        context=rnd.choice([None, 40.0, float("nan"), -1.0]),
        window=rnd.choice([None, 1000]),
        prices=rnd.choice(["", "table 1"]),
    )


def day(rnd: Random) -> str:
    """Mostly the next one; clocks jump."""
    return f"2026-11-{rnd.randrange(1, 13):02}"
