"""What an agent asks and waits for: a question that a text answers, and prompts that a person approves or denies.
Changed by facts alone, through `apply`."""

from __future__ import annotations

from supervisor.core import facts
from supervisor.core.facts import Fact
from supervisor.core.lifecycle import State
from supervisor.core.state import Node, Project
from supervisor.core.words import first_line

#: So many prompts of one agent are kept; a program that asks for more at once is answered for those first.
PROMPTS = 32
#: Where an agent can be that asks.
ASKING: frozenset[State] = frozenset({"starting", "working", "standing", "waiting", "parked"})
#: Of a question so much is kept (characters).
QUESTION = 4000


def blocked(project: Project, node: Node, fact: facts.Blocked) -> None:
    """It asks. A program that is not ready can only wait for a person's yes or no; one that is being ended is not
    answered any more."""
    if node.rerun is not None or node.state not in ASKING:
        return
    if fact.prompt:
        if len(node.prompts) < PROMPTS:
            node.prompts[fact.prompt] = fact.question[:QUESTION]
    elif node.talk.ready:
        node.asks = True
    node.waiting_on, node.last = fact.on, first_line(fact.question) or node.last
    node.status, node.asked = "", project.inputs  # what it said before it asked is not its last word


def awaiting(project: Project, node: Node, _fact: facts.Awaiting) -> None:
    """Its task waits for those of its children; what is given to it from now on does not."""
    node.awaits, node.asked = True, project.inputs


def over(_project: Project, node: Node, fact: facts.Answered | facts.Withdrawn) -> None:
    """One prompt less; without a name it is the question that a text would have answered."""
    if not fact.prompt and node.asks:
        node.asks, node.waiting_on = False, node.waiting_on if node.prompts else ""
    if node.prompts.pop(fact.prompt, None) is not None and not node.prompts and not node.asks:
        node.waiting_on = ""


def nothing(node: Node) -> None:
    """Whoever would take the answer is gone."""
    node.prompts.clear()
    node.asks = node.awaits = False


def leads(node: Node, fact: Fact) -> State:
    """Where a fact leads that may lead to several states."""
    match fact:
        case facts.Blocked():
            return "waiting" if node.prompts or node.asks else node.state
        case facts.TaskEnded():
            return "waiting" if node.prompts else "standing"
    if node.prompts or node.asks or node.awaits:
        return "waiting"
    if node.turn:
        return "working"
    return "standing" if node.talk.ready or not node.alive else "starting"
