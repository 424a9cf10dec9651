"""What is shown of a project, as plain values: one function of state for every reader, so that no two can disagree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import asdict

from supervisor.core import models, rights
from supervisor.core.authority import Agent, Principal
from supervisor.core.decide import children
from supervisor.core.facts import Killed
from supervisor.core.grants import BOUNDS, BUDGETS
from supervisor.core.ledger import NAMES, NANO, NUMBERS, Usage
from supervisor.core.names import sees
from supervisor.core.state import Node, Project
from supervisor.core.still import Leaf
from supervisor.core.words import number

Plain = dict[str, Any]
#: So many children that an agent waits for are named.
NAMED = 3
#: What the runtime sees of an agent and is no fact: `ages`, `silent` and `wedged`, as `unseen` has them.
Signs = Callable[[Node], Plain]


def usage(of: Usage) -> Plain:
    """Token counts, calls and turns; cost in USD, with the part of it that is estimated."""
    plain: Plain = dict(zip(NAMES, NUMBERS(of), strict=True))
    plain["cost"], plain["estimated"] = of.cost / NANO, of.estimated / NANO
    return plain


def accounts(node: Node) -> Plain:
    """Each budget that the agent holds: held, spent, reserved, free, over (cost in USD)."""
    return {
        field: {
            name: number(field, value)
            for name, value in (
                ("held", account.held),
                ("spent", account.spent),
                ("reserved", account.reserved),
                ("free", account.free),
                ("over", account.over),
            )
        }
        for field in BUDGETS
        if (account := node.accounts.get(field)) is not None
    }


def context(node: Node | Leaf | None) -> Plain:
    """How full the window of its conversation is, in percent; what it holds and has room for, in tokens; and who says
    how large it is: `program`, or the table that does. None of it is known of who is out of view."""
    if node is None:
        return dict.fromkeys(("context_percent", "context_tokens", "context_window", "context_window_from"))
    return {
        "context_percent": None if node.context is None else round(node.context, 2),
        "context_tokens": node.held,
        "context_window": node.window,
        "context_window_from": (node.sized or "program") if node.window is not None else None,
    }


def unseen(_node: Node) -> Plain:
    """The signs of life of an agent of which nobody sees any."""
    return {"ages": dict.fromkeys(("process", "turn", "progress", "line")), "silent": None, "wedged": False}


def label(node: Node) -> Plain:
    """How an agent is named in every answer."""
    return {"id": node.id, "name": node.name}


def agent(project: Project, node: Node, now: float, signs: Signs = unseen) -> Plain:
    """One agent without its children. Times are Unix seconds, ages seconds. `signs` gives its ages and its silence,
    which are no part of the state."""
    seen = signs(node)
    after, silent = node.spec.quiet_after, seen["silent"]
    return {
        "id": node.id,
        "name": node.name,
        "role": node.spec.role,
        "kind": node.spec.kind,
        "model": node.model,
        "outside": outside(project, node),
        "description": node.spec.description,
        "state": node.state,
        "wanted": node.wanted,
        "declared": node.declared,
        "pid": node.pid or None,
        "run": node.run,
        "since": node.since,
        "elapsed": round(max(0.0, now - node.born), 3),
        "until": node.until,
        "limit": {"sort": node.park.sort, "text": node.park.text} if node.park is not None else None,
        "tasks": {"done": node.tasks, "max": node.spec.max_tasks},
        "queued": len(node.inbox),
        "own": usage(node.own),
        "branch": usage(node.branch),
        **context(node),
        "grant": accounts(node),
        "last": node.last,
        "summary": node.summary,
        "verdict": node.verdict,
        "status": node.status,
        "waiting_on": node.waiting_on or awaited(project, node),
        "prompt": prompt(node),
        "crashes": node.crashed,
        "garbled": node.garbled,
        "exit": _exit(node),
        **seen,
        "quiet_after": after or None,
        "quiet": silent is not None and 0 < after <= silent,
    }


def awaited(project: Project, node: Node) -> str:
    """The children whose tasks its own waits for, the first of them."""
    if not node.awaits:
        return ""
    names = [f"{at.name} ({at.id})" for child in children.busy(project, node) if (at := project.agents[child])]
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def prompt(node: Node) -> Plain | None:
    """What it asks a person to approve or deny, and has asked longest."""
    return next(({"id": name, "question": question} for name, question in node.prompts.items()), None)


def outside(project: Project, node: Node) -> list[str]:
    """The models that its program said it uses and it does not hold now."""
    return [model for model in node.outside if models.strange(project, node, model)]


def _exit(node: Node) -> Plain | None:
    if node.exit is None:
        return None
    return {
        "code": node.exit.code,
        "signal": node.exit.signal,
        "oom": node.exit.oom,
        "killed": [killed(one) for one in node.killed],
        "unkillable": list(node.exit.unkillable),
    }


def killed(one: Killed) -> Plain:
    """A process that had to be ended."""
    return asdict(one)


def tree(
    project: Project, by: Principal, tier: str, now: float, branch: Node | None = None, signs: Signs = unseen
) -> Plain:
    """The tree that the caller may see, or one branch of it."""
    roots = [branch] if branch is not None else [project.agents[main] for main in project.mains]
    roots = [root for root in roots if sees(project, by, root)]
    drawn = [_branch(project, root, now, signs) for root in roots]
    return {
        "project": project.name,
        "tier": tier,
        "agents": drawn,
        "limits": [*logins(project).values()],
        "line": line(project, by),
    }


def line(project: Project, by: Principal) -> list[Plain]:
    """The forks that wait for room, as far as the caller may know of whom they would stand under: who asks, for what is
    full and whose that is, and since when; in their order."""
    found = []
    for name, place in project.line.items():
        parent, holder = project.agents.get(place.parent), project.agents.get(place.holder)
        if sees(project, by, parent) if parent is not None else not isinstance(by, Agent):
            found.append(
                {
                    "place": name,
                    "by": place.by,
                    "parent": label(parent) if parent is not None else None,
                    "limit": place.field,
                    "holder": label(holder) if holder is not None else None,
                    "asked": place.asked,
                    "since": place.since,
                }
            )
    return found


def logins(project: Project) -> dict[str, Plain]:
    """The logins that take no more for now, by what tells them apart: of which kinds of agents, why, until when, and
    how many are parked."""
    found: dict[str, Plain] = {
        credential: {"kinds": [], "sort": trip.sort, "until": trip.until, "text": trip.text, "parked": 0}
        for credential, trip in project.tripped.items()
    }
    for node in project.agents.values() if found else ():
        if (login := found.get(node.credential)) is not None and node.live:
            login["kinds"] = sorted({*login["kinds"], node.spec.kind})
            login["parked"] += node.park is not None
    return found


def joined(one: Plain, other: Plain) -> Plain:
    """The same login in two projects."""
    until = min(one["until"], other["until"])
    kinds = sorted({*one["kinds"], *other["kinds"]})
    return one | {"kinds": kinds, "until": until, "parked": one["parked"] + other["parked"]}


def _branch(project: Project, root: Node, now: float, signs: Signs) -> Plain:
    # Without recursion: the tree may be as deep as the cap allows, and drawing it must not be what fails.
    drawn = {node.id: agent(project, node, now, signs) for node in project.down(root)}
    for node in project.down(root):
        drawn[node.id]["children"] = [drawn[child] for child in node.children]
    return drawn[root.id]


def whoami(project: Project, node: Node) -> Plain:
    """What an agent is told of itself."""
    parent = project.agents.get(node.parent or "")
    return {
        "principal": "agent",
        **label(node),
        "role": node.spec.role,
        "kind": node.spec.kind,
        "model": node.model,
        "description": node.spec.description,
        "project": project.name,
        "parent": label(parent) if parent is not None else None,
        "state": node.state,
        "grant": accounts(node),
        "bounds": {field: getattr(node.grant, field) for field in BOUNDS},
        "rights": {field: rights.effective(project, node, field) for field in (*rights.SETS, *rights.SWITCHES)},
        "tasks": {"done": node.tasks, "max": node.spec.max_tasks},
        "task": node.task.text if node.task is not None else None,
    }


def ended(nodes: list[Node]) -> list[Plain]:
    """What it took to end these agents."""
    return [
        label(node)
        | {
            "state": node.state,
            "killed": [killed(one) for one in node.killed],
            "unkillable": list(node.exit.unkillable) if node.exit is not None else [],
        }
        for node in nodes
    ]


def unsettled(node: Node) -> Plain:
    """What would be lost with the agent now."""
    return {
        "tasks": int(node.task is not None),
        "inputs": len(node.inbox),
        "turn": node.state == "working",
    }
