"""Facts change state here and nowhere else. Applying cannot fail and asks nothing: replay gives the same state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve

from supervisor.core import asking, budgets, facts, line, occupancy, parking, runs, talk, tree
from supervisor.core.facts import Fact
from supervisor.core.ledger import ZERO, Usage
from supervisor.core.lifecycle import AWAY, LIVE, after
from supervisor.core.state import Node, Project
from supervisor.core.words import first_line


def late(node: Node, fact: Fact) -> bool:
    """Whether the fact is about a run that is over, or not the agent's at all. Such a run's usage counts; all else
    that it says stays in the journal only."""
    if isinstance(fact, facts.Starting) or not hasattr(fact, "run"):
        return False
    if isinstance(fact, facts.Due):
        return fact.run != node.run or (node.alive and node.state != "parked")
    return fact.run != node.run or not node.alive


def apply(project: Project, fact: Fact, at: float) -> None:
    """Take one fact; `at` is its batch's time."""
    handler = _BY_FACT.get(type(fact))
    if handler is None:
        return
    if not hasattr(fact, "agent") or isinstance(fact, facts.Born):
        handler(project, fact, at)
        return
    node = project.agents.get(fact.agent)
    if node is None:
        return
    if late(node, fact) and not isinstance(fact, facts.Spent | facts.Garbled):
        return
    handler(project, node, fact)
    if fact.agent in project.agents:
        _move(project, node, fact, at)
        _waits(project, node)


def _move(project: Project, node: Node, fact: Fact, at: float) -> None:
    """Where the table leads; the counts of who is around go along."""
    to = fact.to if isinstance(fact, facts.Left | facts.Unparked) else asking.leads(node, fact)
    moved = after(node.state, type(fact).__name__, to)
    if moved == node.state:
        return
    if moved != "parked":
        node.park = None
        node.until = at + fact.delay if isinstance(fact, facts.BackedOff) else None
    more = (node.state in AWAY) - (moved in AWAY)
    node.state, node.since = moved, at
    project.living += more
    if (parent := project.above(node)) is not None:
        parent.around += more
        parent.here -= moved == "gone"


def _waits(project: Project, node: Node) -> None:
    """Keep who has texts waiting, so that what becomes free is offered without a walk over all agents; and who waits
    for children."""
    if node.inbox and node.state in LIVE:
        project.waiting.setdefault(node.id)
    else:
        project.waiting.pop(node.id, None)
    if node.awaits:
        project.awaiting.setdefault(node.id)
    else:
        project.awaiting.pop(node.id, None)


def _accepted(project: Project, fact: facts.Accepted, _at: float) -> None:
    project.file, project.sha256, project.path = fact.file, fact.sha256, fact.path
    project.fleet, project.name, project.wanted = fact.fleet, fact.fleet.name, True


def _downed(project: Project, _fact: facts.Downed, _at: float) -> None:
    project.wanted = False
    tree.downed(project)


def _opened(project: Project, fact: facts.Opened, _at: float) -> None:
    project.closing, project.instance = False, fact.instance
    project.line.clear()  # whoever waited for an answer lost it with the daemon


def _dawned(project: Project, fact: facts.Dawned, _at: float) -> None:
    if project.books.dawn(fact.day):
        for node in project.agents.values():
            project.books.fold(node, node.spec.role)
        project.books.fold_past()


def _closing(project: Project, _fact: facts.Closing, _at: float) -> None:
    project.closing = True


def _refused(project: Project, fact: facts.Refused, _at: float) -> None:
    project.refused += fact.times


def _warned(_project: Project, node: Node, fact: facts.Warned) -> None:
    node.warned |= {(fact.field, at) for at in (80, 100) if at <= fact.percent}


def _queued(project: Project, node: Node, fact: facts.Queued) -> None:
    node.inbox.append(fact.input)
    project.inputs = max(project.inputs, int(fact.input.id[1:]))


def _handed(project: Project, node: Node, fact: facts.Handed) -> None:
    chosen = set(fact.inputs)
    handed = [item for item in node.inbox if item.id in chosen]
    node.inbox = [item for item in node.inbox if item.id not in chosen]
    node.handed += handed
    # The last of them is what the turn is for; the ones before it came along. An answer to a waiting agent takes the
    # place of the task that asked: both end as one.
    node.task = next((item for item in reversed(handed) if item.sort != "digest"), node.task)
    node.introduced, node.waiting_on, node.asks, node.awaits = True, "", False, False
    costs = talk.handed(node, fact)
    if fact.turn:
        node.turn, node.cut = True, False
        node.status = node.verdict = node.summary = node.limited = ""
    if costs:
        _spend(project, node, Usage(turns=1))


def _turn_started(project: Project, node: Node, _fact: facts.TurnStarted) -> None:
    if not node.turn and after(node.state, "TurnStarted") != node.state:  # one that we did not start
        node.turn, node.cut = True, False
        _spend(project, node, Usage(turns=1))
        talk.started(node)
    node.asks = node.awaits = False
    talk.begun(node)


def _turn_ended(_project: Project, node: Node, fact: facts.TurnEnded) -> None:
    node.handed.clear()
    talk.ended(node, fact)
    parking.turn_ended(node, fact)
    node.turn = node.cut = False
    node.text = fact.text
    node.reason = fact.error
    node.last = first_line(fact.error or fact.text) or node.last


def _spent(project: Project, node: Node, fact: facts.Spent) -> None:
    for report in fact.reports:
        # Turns are counted by what starts them, never by what a program says of them.
        added = node.meter.book(report, fact.run)
        if report.model:
            project.books.named(node, node.model, report.model)
        project.books.prices = report.prices or project.books.prices
        _spend(project, node, evolve(added, turns=0), report.model)
        if late(node, fact):
            continue  # what it says of itself is over
        if added.output:
            node.parks = 0  # a model answered
        occupancy.take(node, report)
        node.model = report.model or node.model
    if fact.incomplete > 0:
        _spend(project, node, Usage(incomplete=fact.incomplete))


def _outside(_project: Project, node: Node, fact: facts.Outside) -> None:
    node.outside = (*node.outside, fact.used)


def _spend(project: Project, node: Node, added: Usage, model: str = "") -> None:
    if added == ZERO:
        return
    node.own = node.own + added
    project.books.book(node, node.spec.role, model or node.model, added)
    for at in project.up(node):
        at.branch = at.branch + added
    # A gone agent holds nothing any more: what comes late is charged above it.
    for field, amount in budgets.amounts(added).items():
        budgets.charge(project, node, field, amount)


def _spoke(_project: Project, node: Node, fact: facts.Spoke) -> None:
    node.last = fact.last
    talk.spoke(node)


def _said(_project: Project, node: Node, fact: facts.Said) -> None:
    node.status, node.verdict, node.summary, node.waiting_on = (
        fact.status,
        fact.verdict,
        fact.summary,
        fact.waiting_on,
    )


def _garbled(_project: Project, node: Node, fact: facts.Garbled) -> None:
    node.garbled += fact.lines


def _task_ended(_project: Project, node: Node, fact: facts.TaskEnded) -> None:
    node.task, node.tasks, node.limited, node.asks, node.awaits = None, node.tasks + 1, "", False, False
    node.status = fact.status
    node.summary = fact.summary or node.summary


def _leaving(_project: Project, node: Node, fact: facts.Leaving) -> None:
    node.wanted, node.leaving, node.ended_by, node.rerun = fact.to, fact.cause, fact.by, None
    node.crashes = 0  # whoever starts it again means it to be tried again
    node.stands = False
    asking.nothing(node)


def _interrupted(_project: Project, node: Node, _fact: facts.Interrupted) -> None:
    node.cut = True


_BY_FACT: dict[type, Callable[[Project, Any, Any], None]] = {
    facts.Accepted: _accepted,
    facts.Downed: _downed,
    facts.Opened: _opened,
    facts.Dawned: _dawned,
    facts.Closing: _closing,
    facts.Refused: _refused,
    facts.LinedUp: line.lined_up,
    facts.OutOfLine: line.out_of_line,
    facts.Born: tree.born,
    facts.Renamed: tree.renamed,
    facts.Respecified: tree.respecified,
    facts.Granted: tree.granted,
    facts.Warned: _warned,
    facts.Starting: runs.starting,
    facts.Stood: runs.stood,
    facts.Started: runs.started,
    facts.Unstarted: runs.unstarted,
    facts.Ready: runs.ready,
    facts.Queued: _queued,
    facts.Handed: _handed,
    facts.Read: talk.read,
    facts.Returned: talk.returned,
    facts.TurnStarted: _turn_started,
    facts.TurnEnded: _turn_ended,
    facts.Spent: _spent,
    facts.Outside: _outside,
    facts.Spoke: _spoke,
    facts.Said: _said,
    facts.Blocked: asking.blocked,
    facts.Awaiting: asking.awaiting,
    facts.Answered: asking.over,
    facts.Withdrawn: asking.over,
    facts.Limited: parking.limited,
    facts.Parked: parking.parked,
    facts.Unparked: parking.unparked,
    facts.Tripped: parking.tripped,
    facts.Mended: parking.mended,
    facts.Garbled: _garbled,
    facts.TaskEnded: _task_ended,
    facts.Interrupted: _interrupted,
    facts.Leaving: _leaving,
    facts.Rerun: runs.rerun,
    facts.Silent: runs.silent,
    facts.Exited: runs.exited,
    facts.Lost: runs.lost,
    facts.BackedOff: runs.backed_off,
    facts.Abandoned: talk.abandoned,
    facts.Left: tree.left,
    facts.Forgotten: tree.forgotten,
}
