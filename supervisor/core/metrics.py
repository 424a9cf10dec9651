"""What a project's counts are, for programs that keep them over time. Its labels are few and bounded: no agent's name,
id or text is one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, get_args

from supervisor.core.books import OTHERS, total
from supervisor.core.ledger import NANO, Usage
from supervisor.core.lifecycle import State
from supervisor.core.state import Node, Project

Plain = dict[str, Any]
#: Labels and a value.
Sample = tuple[dict[str, str], int | float]

#: The kinds of tokens; together they are what a `tokens` budget counts.
TOKENS = ("input", "cache_read", "cache_write", "output")


def families(projects: Iterable[Project]) -> list[Plain]:
    """Each family with its name, type, unit, help and samples. Counters only go up, gone agents included."""
    chosen = [*projects]
    made = [
        _family("fleet_agents", "gauge", "", "Agents of a project by state; gone ones while they are in view.", [
            sample for project in chosen for sample in _agents(project)
        ]),
        _family("fleet_refusals", "counter", "", "Requests that were refused.", [
            ({"project": project.name, "project_id": project.id}, project.refused) for project in chosen
        ]),
    ]  # fmt: skip
    made += [
        _family(name, "gauge", unit, text, [sample for project in chosen for sample in _windows(project, of)])
        for name, unit, text, of in _WINDOWS
    ]
    return made + [_counter(chosen, *which) for which in _COUNTERS]


def _family(name: str, kind: str, unit: str, text: str, samples: list[Sample]) -> Plain:
    return {"name": name, "type": kind, "unit": unit, "help": text, "samples": [[labels, n] for labels, n in samples]}


def _agents(project: Project) -> list[Sample]:
    states = Counter(node.state for node in project.agents.values())
    return [
        ({"project": project.name, "project_id": project.id, "state": state}, states[state])
        for state in get_args(State)
    ]


def _windows(project: Project, of: Callable[[list[Node]], float]) -> list[Sample]:
    """Of living agents that say how full their windows are, by role and model, as their tokens are counted."""
    found: dict[tuple[str, str], list[Node]] = defaultdict(list)
    for node in project.agents.values():
        if node.live and node.context is not None:
            pair = (node.spec.role, node.model)
            found[pair if pair in project.books.ever else (OTHERS, OTHERS)].append(node)
    return [
        ({"project": project.name, "project_id": project.id, "role": role, "model": model}, of(nodes))
        for (role, model), nodes in found.items()
    ]


def _counter(
    projects: list[Project], name: str, unit: str, text: str, labels: tuple[str, ...], values: Callable[[Usage], Plain]
) -> Plain:
    """One counter of what was spent, by its own labels; what it does not tell apart is added up."""
    samples: list[Sample] = []
    for project in projects:
        sums: dict[tuple[str, ...], list[Usage]] = defaultdict(list)
        for (role, model), spent in project.books.ever.items():
            sums[tuple({"role": role, "model": model}[label] for label in labels)].append(spent)
        for key, many in sums.items():
            known = {"project": project.name, "project_id": project.id} | dict(zip(labels, key, strict=True))
            samples += [
                (known | ({"type": which} if which else {}), value) for which, value in values(total(many)).items()
            ]
    return _family(name, "counter", unit, text, samples)


_WINDOWS: tuple[tuple[str, str, str, Callable[[list[Node]], float]], ...] = (
    ("fleet_context_highest_ratio", "ratio", "The fullest window of a living agent: 1 is full.",
     lambda nodes: max(node.context or 0.0 for node in nodes) / 100),
    ("fleet_context_tokens", "tokens", "What the conversations of living agents hold.",
     lambda nodes: sum(node.held or 0 for node in nodes)),
)  # fmt: skip
_BOTH = ("role", "model")
_COUNTERS: tuple[tuple[str, str, str, tuple[str, ...], Callable[[Usage], Plain]], ...] = (
    ("fleet_tokens", "tokens", "Tokens that were spent; reasoning is part of output.", _BOTH,
     lambda spent: {name: getattr(spent, name) for name in TOKENS}),
    ("fleet_reasoning_tokens", "tokens", "Tokens of output that were reasoning.", _BOTH,
     lambda spent: {"": spent.reasoning}),
    ("fleet_calls", "", "Model calls.", _BOTH, lambda spent: {"": spent.calls}),
    ("fleet_incomplete_calls", "", "Model calls whose whole usage never came: the bill is more than is counted.", _BOTH,
     lambda spent: {"": spent.incomplete}),
    ("fleet_turns", "", "Turns of agents.", ("role",), lambda spent: {"": spent.turns}),
    ("fleet_cost_usd", "usd", "US dollars that programs said or a price table estimated.", _BOTH,
     lambda spent: {"": spent.cost / NANO}),
    ("fleet_estimated_cost_usd", "usd", "The part of the cost that a price table estimated.", _BOTH,
     lambda spent: {"": spent.estimated / NANO}),
)  # fmt: skip
