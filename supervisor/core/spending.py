"""Who spent what: the books of a project as plain values, by agent, branch, model, role or day. It shows what was
booked, and adds nothing to it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta
from typing import Literal, get_args

from attrs import frozen

from supervisor.core.authority import Agent, Principal
from supervisor.core.books import OTHERS, Past, total
from supervisor.core.ledger import ZERO, Usage
from supervisor.core.state import Node, Project
from supervisor.core.view import Plain, usage

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


@frozen
class Line:
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
    lines = [*_lines(project, branch, since, named=group in ("agent", "branch"))]
    if branch is not None and since == ALL:
        # Of agents below it that are not known any more only the sum is left.
        rest = branch.branch.beyond(total(line.spent for line in lines))
        lines += [Line("", OTHERS, "", OTHERS, rest)] if rest != ZERO else []
    answer: Plain = {
        "project": project.name,
        "by": group,
        "since": since or "all",
        "today": project.books.day,
        "total": usage(total(line.spent for line in lines)),
        "prices": project.books.prices,
        "unpriced": _unpriced(lines),
    }
    if group in ("agent", "branch"):
        return answer | {"agents": _agents(project, lines, branch, now, tops=group == "branch")}
    return answer | {"rows": _rows(lines, group)}


def _lines(project: Project, branch: Node | None, since: str, *, named: bool) -> Iterator[Line]:
    """Every entry. What is not kept by day stands in the project's sums, by role and model, or, where agents are to be
    `named` or a branch is told apart, with its agent while that is in view."""
    earlier = ZERO
    own = since == ALL and (named or branch is not None)
    for node in project.agents.values() if branch is None else project.down(branch):
        for (day, model), spent in node.rows.items():
            if day >= since:
                yield Line(node.id, node.spec.role, day, model, spent)
        if own and node.earlier != ZERO:
            earlier += node.earlier
            yield Line(node.id, node.spec.role, "", OTHERS, node.earlier)
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


def _rows(lines: list[Line], group: By) -> list[Plain]:
    sums: dict[str, Usage] = defaultdict(Usage)
    for line in lines:
        key = {"model": line.model, "role": line.role, "day": line.day}[group]
        sums[key] += line.spent
    found = sorted(sums.items(), key=lambda row: row[0] if group == "day" else _rank(row[1]), reverse=True)
    return [{group: key, "own": usage(spent)} for key, spent in found]


def _agents(project: Project, lines: list[Line], branch: Node | None, now: float, *, tops: bool) -> list[Plain]:
    """A row for each that spent something, itself or below it; of `tops` only one for each branch that adds to the
    total: mains, or what stands below the branch that is asked for, and that one itself."""
    own: dict[str, Usage] = defaultdict(Usage)
    for line in lines:
        own[line.agent] += line.spent
    branches: dict[str, Usage] = defaultdict(Usage)
    highest: dict[str, None] = {}
    for agent, spent in own.items():
        above = [*_above(project, agent)]
        if branch is not None:
            above = above[: above.index(branch.id) + 1]
        for at in above or [agent]:
            branches[at] += spent
        highest[(above or [agent])[-2 if branch is not None and len(above) > 1 else -1]] = None
    shown = [*highest] if tops else [*branches]
    if tops and branch is not None:
        branches[branch.id] = own[branch.id]  # its own part; what is below it has rows of its own
    shown.sort(key=lambda agent: (_rank(branches[agent]), -int(agent[1:] or 0)), reverse=True)
    return [_row(project, agent, own[agent], branches[agent], now) for agent in shown]


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
        } | spent  # fmt: skip
    past = past or Past("", None, "", "")
    models = past.rows[-1][1] if past.rows else ""
    return {
        "id": agent or None, "name": past.name, "parent": past.parent, "role": past.role, "kind": past.kind,
        "model": models, "state": "gone", "elapsed": None,
    } | spent  # fmt: skip


def _unpriced(lines: list[Line]) -> list[str]:
    """Models of which tokens were spent that no program and no table gave a cost."""
    sums: dict[str, Usage] = defaultdict(Usage)
    for line in lines:
        sums[line.model] += line.spent
    return sorted(model for model, spent in sums.items() if spent.tokens and not spent.cost)
