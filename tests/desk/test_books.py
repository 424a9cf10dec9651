"""What a request is weighed against: the books, with all that is known to be spent."""

from __future__ import annotations

from pathlib import Path

import pytest

from supervisor.core import facts
from supervisor.core.authority import Agent, Operator
from supervisor.core.grants import Grant
from supervisor.core.ledger import Report, Usage
from supervisor.core.requests import Fork, Hold, Request, Up
from supervisor.core.spec import Declared, Fleet, KindSpec, Spec
from supervisor.core.state import Project
from supervisor.runtime.desk import Desk
from supervisor.runtime.heard import Heard
from supervisor.runtime.journal.journal import Journal

FLEET = Fleet(
    "p",
    agents=(Declared("lead", Spec(kind="mine"), Grant(tokens=1000, fork=True)),),
    kinds=(KindSpec("mine", "lines", ("true",)),),
)


@pytest.mark.parametrize(
    ("by", "request_", "used"),
    [
        (Agent("p", "a1", 1), Fork("more", kind="mine", grant=Grant(tokens=900)), 200),
        (Operator(), Hold("a1", Grant(tokens=100)), 200),
    ],
)
async def test_usage_that_waits_for_more_is_booked_before_a_budget_is_asked_for(
    tmp_path: Path, by: Agent | Operator, request_: Request, used: int
) -> None:
    journal, _, _ = Journal.open(tmp_path / "p", "p")
    desk = Desk(Project("p"), journal, lambda _fact: None, lambda: 1)
    assert desk.ask(Operator(), Up("/p/agents.toml", "", "", FLEET)).refusal is None
    desk.observe(facts.Started("a1", 1, 4000, 1), facts.Ready("a1", 1))
    later: list[float] = []
    heard = Heard(desk, "a1", lambda delay, _call: later.append(delay), complain=lambda _words: None)
    heard.take([facts.Spent("a1", 1, (Report("call", Usage(input=200)),))])
    assert later, "it waits"
    assert desk.project.agents["a1"].own.input == 0
    refusal = desk.ask(by, request_).refusal
    assert refusal is not None
    assert (refusal.field, refusal.used) == ("tokens", used)
    heard.flush()
    assert desk.project.agents["a1"].own.input == 200, "and once only"
    assert not desk.gathered
    await desk.drain()
    journal.close(0.0)
