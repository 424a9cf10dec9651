"""What facts about a run, from its start to its end, change of its agent. Called by `apply` alone."""

from __future__ import annotations

from attrs import evolve

from supervisor.core import asking, facts, parking, talk
from supervisor.core.state import Node, Project
from supervisor.core.words import ended, silence


def starting(project: Project, node: Node, fact: facts.Starting) -> None:
    """A run is to be spawned."""
    parking.tries(project, node)
    node.run, node.alive, node.rerun, node.wanted = fact.run, True, None, "running"
    node.leaving, node.ended_by, node.turn, node.cut = "", "", False, False
    if not fact.resume:
        node.session, node.introduced = "", False
    talk.starting(project, node, fact)
    awaits = node.awaits and node.stands  # it is started for what its children have to tell
    node.stands = False
    asking.nothing(node)
    node.awaits = awaits


def stood(_project: Project, node: Node, _fact: facts.Stood) -> None:
    """It stands by without a process."""
    node.stands, node.rerun, node.wanted = True, None, "running"
    node.leaving, node.ended_by = "", ""


def started(_project: Project, node: Node, fact: facts.Started) -> None:
    """The process is there."""
    node.pid, node.started, node.credential = fact.pid, fact, fact.credential
    node.model = fact.model or node.model


def unstarted(_project: Project, node: Node, fact: facts.Unstarted) -> None:
    """It is not."""
    parking.broken_off(node)
    node.alive, node.turn, node.pid, node.reason, node.last = False, False, 0, fact.reason, fact.reason
    node.credential = fact.credential or node.credential
    asking.nothing(node)


def ready(_project: Project, node: Node, fact: facts.Ready) -> None:
    """The program takes input."""
    node.session, node.model = fact.session or node.session, fact.model or node.model
    # What a program keeps of a conversation may be less than what was said to it before it died.
    node.introduced = node.introduced and not fact.fresh
    talk.ready(node, fact)


def exited(_project: Project, node: Node, fact: facts.Exited) -> None:
    """The run is empty."""
    parking.broken_off(node)
    node.alive, node.turn, node.pid, node.exit, node.killed = False, False, 0, fact, fact.killed
    node.lasted += fact.lasted + fact.stood
    node.prompts.clear()
    if node.talk.once and node.talk.turn != "over" and not node.talk.silent:  # its own end was the turn's
        node.text, node.reason = talk.last(node), ended(fact) if fact.code != 0 else ""
    if talk.proven(node, fact):
        node.crashes = 0


def lost(_project: Project, node: Node, _fact: facts.Lost) -> None:
    """It died with the daemon."""
    parking.broken_off(node)
    node.alive, node.turn, node.pid = False, False, 0
    asking.nothing(node)


def silent(_project: Project, node: Node, fact: facts.Silent) -> None:
    """It is ended for that."""
    node.reason = node.last = silence(fact)
    node.talk = evolve(node.talk, silent=fact.seconds)


def backed_off(_project: Project, node: Node, fact: facts.BackedOff) -> None:
    """The next one waits."""
    node.crashes, node.crashed = fact.crashes, node.crashed + (fact.crashes > 0)
    node.talk = evolve(node.talk, resumed=fact.resumed)
    node.asks = node.awaits = False


def rerun(project: Project, node: Node, fact: facts.Rerun) -> None:
    """It is to end, and another to follow."""
    parking.tries(project, node)
    node.rerun = fact.resume
    asking.nothing(node)
