"""Gives up what a program asks when the program will go on without an answer: from then on no answer can reach it. It
decides nothing for the person: the program does what it does when nobody is there."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from supervisor.core.facts import Blocked, Fact, Withdrawn

if TYPE_CHECKING:
    from supervisor.runtime.run import Run

#: So long before the program does (seconds): an answer that comes later could meet nobody.
EARLY = 0.2


def watch(run: Run, said: Iterable[Fact]) -> None:
    """Of all that the program asked just now, what it will not wait for for ever."""
    for fact in said:
        if isinstance(fact, Blocked) and fact.lasts:
            run.heard.later(max(0.0, fact.lasts - EARLY), partial(_over, run, fact))


def _over(run: Run, fact: Blocked) -> None:
    node = run.heard.desk.project.agents.get(fact.agent)
    if node is None or not node.alive or node.run != fact.run:
        return
    if fact.prompt in node.prompts or (not fact.prompt and node.asks):
        run.answer(fact.prompt, allow=None, text=fact.question)
        run.heard.take([Withdrawn(fact.agent, fact.run, fact.prompt)])
