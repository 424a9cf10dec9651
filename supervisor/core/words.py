"""What the fleet itself says to agents: introductions and digests."""

from __future__ import annotations

from supervisor.core import rights
from supervisor.core.facts import Exited, Silent
from supervisor.core.grants import BOUNDS
from supervisor.core.ledger import NANO
from supervisor.core.state import Node, Project
from supervisor.core.units import show_count, show_duration, show_money


def amount(field: str, value: float) -> str:
    """A budget's or bound's number as people write it."""
    if field == "cost":
        return show_money(int(value))
    if field == "wall":
        return show_duration(value)
    return show_count(int(value))


def number(field: str, value: float) -> float:
    """A budget's or bound's number as refusals and `tree --json` give it: cost in USD, the rest as it is."""
    return value / NANO if field == "cost" else value


def introduction(project: Project, node: Node) -> str:
    """What an agent is told before its first input: who it is, who started it, what it holds, how to talk."""
    parent = project.agents.get(node.parent or "")
    lines = [
        f"You are {node.name} (id {node.id}), an agent of the project {project.name}, run by Fleet Supervisor.",
        f"You were started by {f'{parent.name} (id {parent.id})' if parent else 'a person'}.",
    ]
    if node.spec.role:
        lines.append(f"Your role: {node.spec.role}.")
    if node.spec.description:
        lines.append(f"What you are for: {node.spec.description}")
    lines.append(f"You hold: {holding(project, node)}.")
    if node.spec.max_tasks is not None:
        lines.append(f"You are released after {node.spec.max_tasks} tasks.")
    lines.append(
        "In a shell, `supervisorctl whoami` tells this again, `supervisorctl tree` shows your branch, and "
        "`supervisorctl fork TASK --kind KIND` starts a child of yours with a part of what you hold. "
        "The kernel names you to the supervisor; no token is needed."
    )
    return "\n".join(lines)


def continuation(node: Node, transcript: str) -> str:
    """What is added where a conversation begins because the one before it could not be gone on with."""
    lines = [f"This conversation is a fresh one. You had another, which is not gone on with: {node.talk.abandoned}."]
    if node.spec.task:
        lines.append(f"Your brief was: {node.spec.task}")
    if node.summary or node.text:
        lines.append(f"Your last words were: {node.summary or node.text}")
    lines.append(f"What you printed in it is written down in {transcript}, the newest last. Stand by for what comes.")
    return "\n".join(lines)


def holding(project: Project, node: Node) -> str:
    """One line with budgets, bounds and rights that are limited."""
    parts: list[str] = []
    for field in ("tokens", "turns", "cost", "descendants"):
        holder = project.holder(node, field)
        if holder is not None:
            account = holder.accounts[field]
            shared = "" if holder is node else f" shared with {holder.name}"
            parts.append(f"{amount(field, account.free)} of {amount(field, account.held)} {field}{shared}")
    for field in BOUNDS:
        value = getattr(node.grant, field)
        if value is not None:
            parts.append(f"{field} {amount(field, value)}")
    for field in rights.SETS:
        held = rights.effective(project, node, field)
        if isinstance(held, tuple):
            parts.append(f"{field} {', '.join(held) or 'none'}")
    parts += [f"no right to {field}" for field in rights.SWITCHES if rights.effective(project, node, field) is False]
    return "; ".join(parts) or "no limits of its own"


def called(node: Node) -> str:
    """How a digest names an agent."""
    return f"{node.name} ({node.id}{', ' + node.spec.role if node.spec.role else ''})"


def ended(fact: Exited) -> str:
    """How a run ended."""
    if fact.oom and fact.signal == 9:
        return "used up its memory and was ended by the kernel"
    if fact.signal is not None:
        return f"was ended by signal {fact.signal}"
    return f"exited with {fact.code}" if fact.code is not None else "ended, nobody knows how"


def silence(fact: Silent) -> str:
    """Why a run was ended that did nothing."""
    return f"silent for {show_duration(fact.seconds)}"


def first_line(text: str) -> str:
    """The first line of a text that says something, at most 200 characters."""
    return next((line.strip()[:200] for line in text.splitlines() if line.strip()), "")


def first_words(text: str) -> str:
    """Enough of a final text for a digest."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 400 else flat[:399] + "…"


def digest(text: str) -> str:
    """Mark a text as the fleet's own."""
    return f"[fleet: an automatic event, not a request from the person] {text}"
