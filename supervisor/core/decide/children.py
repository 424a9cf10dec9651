"""When an agent's task waits for its children: its turn is over and the task is not, while a child has one of its own
under way. What ends the wait is what ends theirs; it must never outlast the last of them."""

from __future__ import annotations

from supervisor.core import budgets
from supervisor.core.facts import Awaiting, Fact, TaskEnded
from supervisor.core.lifecycle import IDLE
from supervisor.core.state import Node, Project
from supervisor.core.words import first_words


def busy(project: Project, node: Node) -> tuple[str, ...]:
    """The children with open tasks, by id. One whom the agent itself ends is none of them, nor is one that cannot begin
    because a budget is used up: its end would be waited for by the only one who could give it more."""
    return tuple(child for child in node.children if _open(project, node, project.agents[child]))


def _open(project: Project, node: Node, child: Node) -> bool:
    if child.away or child.ended_by == node.id:
        return False
    if child.task is not None:
        return True
    begins = child.live and any(item.wake and item.sort != "digest" for item in child.inbox)
    return begins and not (child.state in IDLE and budgets.exhausted(project, child) is not None)


def waits(project: Project, node: Node) -> list[Fact]:
    """The wait of an agent whose turn is over, if it said nothing of being done and children of it are not, or what
    they ended with is yet to be told."""
    if node.status:
        return []
    below = busy(project, node)
    return [Awaiting(node.id, below)] if below or told(project, node) else []


def told(project: Project, node: Node) -> bool:
    """Whether something that wakes it waits to be told, and it has a turn left for that."""
    wakes = any(item.sort == "digest" and item.wake for item in node.inbox)
    return wakes and budgets.exhausted(project, node) is None


def superseded(node: Node) -> list[Fact]:
    """A task that was given while this one waited ends it as it stands: whoever gave that one need not wait for
    children that may work for ever."""
    later = any(item.sort != "digest" and item.wake and int(item.id[1:]) > node.asked for item in node.inbox)
    if not node.awaits or node.asks or not later:
        return []
    return [TaskEnded(node.id, "superseded", first_words(node.text))]


def settled(project: Project, node: Node) -> list[Fact]:
    """The end of its task where the last child is no longer busy and there is nothing to tell it: it is as well done as
    its last turn was."""
    if not node.awaits or node.state != "waiting" or node.prompts or project.closing:
        return []
    some = any(item.sort == "digest" for item in node.inbox) and budgets.exhausted(project, node) is None
    return [] if some or busy(project, node) else [TaskEnded(node.id, "done", first_words(node.text))]
