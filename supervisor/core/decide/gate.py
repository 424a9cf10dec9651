"""The core's one gate: `decide` answers a request with facts or a refusal, `take` applies facts with all that follows from them."""

from __future__ import annotations

from collections import deque

from supervisor.core import authority, facts, names, requests
from supervisor.core.apply import apply
from supervisor.core.authority import Agent, Nobody, Principal
from supervisor.core.decide import admit, fleet, fork, leave, run, task
from supervisor.core.decide.moment import Moment
from supervisor.core.facts import Fact
from supervisor.core.refusals import Refusal, RefusedError, refuse
from supervisor.core.requests import VERB, Request
from supervisor.core.state import Node, Project


def decide(project: Project, by: Principal, request: Request, moment: Moment) -> list[Fact] | Refusal:
    """What follows from a request: facts (none where it is so already), or the refusal that changes nothing."""
    try:
        permit(by, VERB[type(request)])
        if project.closing:
            raise refuse("down", "the daemon is leaving")
        return _decide(project, by, request, moment)
    except RefusedError as no:
        return no.refusal


def permit(by: Principal, verb: str) -> None:
    """Refuse nobody, and an agent what is the operator's alone."""
    if isinstance(by, Nobody):
        raise refuse("nobody", f"the caller could not be named: {by.why}")
    if isinstance(by, Agent) and authority.TABLE[verb] == "operator":
        raise refuse("authority", f"{verb} is the operator's alone", asked=verb, ask="operator")


def _decide(project: Project, by: Principal, request: Request, moment: Moment) -> list[Fact]:
    match request:
        case requests.Fork():
            return fork.fork(project, by, request, moment)
        case requests.Up():
            return fleet.up(project, request, moment, str(by))
        case requests.Down():
            return leave.down(project, str(by))
    node = reach(project, by, request.agent, VERB[type(request)])
    match request:
        case requests.Instruct(text=text):
            return task.instruct(node, by, text, moment)
        case requests.Stop():
            return [*leave.leave(node, "stopped", "asked", str(by))]
        case requests.Disband():
            return [*leave.leave(node, "gone", "disband", str(by))]
        case requests.Start():
            return leave.start(project, node, moment)
        case requests.Restarting(branch=branch):
            return leave.restart(project, node, branch=branch)
        case requests.Hold(grant=grant):
            if not node.live and node.state != "stopped":
                raise refuse("state", f"{node.name} is {node.state} and holds nothing", field="state", held=node.state)
            return [facts.Granted(node.id, admit.more(project, node, grant))]
        case requests.Rename(name=name):
            return _rename(project, node, name)


def reach(project: Project, by: Principal, text: str, verb: str) -> Node:
    """The target of a verb, if it is the caller's to reach. Only instruct takes a part of a name."""
    node = names.find(project, by, text, part=verb in ("instruct", "logs", "tree", "usage"))
    if isinstance(by, Agent):
        own = node.id == by.agent
        below = not own and project.within(node, by.agent)
        if not (below or (own and authority.TABLE[verb] in ("self", "own"))):
            who = "yourself" if own else f"{node.name} ({node.id}), which is not below you"
            raise refuse(
                "authority",
                f"you may not {verb} {who}",
                asked=verb,
                field="agent",
                ask=admit.over(project, node),
            )
    return node


def _rename(project: Project, node: Node, name: str) -> list[Fact]:
    if name.strip() == node.name:
        return []
    if node.state == "gone":
        raise refuse("state", f"{node.name} is gone", field="state", held="gone")
    if name.strip().casefold() == node.name.casefold():
        return [facts.Renamed(node.id, name.strip(), node.name)]
    return [facts.Renamed(node.id, fork.check_name(project, name), node.name)]


def take(project: Project, happened: list[Fact], moment: Moment) -> list[Fact]:
    """Apply facts and, to a fixed point, all that follows from them. Returns them in the order they were applied."""
    waiting, taken = deque(happened), []
    while waiting:
        fact = waiting.popleft()
        apply(project, fact, moment.stamp.at)
        taken.append(fact)
        waiting.extendleft(reversed(_follow(project, fact, moment)))
    return taken


def _follow(project: Project, fact: Fact, moment: Moment) -> list[Fact]:
    if not hasattr(fact, "agent"):
        return run.after_opening(project, moment, fact) if isinstance(fact, facts.Opened) else []
    node = project.agents.get(fact.agent)
    if node is None:
        return []
    match fact:
        case facts.Ready():
            return task.carry_on(project, node, moment) if fact.run == node.run else []
        case facts.Queued():
            return task.hand(project, node)
        case facts.Granted():
            return task.wake_branch(project, node)
        case facts.Handed() | facts.Spent():
            return task.after_spending(project, fact)
        case facts.Warned():
            return task.after_warning(project, fact, moment)
        case facts.TurnEnded():
            return task.after_turn(project, fact)
        case facts.Said():
            return task.after_said(project, fact)
        case facts.TaskEnded():
            return task.after_task(project, fact, moment)
        case facts.Leaving():
            return leave.after_leaving(project, fact, moment)
        case facts.Left():
            return leave.after_left(project, fact, moment)
        case facts.Exited() | facts.Unstarted():
            return run.after_exit(project, fact, moment)
        case facts.Lost():
            return run.after_loss(project, fact, moment)
        case facts.Due():
            return run.after_backoff(project, fact)
        case facts.Expired():
            return [*leave.leave(node, "gone", "wall", "")] if node.state != "stopped" else []
        case _:
            return []
