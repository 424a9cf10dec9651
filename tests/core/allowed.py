"""The other half of a refusal: what was not refused was the caller's to ask, and could be given. Like the refusals it
is held without asking the core's own checks."""

from __future__ import annotations

import math

from attrs import frozen

from supervisor.core import facts, requests
from supervisor.core.authority import Agent, Nobody, Principal
from supervisor.core.facts import Fact
from supervisor.core.grants import BUDGETS, Grant
from supervisor.core.refusals import Refusal
from supervisor.core.requests import Request, Stamp
from supervisor.core.state import Node, Project
from tests.core.refused import Case, held_within, is_below, meant, parent_of

SETS = ("tools", "models", "kinds", "paths", "env")


@frozen
class Before:
    """What a request is about, looked at before it is asked."""

    by: Principal
    request: Request
    named: bool
    alive: bool
    target: Node | None
    below: bool
    own: bool
    up: bool

    @classmethod
    def of(cls, project: Project, by: Principal, request: Request, stamp: Stamp) -> Before:
        """Look now."""
        case = Case(project, by, request, stamp, Refusal("state", ""))
        caller = project.agents.get(by.agent) if isinstance(by, Agent) else None
        found: list[Node] = []
        if isinstance(request, requests.Fork):
            known = not request.parent or len(meant(case)) == 1
            parent = parent_of(case) if known and (caller is not None or not isinstance(by, Agent)) else None
            found = [parent] if parent is not None else []
        elif hasattr(request, "agent"):
            found = meant(case)
        target = found[0] if len(found) == 1 else None
        run = by.run if isinstance(by, Agent) else 0
        return cls(
            by,
            request,
            not isinstance(by, Nobody) and not (isinstance(by, Agent) and by.project != project.id),
            not isinstance(by, Agent) or (caller is not None and caller.alive and caller.run == run),
            target,
            isinstance(by, Agent) and target is not None and is_below(project, target, by.agent),
            isinstance(by, Agent) and target is not None and target.id == by.agent,
            project.wanted and not project.closing,
        )


def was_the_callers_to_ask(before: Before) -> None:
    """A living run, or a person; strictly below it, itself where that may be; nothing that is a person's alone."""
    assert before.named
    assert before.alive
    if not isinstance(before.by, Agent):
        return
    assert not isinstance(before.request, requests.Up | requests.Down | requests.Approve | requests.Deny)
    assert before.target is not None, "an agent makes no main"
    may_be_itself = isinstance(before.request, requests.Fork | requests.Rename)
    assert before.below or (may_be_itself and before.own)


def could_be_given(project: Project, before: Before, said: list[Fact]) -> None:
    """Every grant is made of numbers that can be, and lies within what each agent above names; no name is used twice;
    nothing starts where nothing is wanted."""
    for fact in said:
        if isinstance(fact, facts.Born | facts.Granted):
            node = project.agents.get(fact.agent)
            sane(fact.grant)
            if node is not None and isinstance(before.request, requests.Fork | requests.Start | requests.Up):
                within(project, node, fact.grant)
        if isinstance(fact, facts.Starting):
            assert before.up or isinstance(before.request, requests.Up)


def sane(grant: Grant) -> None:
    """No number that would add to what others hold."""
    for field in (*BUDGETS, "children", "depth"):
        value = getattr(grant, field)
        assert value is None or value >= 0
    assert grant.wall is None or (math.isfinite(grant.wall) and grant.wall > 0)


def within(project: Project, node: Node, grant: Grant) -> None:
    """No right that somebody above who names it does not hold, no bound beyond the parent's."""
    above, far = project.above(node), 1
    while above is not None:
        for field in SETS:
            held, asked = getattr(above.grant, field), getattr(grant, field)
            if held is not None and asked is not None:
                assert all(held_within(field, held, each) for each in asked), (node.id, field)
        for switch in ("fork", "talk"):
            assert not (getattr(above.grant, switch) is False and getattr(grant, switch) is True)
        if above.grant.depth is not None and grant.depth is not None:
            assert grant.depth <= max(0, above.grant.depth - far)
        if above.grant.wall is not None and grant.wall is not None:
            assert grant.wall <= above.grant.wall
        above, far = project.above(above), far + 1
