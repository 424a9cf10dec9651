"""What becomes of a task when a run ends, and what goes back to the inbox: it ended, or it waits for the next run."""

from __future__ import annotations

from supervisor.core import talk
from supervisor.core.decide import children
from supervisor.core.facts import Exited, Fact, Returned, TaskEnded, Unstarted
from supervisor.core.state import Node, Project
from supervisor.core.words import ended, first_words


def over(project: Project, node: Node, fact: Exited | Unstarted) -> list[Fact]:
    """A run of a program that does one task and ends is over: what became of the task, where its turn had not ended. It
    is done where the program told nothing of turns and ended well."""
    if node.talk.turn != "runs" or node.task is None or node.task.id in _kept(node):
        return []
    if isinstance(fact, Unstarted):
        return [TaskEnded(node.id, "failed", f"it could not be started: {fact.reason}")]
    well = talk.served(node, fact)
    if not well and node.spec.resume == "continue":
        return []
    if node.talk.silent:
        return [TaskEnded(node.id, node.status or "failed", node.summary or node.reason)]
    how, said = ended(fact), first_words(talk.last(node))
    if well and fact.code == 0 and node.asks and not node.status:
        return []  # it asked, and the answer is another run's
    if well and fact.code == 0 and (waits := children.waits(project, node)):
        return waits
    if well and fact.code == 0:
        return [TaskEnded(node.id, node.status or "done", node.summary or said)]
    why = f"it {how}{'' if well else ' in the middle of its turn'}" + (f"; its last line: {said}" if said else "")
    return [TaskEnded(node.id, node.status or "failed", node.summary or why)]


def cut(node: Node, fact: Exited | None = None, *, wake: bool = True) -> list[Fact]:
    """A run ended in the middle of a task: what became of it. `fact` is given where the program ended by itself; one
    that was made to end has done its task only if it said so. With `wake` false the parent is not woken, because the
    same befell it. `resume = "continue"` keeps a task for the next run, and so does not having been begun with."""
    if node.task is None or node.task.id in _kept(node):
        return []
    if node.live and (node.limited or node.state == "parked"):
        return []
    if node.wanted != "gone" and node.spec.resume == "continue":
        return []
    if node.talk.silent:
        return [TaskEnded(node.id, node.status or "failed", node.summary or node.reason, wake)]
    if fact is None or fact.code != 0:
        return [TaskEnded(node.id, node.status or "interrupted", node.summary, wake)]
    return [TaskEnded(node.id, node.status or "done", node.summary or first_words(node.last), wake)]


def let_go(node: Node) -> list[Fact]:
    """It leaves, and no run of it will: what a limit stopped, or what waits, is over."""
    return cut(node) if not node.alive else []


def give_back(node: Node) -> list[Fact]:
    """A run ended: what its program had not begun with waits for the next one."""
    return [Returned(node.id, names)] if (names := _kept(node)) else []


def _kept(node: Node) -> tuple[str, ...]:
    return talk.unread(node) if node.wanted != "gone" else ()
