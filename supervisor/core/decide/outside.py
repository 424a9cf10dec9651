"""What follows when a program says that it uses a model which its agent does not hold: it is told, once, to the parent
and to people. Nothing is ended for it: programs call one model by many names."""

from __future__ import annotations

from supervisor.core import models, rights
from supervisor.core.apply import late
from supervisor.core.decide.moment import Moment
from supervisor.core.facts import Fact, Outside, Ready, Spent
from supervisor.core.state import Project
from supervisor.core.words import called


def after_report(project: Project, fact: Ready | Spent) -> list[Fact]:
    """The models of this report that are none of the agent's, and were not told before."""
    node = project.agents[fact.agent]
    used = [fact.model] if isinstance(fact, Ready) else [report.model for report in fact.reports]
    fresh = [model for model in dict.fromkeys(used) if model and model not in node.outside]
    if not fresh or late(node, fact):
        return []
    return [Outside(node.id, fact.run, "models", model) for model in fresh if models.strange(project, node, model)]


def after_outside(project: Project, fact: Outside, moment: Moment) -> list[Fact]:
    """The parent hears of it with its next turn."""
    node = project.agents[fact.agent]
    parent, held = project.above(node), rights.effective(project, node, "models")
    if parent is None:
        return []
    holds = ", ".join(held) if isinstance(held, tuple) and held else "none"
    text = f"{called(node)} uses the model {fact.used}, as its program says; it holds {holds}."
    return [*moment.tell(parent, text, wake=False)]
