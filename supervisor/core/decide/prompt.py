"""What a program asks a person, and waits for: approve or deny answer exactly one such prompt, while it is up."""

from __future__ import annotations

from supervisor.core.decide import task
from supervisor.core.decide.moment import Moment
from supervisor.core.facts import Answered, Blocked, Fact, Withdrawn
from supervisor.core.refusals import refuse
from supervisor.core.state import Node, Project
from supervisor.core.words import called

#: So much of a question stands in a message (characters).
SHOWN = 400


def answer(node: Node, name: str, *, allow: bool, text: str = "") -> list[Fact]:
    """The answer to the prompt of this name; to the only one that is up where none is named."""
    if not node.prompts:
        raise _gone(node, name, f"{node.name} asks nothing now that approve or deny would answer{_by_text(node)}")
    if not name and len(node.prompts) > 1:
        raise _gone(node, name, f"{node.name} asks more than one thing; name the prompt. Up now: {_up(node)}")
    if name and name not in node.prompts:
        raise _gone(node, name, f"{node.name} does not ask {name!r} any more, if it ever did. Up now: {_up(node)}")
    return [Answered(node.id, node.run, name or next(iter(node.prompts)), allow, text)]


def _gone(node: Node, name: str, why: str) -> Exception:
    return refuse("state", why, field="prompt", asked=name or None, held=", ".join(node.prompts) or None)


def _by_text(node: Node) -> str:
    return f"; its question is answered by a text: supervisorctl instruct {node.name} TEXT" if node.asks else ""


def _up(node: Node) -> str:
    return "; ".join(f"{name}: {shown(question)}" for name, question in node.prompts.items())


def shown(question: str) -> str:
    """Enough of a question to know it by, on one line."""
    flat = " ".join(question.split()) or "(no words)"
    return flat if len(flat) <= SHOWN else flat[: SHOWN - 1] + "…"


def after_asking(project: Project, fact: Blocked, moment: Moment) -> list[Fact]:
    """The parent is told, and woken: it waits for a child that would wait for ever."""
    node = project.agents[fact.agent]
    parent = project.above(node)
    if parent is None or fact.prompt not in node.prompts:
        return []
    text = f"{called(node)} waits for a person to approve or deny: {shown(fact.question)} (prompt {fact.prompt})"
    return [*moment.tell(parent, text, wake=True)]


def after_answer(project: Project, fact: Answered | Withdrawn, moment: Moment) -> list[Fact]:
    """Nothing is asked any more: what waited may go on."""
    return task.carry_on(project, project.agents[fact.agent], moment)
