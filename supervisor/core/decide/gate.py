"""The core's one gate: `decide` answers a request with facts or a refusal, `take` applies facts with all that follows
from them."""

from __future__ import annotations

from collections import deque

from supervisor.core import authority, facts, names, requests
from supervisor.core.apply import apply, late
from supervisor.core.authority import Agent, Nobody, Principal
from supervisor.core.decide import admit, children, ends, fleet, fork, leave, outside, park, prompt, room, run, task
from supervisor.core.decide.moment import Moment
from supervisor.core.facts import Fact
from supervisor.core.grants import Grant
from supervisor.core.refusals import Refusal, RefusedError, refuse
from supervisor.core.requests import VERB, Request
from supervisor.core.state import Node, Project, fold

#: What may book something.
SPENDING = (facts.Spent, facts.Handed, facts.TurnStarted)


def decide(project: Project, by: Principal, request: Request, moment: Moment) -> list[Fact] | Refusal:
    """What follows from a request: facts (none where it is so already), or the refusal that changes nothing."""
    try:
        permit(by, VERB[type(request)])
        _still(project, by)
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


def _still(project: Project, by: Principal) -> None:
    """An agent is a living run of this project: one that has ended is nobody, whatever it was."""
    if isinstance(by, Agent):
        node = project.agents.get(by.agent)
        if by.project != project.id or node is None or node.run != by.run or not node.alive:
            raise refuse("nobody", f"run {by.run} of {by.agent} has ended")


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
        case requests.Approve(prompt=name):
            return prompt.answer(node, name, allow=True)
        case requests.Deny(prompt=name, text=text):
            return prompt.answer(node, name, allow=False, text=text)
        case requests.Stop():
            return [*leave.leave(node, "stopped", "asked", str(by))]
        case requests.Disband():
            return [*leave.leave(node, "gone", "disband", str(by))]
        case requests.Start():
            return leave.start(project, node, moment, str(by))
        case requests.Restarting(branch=branch):
            return leave.restart(project, node, str(by), branch=branch)
        case requests.Hold(grant=grant):
            return _hold(project, node, grant)
        case requests.Rename(name=name):
            return _rename(project, node, name)


def reach(project: Project, by: Principal, text: str, verb: str) -> Node:
    """The target of a verb, if it is the caller's to reach: what it only reads, it has to see. Only what ends nothing
    and changes nobody takes a part of a name."""
    node = names.find(project, by, text, part=verb in ("instruct", "logs", "tree", "usage", "about"))
    how = authority.TABLE[verb]
    if isinstance(by, Agent) and how != "read":
        own = node.id == by.agent
        below = not own and project.within(node, by.agent)
        if not (below or (own and how in ("self", "own"))):
            who = "yourself" if own else f"{node.name} ({node.id}), which is not below you"
            raise refuse(
                "authority", f"you may not {verb} {who}",
                field="agent", asked=verb, ask=project.giver(node),
            )  # fmt: skip
    return node


def _hold(project: Project, node: Node, grant: Grant) -> list[Fact]:
    if not node.live and node.state != "stopped":
        raise refuse("state", f"{node.name} is {node.state} and holds nothing", field="state", held=node.state)
    return [facts.Granted(node.id, admit.more(project, node, grant))]


def _rename(project: Project, node: Node, name: str) -> list[Fact]:
    """Another name for whoever still has one; the same in another case is free, because it is the agent's own."""
    if name.strip() == node.name:
        return []
    if node.state == "gone":
        raise refuse("state", f"{node.name} is gone", field="state", asked="rename", held="gone")
    if fold(name) == fold(node.name):
        return [facts.Renamed(node.id, name.strip(), node.name)]
    return [facts.Renamed(node.id, fork.check_name(project, name), node.name)]


def take(project: Project, happened: list[Fact], moment: Moment) -> list[Fact]:
    """Apply facts and, to a fixed point, all that follows from them. Returns them in the order they were applied."""
    waiting, taken, freed = deque(happened), list[Fact](), False
    touched: dict[str, None] = {}
    while waiting:
        fact = waiting.popleft()
        node = project.agents.get(getattr(fact, "agent", ""))
        if not _moot(project, node, fact):
            if isinstance(fact, SPENDING) and moment.stamp.day not in ("", project.books.day):
                dawned = facts.Dawned(moment.stamp.day)
                apply(project, dawned, moment.stamp.at)
                taken.append(dawned)
            heard = node is None or not late(node, fact) or isinstance(fact, facts.Spent)
            apply(project, fact, moment.stamp.at)
            taken.append(fact)
            freed = freed or isinstance(fact, facts.Granted | facts.Left)
            _touch(project, node, fact, touched)
            waiting.extendleft(reversed(_follow(project, fact, moment) if heard else []))
        if freed and not waiting:
            # Only now: what came back may have been meant for one that follows.
            waiting.extend(task.offer(project))
            freed = False
        if touched and not waiting:
            waiting.extend([fact for agent in touched for fact in task.end_of_wait(project, agent)])
            touched.clear()
    return taken


def _touch(project: Project, node: Node | None, fact: Fact, touched: dict[str, None]) -> None:
    """Note whose wait for children this may end. What is said and spent ends none."""
    if not project.awaiting or node is None or isinstance(fact, facts.Spent | facts.Spoke | facts.Read):
        return
    if isinstance(fact, facts.Warned):
        touched.update(project.awaiting)
    touched.update((agent, None) for agent in (node.id, node.parent or "") if agent in project.awaiting)


def _moot(project: Project, node: Node | None, fact: Fact) -> bool:
    """Whether what was decided a moment ago was overtaken by what followed from a fact before it. What the world
    reports never is."""
    match fact:
        case facts.Leaving():
            return node is None or not leave.leave(node, fact.to, fact.cause, fact.by)
        case facts.Left():
            return node is None or not leave.settled(node)
        case facts.Starting():
            return node is None or node.alive or fact.run != node.run + 1 or not (node.live or node.state == "stopped")
        case facts.Stood():
            return node is None or node.alive or not (node.live or node.state == "stopped")
        case facts.BackedOff():
            return node is None or node.alive or not node.live
        case facts.Parked():
            return node is None or not node.live
        case facts.Unparked():
            return node is None or node.state != "parked"
        case facts.Mended():
            return fact.credential not in project.tripped
        case facts.Handed():
            return node is None or task.hand(project, node) != [fact]
        case facts.Awaiting():
            return node is None or node.task is None or node.turn or not node.live or not children.waits(project, node)
        case facts.Queued():
            return node is None or node.state == "gone"
        case facts.TaskEnded():
            return node is None or node.task is None
        case facts.OutOfLine():
            return fact.place not in project.line
        case facts.Blocked():
            return node is not None and fact.prompt != "" and fact.prompt in node.prompts and not late(node, fact)
        case facts.Answered():
            return node is None or fact.prompt not in node.prompts
        case facts.Silent():
            return node is None or node.state != "working" or not 0 < node.spec.quiet_kill <= fact.seconds
        case facts.Interrupted():
            return node is None or node.state != "working" or node.cut
        case facts.Outside():
            return node is None or fact.used in node.outside
        case facts.Warned():
            return node is None or fact.field not in node.accounts or (fact.field, fact.percent) in node.warned
        case _:
            return False


def _follow(project: Project, fact: Fact, moment: Moment) -> list[Fact]:
    match fact:
        case facts.Opened():
            return run.after_opening(project, moment, fact)
        case facts.Tripped():
            return park.after_trip(project, fact, moment)
        case facts.Mended():
            return park.after_mending(project, fact, moment)
        case facts.Downed():
            return room.after_down(project, fact)
    node = project.agents.get(getattr(fact, "agent", ""))
    if node is None:
        return []
    return [*_follow_work(project, node, fact, moment), *_follow_life(project, node, fact, moment)]


def _follow_work(project: Project, node: Node, fact: Fact, moment: Moment) -> list[Fact]:
    """What follows from what an agent does."""
    match fact:
        case facts.Ready():
            return [*outside.after_report(project, fact), *task.carry_on(project, node, moment)]
        case facts.Queued() | facts.Awaiting():
            return task.hand(project, node)
        case facts.Stood():
            return [*task.hand(project, node), *park.settle(project, node, moment)]
        case facts.Handed() | facts.TurnStarted():
            return task.after_spending(project, fact)
        case facts.Spent():
            return [
                *outside.after_report(project, fact),
                *task.after_spending(project, fact),
                *park.settle(project, node, moment),
            ]
        case facts.Started():
            return park.settle(project, node, moment)
        case facts.Limited():
            return park.after_limit(project, fact, moment)
        case facts.Unparked():
            return task.carry_on(project, node, moment)
        case facts.Outside():
            return outside.after_outside(project, fact, moment)
        case facts.Warned():
            return task.after_warning(project, fact, moment)
        case facts.TurnEnded():
            return [*task.after_turn(project, fact), *park.settle(project, node, moment)]
        case facts.Blocked(prompt=name) if name:
            return prompt.after_asking(project, fact, moment)
        case facts.Answered() | facts.Withdrawn():
            return prompt.after_answer(project, fact, moment)
        case facts.Said():
            return task.after_said(project, fact)
        case facts.TaskEnded():
            return task.after_task(project, fact, moment)
        case _:
            return []


def _follow_life(project: Project, node: Node, fact: Fact, moment: Moment) -> list[Fact]:
    """What follows when its runs and its time end."""
    match fact:
        case facts.Leaving():
            gone = room.after_leaving(project, fact)
            return [*gone, *ends.let_go(node), *leave.after_leaving(project, fact, moment)]
        case facts.Left():
            return leave.after_left(project, fact, moment)
        case facts.Exited() | facts.Unstarted():
            return [*room.after_run(project, fact), *run.after_exit(project, fact, moment)]
        case facts.Lost():
            return [*room.after_run(project, fact), *run.after_loss(project, fact, moment)]
        case facts.Due():
            parked = node.state == "parked"
            return park.after_wait(project, node, moment) if parked else run.after_backoff(project, fact)
        case facts.Expired():
            return [*leave.leave(node, "gone", "wall", "")] if node.live else []
        case _:
            return []
