"""Work: a task waits, is handed over as a turn when the budgets allow one, and ends; usage crosses thresholds on the
way."""

from __future__ import annotations

from supervisor.core import budgets, talk
from supervisor.core.authority import Principal
from supervisor.core.decide import children
from supervisor.core.decide.leave import leave
from supervisor.core.decide.moment import Moment
from supervisor.core.facts import (
    Fact,
    Handed,
    Input,
    Interrupted,
    Queued,
    Said,
    Spent,
    Starting,
    TaskEnded,
    TurnEnded,
    TurnStarted,
    Warned,
    Withdrawn,
)
from supervisor.core.lifecycle import IDLE
from supervisor.core.parking import held
from supervisor.core.refusals import refuse
from supervisor.core.state import Node, Project
from supervisor.core.words import amount, called, digest, first_words

#: The budgets that cut a running turn. The last allowed turn is not cut by having been counted.
INTERRUPTING = ("tokens", "cost")
#: Texts that may wait for one agent, digests aside; one more is refused to its sender.
INBOX = 50


def instruct(node: Node, by: Principal, text: str, moment: Moment) -> list[Fact]:
    """A task waits for the agent; it starts with the next turn."""
    if not text.strip():
        raise refuse("empty", "a task needs words", field="text")
    if not node.live:
        raise refuse(
            "state",
            f"{node.name} is {node.state} and takes no task",
            field="state",
            asked="instruct",
            held=node.state,
        )
    waiting = sum(item.sort != "digest" for item in node.inbox)
    if waiting >= INBOX:
        raise refuse(
            "bound",
            f"{INBOX} texts wait for {node.name} already",
            field="inbox",
            asked=1,
            held=INBOX,
            used=waiting,
            ask=node.name,
        )
    return [Queued(node.id, moment.input("task", text, str(by)))]


def hand(project: Project, node: Node) -> list[Fact]:
    """What waits goes to an idle program in one turn, if the budgets hold one more: all digests, and the next text
    that wakes with the gentle ones before it. No text that does not wake starts a turn. An agent that stands by without
    a process is started for it first.

    While a task is under way only digests go. An agent that waits takes the next text that was given after it asked
    as its answer, in the midst of its turn if that still runs; then digests wait for the turn's end. One whose task
    waits for its children has a turn when the last of them is done, with whatever there is to tell."""
    if project.closing or node.rerun is not None or node.state not in IDLE or _hears_nothing(node) or node.prompts:
        return []
    if _is_short(project, node):
        return []
    if node.stands and _goes_on(node):
        return [_starting(node)]
    if instead := children.superseded(node):
        return instead
    if not _wakes(project, node, node.inbox) or (not node.turn and held(project, node)):
        return []
    chosen: list[Input] = []
    answer = (node.asks and (node.task is not None or node.turn)) or _answers(node)
    room = node.task is None or answer
    for item in node.inbox:
        if item.sort == "digest":
            chosen += [] if node.turn else [item]
        elif room and not (answer and int(item.id[1:]) <= node.asked):
            chosen.append(item)
            room = not item.wake
    if not _wakes(project, node, chosen):
        return []
    if node.stands:
        return [_starting(node)]
    texts = tuple(item.id for item in chosen)
    return [Handed(node.id, node.run, texts, turn=not node.turn, introduce=not node.introduced)]


def _wakes(project: Project, node: Node, texts: list[Input]) -> bool:
    """Whether one of these starts a turn: at the end of a wait for children, whatever there is to tell."""
    if any(item.wake for item in texts):
        return True
    return node.awaits and any(item.sort == "digest" for item in texts) and not children.busy(project, node)


def _hears_nothing(node: Node) -> bool:
    """Whether there is nothing to hand a text to: no process, and none to be started for it; or one that has been given
    all that it takes."""
    return talk.full(node) if node.alive else not node.stands


def _starting(node: Node) -> Starting:
    """Its program is started with what waits; it is handed over once that is ready."""
    return Starting(node.id, node.run + 1, resume=bool(node.session))


def _answers(node: Node) -> bool:
    """Whether its run was started with an answer, and has not been given it yet."""
    return node.talk.answering and node.talk.turn == "" and node.task is not None


def _goes_on(node: Node) -> bool:
    """Whether the next run is to go on with a task that was cut (`resume = "continue"`)."""
    return node.task is not None and node.state == "standing"


def _is_short(project: Project, node: Node) -> bool:
    """Whether a budget holds no further turn. One that was charged and never began is there to be used."""
    fields = ("tokens", "cost") if node.talk.owed else ("turns", "tokens", "cost")
    return budgets.exhausted(project, node, fields) is not None


def after_turn(project: Project, fact: TurnEnded) -> list[Fact]:
    """The turn that leaves nothing queued ends the task, unless the agent waits on someone, children with tasks of
    their own among them. One that met a limit ends no task, whatever became of it: only what the agent said does."""
    node = project.agents[fact.agent]
    # What it asked in this turn is over with it; what waits goes on after the last of them.
    unasked: list[Fact] = [Withdrawn(node.id, node.run, name) for name in node.prompts]
    if node.task is None or ((node.asks or node.state == "parked") and not node.status):
        return unasked or hand(project, node)
    if fact.outcome == "ok" and (waits := children.waits(project, node)):
        return [*waits, *unasked]
    status = node.status or {"ok": "done", "error": "failed", "aborted": "interrupted"}[fact.outcome]
    return [TaskEnded(node.id, status, node.summary or first_words(fact.error or fact.text)), *unasked]


def after_said(project: Project, fact: Said) -> list[Fact]:
    """`done` outside a turn ends the task at once; within one, the turn's end does."""
    node = project.agents[fact.agent]
    return [TaskEnded(node.id, fact.status, fact.summary)] if node.task is not None and not node.turn else []


def after_task(project: Project, fact: TaskEnded, moment: Moment) -> list[Fact]:
    """The parent gets one digest, which wakes it unless it ended the agent itself; at `max_tasks` the agent is
    released; else the next task starts. One who leaves already is not released as well: a stopped agent stays."""
    node = project.agents[fact.agent]
    limit = node.spec.max_tasks
    last = node.live and limit is not None and node.tasks >= limit
    facts: list[Fact] = []
    parent = project.above(node)
    if parent is not None:
        count = f"task {node.tasks}" + (f" of {limit}" if limit is not None else "")
        text = f"{called(node)} ended {count}: {fact.status}." + (f" {fact.summary}" if fact.summary else "")
        text += " It is released now." if last else ""
        facts += moment.tell(parent, text, wake=fact.wake and node.ended_by != parent.id)
    return facts + (leave(node, "gone", "tasks", "fleet") if last else hand(project, node))


def carry_on(project: Project, node: Node, moment: Moment) -> list[Fact]:
    """The program is back, and the task that was cut goes on, before any other: after a death of it with
    `resume = "continue"`, after a limit always. One that was told of its task in this conversation is not told it
    again: it would begin anew."""
    if node.task is None or node.state != "standing" or node.rerun is not None or _answers(node):
        return hand(project, node)
    if node.limited and node.introduced:
        text = (
            f"Your provider took no more for a while ({node.limited}) and does again. Go on with your task where you "
            f"were: {first_words(node.task.text)}"
        )
    elif node.limited:
        text = (
            f"Your provider took no more for a while ({node.limited}) and does again; do this task.\n{node.task.text}"
        )
    else:
        text = f"Your process was started again in the middle of this task; go on with it.\n{node.task.text}"
    return [Queued(node.id, moment.input("digest", digest(text), "fleet"))]


def after_spending(project: Project, fact: Spent | Handed | TurnStarted) -> list[Fact]:
    """Warn once at 80 and at 100 percent of each account that this spending reached. A turn that goes on with nothing
    left is interrupted, each turn once, however often the account was used up before."""
    node = project.agents[fact.agent]
    facts: list[Fact] = []
    for field in ("tokens", "turns", "cost"):
        holder = project.holder(node, field)
        while holder is not None:
            if (percent := budgets.crossed(holder, field)) != 0:
                facts.append(Warned(holder.id, field, percent))
            account = holder.accounts[field]
            # Spending flows on only from an account that is used up.
            holder = project.agents[account.holder] if account.holder and account.over else None
    if isinstance(fact, Spent) and (used_up := budgets.exhausted(project, node, INTERRUPTING)) is not None:
        facts += _interrupt(node, *used_up)
    return facts


def _interrupt(node: Node, field: str, holder: Node) -> list[Fact]:
    if node.state != "working" or not node.alive or node.cut:
        return []
    return [Interrupted(node.id, node.run, f"{field} of {holder.name} are used up")]


def after_warning(project: Project, fact: Warned, moment: Moment) -> list[Fact]:
    """The agent and its parent are told; at 100 percent whatever runs on this account is interrupted."""
    node = project.agents[fact.agent]
    account = node.accounts[fact.field]
    left, held = amount(fact.field, account.free), amount(fact.field, account.held)
    text = f"{fact.percent} % of the {fact.field} budget of {called(node)} is used: {left} of {held} left."
    facts: list[Fact] = [*moment.tell(node, text, wake=False)]
    parent = project.above(node)
    facts += moment.tell(parent, text, wake=False) if parent is not None else []
    if fact.percent == 100 and fact.field in INTERRUPTING:
        for at in project.down(node):
            if project.holder(at, fact.field) is node:
                facts += _interrupt(at, fact.field, node)
    return facts


def end_of_wait(project: Project, agent: str) -> list[Fact]:
    """Something happened to an agent whose task waits for its children, or to one of these: what there is to tell it if
    that was the last one, else the end of its task."""
    node = project.agents.get(agent)
    return (hand(project, node) or children.settled(project, node)) if node is not None and node.awaits else []


def offer(project: Project) -> list[Fact]:
    """More is free than before, by a grant or by what came back: whoever waited for it goes on."""
    return [fact for agent in project.waiting for fact in hand(project, project.agents[agent])]
