"""Who spent what: the books of a project as plain values, by agent, branch, model, role or day. It shows what was
booked, and adds nothing to it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date, timedelta
from operator import add, attrgetter
from typing import Literal, NamedTuple, get_args

from supervisor.core.authority import Agent, Principal
from supervisor.core.books import OTHERS, Past, total, written
from supervisor.core.ledger import NUMBERS, ZERO, Usage
from supervisor.core.state import Node, Project
from supervisor.core.view import Plain, context, usage

By = Literal["agent", "branch", "model", "role", "day"]
BY: tuple[By, ...] = get_args(By)
#: Since when: everything.
ALL = ""
_DAYS = re.compile(r"([0-9]{1,6})d")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def first_day(text: str, today: date) -> str:
    """The first local day of `today`, `yesterday`, `7d`, `2026-11-01` or `all`. Raises ValueError with what is
    accepted."""
    word = text.strip().lower()
    if word == "all":
        return ALL
    if word in ("today", "yesterday"):
        return (today - timedelta(days=word == "yesterday")).isoformat()
    if (found := _DAYS.fullmatch(word)) and 0 < int(found[1]) < today.toordinal():
        return (today - timedelta(days=int(found[1]) - 1)).isoformat()
    if _DATE.fullmatch(word):
        with suppress(ValueError):
            return date.fromisoformat(word).isoformat()
    raise ValueError(
        f"{text[:40]!r} is no day: write today, yesterday, days back such as 7d, a date such as 2026-11-01, or all"
    )


class Line(NamedTuple):
    """One entry of the books. `agent` is "" where it is not known any more; `day` "" where that is not kept."""

    agent: str
    role: str
    day: str
    model: str
    spent: Usage


def spending(
    project: Project, by: Principal, now: float, branch: Node | None = None, group: By = "agent", since: str = ALL
) -> Plain:
    """What was spent from the local day `since` on, costliest first, in one branch or in all that the caller may
    see. Agents that are gone are in it, forgotten ones too."""
    if branch is None and isinstance(by, Agent):
        branch = project.agents[by.agent]
    named = group in ("agent", "branch")
    sums, unpriced = _gather(_lines(project, branch, since, named=named), "agent" if named else group)
    if branch is not None and since == ALL:
        # Of agents below it that are not known any more only the sum is left.
        rest = branch.branch.beyond(total(sums.values()))
        unknown = OTHERS if group in ("model", "role") else ""
        sums |= {unknown: sums.get(unknown, ZERO) + rest} if rest != ZERO else {}
    answer: Plain = {
        "project": project.name,
        "by": group,
        "since": since or "all",
        "today": project.books.day,
        "total": usage(total(sums.values())),
        "prices": project.books.prices,
        "unpriced": unpriced,
    }
    if named:
        return answer | {"agents": _agents(project, sums, branch, now, since, tops=group == "branch")}
    return answer | {"rows": _rows(sums, group)}


def _gather(lines: Iterable[Line], field: str) -> tuple[dict[str, Usage], list[str]]:
    """What the lines come to by one of their fields, and the models of which tokens were spent that no program and no
    table gave a cost. There may be a hundred thousand lines: none is kept."""
    of = attrgetter(field)
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    for line in lines:
        key, numbers = (of(line), line.model), NUMBERS(line.spent)
        known = found.get(key)
        found[key] = numbers if known is None else tuple(map(add, known, numbers))
    sums: dict[str, Usage] = defaultdict(Usage)
    models: dict[str, Usage] = defaultdict(Usage)
    for (key_, model), numbers in found.items():
        sums[key_] += Usage(*numbers)
        models[model] += Usage(*numbers)
    return dict(sums), sorted(model for model, spent in models.items() if spent.tokens and not spent.cost)


def _lines(project: Project, branch: Node | None, since: str, *, named: bool) -> Iterator[Line]:
    """Every entry. What is not kept by day stands in the project's sums, by role and model, or, where agents are to be
    `named` or a branch is told apart, with its agent while that is in view."""
    earlier = ZERO
    own = since == ALL and (named or branch is not None)
    for node in project.agents.values() if branch is None else project.down(branch):
        role = node.spec.role
        yield from (Line(node.id, role, day, model, spent) for day, model, spent in written(node) if day >= since)
        if own and node.earlier != ZERO:
            earlier += node.earlier
            yield Line(node.id, role, "", OTHERS, node.earlier)
    for agent, past in project.books.past.items():
        if branch is None or branch.id in _above(project, agent):
            yield from (Line(agent, past.role, day, model, spent) for day, model, spent in past.rows if day >= since)
    if branch is None:
        yield from _summed(project, since, earlier)


def _summed(project: Project, since: str, named: Usage) -> Iterator[Line]:
    """What has no agent any more, without what was `named` with one."""
    sums = [
        Line("", role, day, model, spent)
        for day, pairs in project.books.summed.items()
        if day >= since
        for (role, model), spent in pairs.items()
    ]
    if named == ZERO:
        yield from sums
        return
    rest = total(line.spent for line in sums).beyond(named)
    if rest != ZERO:
        yield Line("", OTHERS, "", OTHERS, rest)


def _above(project: Project, agent: str) -> Iterator[str]:
    """The agents above one, itself first, as far as they are known."""
    at: str | None = agent
    while at is not None and (known := _known(project, at)) is not None:
        yield at
        at = known.parent


def _known(project: Project, agent: str) -> Node | Past | None:
    return project.agents.get(agent) or project.books.past.get(agent)


def _rows(sums: dict[str, Usage], group: By) -> list[Plain]:
    found = sorted(sums.items(), key=lambda row: row[0] if group == "day" else _rank(row[1]), reverse=True)
    return [{group: key, "own": usage(spent)} for key, spent in found]


def _agents(
    project: Project, own: dict[str, Usage], branch: Node | None, now: float, since: str, *, tops: bool
) -> list[Plain]:
    """A row for each that spent something, itself or below it; of `tops` only one for each branch that adds to the
    total: mains, or what stands below the branch that is asked for, and that one itself."""
    branches: dict[str, Usage] = {}
    highest: dict[str, None] = {}
    for agent, spent in own.items():
        above = [*_above(project, agent)] or [agent]
        if branch is not None and branch.id in above:
            above = above[: above.index(branch.id) + 1]
        for at in above:
            branches[at] = branches.get(at, ZERO) + spent
        highest[above[-2] if branch is not None and len(above) > 1 else above[-1]] = None
    if since == ALL and not tops:
        # What an agent's branch spent in all is known of it, whoever of its branch is not known any more.
        nodes = project.agents.values() if branch is None else project.down(branch)
        branches |= {node.id: node.branch for node in nodes if node.branch != ZERO}
    if tops and branch is not None and branch.id in highest:
        branches[branch.id] = own[branch.id]  # its own part; what is below it has rows of its own
    shown = sorted(highest if tops else branches, key=lambda agent: (*_rank(branches[agent]), -_number(agent)))
    return [_row(project, agent, own.get(agent, ZERO), branches[agent], now) for agent in reversed(shown)]


def _number(agent: str) -> int:
    return int(agent[1:] or 0)


def _rank(spent: Usage) -> tuple[int, int]:
    """Costliest first where costs are known, else by tokens."""
    return spent.cost, spent.tokens


def _row(project: Project, agent: str, own: Usage, branch: Usage, now: float) -> Plain:
    """One agent; one that is out of view, or not known any more, has less to tell."""
    node, past = project.agents.get(agent), project.books.past.get(agent)
    spent = {"own": usage(own), "branch": usage(branch)}
    if node is not None:
        return {
            "id": node.id, "name": node.name, "parent": node.parent, "role": node.spec.role, "kind": node.spec.kind,
            "model": node.model, "state": node.state, "elapsed": round(max(0.0, now - node.born), 3),
        } | context(node) | spent  # fmt: skip
    past = past or Past("", None, "", "")
    models = past.rows[-1][1] if past.rows else ""
    return {
        "id": agent or None, "name": past.name, "parent": past.parent, "role": past.role, "kind": past.kind,
        "model": models, "state": "gone", "elapsed": None,
    } | context(None) | spent  # fmt: skip
