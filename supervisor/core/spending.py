"""Who spent what: the books of a project as plain values, by agent, branch, model, role or day. It shows what was
booked, and adds nothing to it; there may be much, so that it is worked out in steps."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from datetime import date, timedelta
from operator import add, attrgetter
from typing import Literal, NamedTuple, TypeVar, get_args

from supervisor.core.authority import Agent, Principal
from supervisor.core.books import OTHERS, Past
from supervisor.core.ledger import NUMBERS, ZERO, Usage
from supervisor.core.state import Node, Project
from supervisor.core.still import Leaf, Still, taken
from supervisor.core.view import Plain, context, usage

By = Literal["agent", "branch", "model", "role", "day"]
BY: tuple[By, ...] = get_args(By)
T = TypeVar("T")
#: What is worked out in steps: others have their turn between two of them.
Steps = Generator[None, None, T]
#: A step looks at so many rows of the books, or at so many agents.
ROWS, AGENTS = 512, 64
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


#: How many rows were looked at, and those of them that count.
Page = tuple[int, list[Line]]


def spending(
    project: Project, by: Principal, now: float, branch: Node | None = None, group: By = "agent", since: str = ALL
) -> Plain:
    """The same at once."""
    steps = spent(project, by, now, branch, group, since)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            told: Plain = end.value
            return told


def spent(
    project: Project, by: Principal, now: float, branch: Node | None = None, group: By = "agent", since: str = ALL
) -> Steps[Plain]:
    """What was spent from the local day `since` on, costliest first, in one branch or in all that the caller may
    see, as it stands at the first step. Agents that are gone are in it, forgotten ones too."""
    if branch is None and isinstance(by, Agent):
        branch = project.agents[by.agent]
    still, top = taken(project, branch), branch.id if branch is not None else ""
    answer: Plain = {
        "project": project.name,
        "by": group,
        "since": since or "all",
        "today": project.books.day,
        "total": {},
        "prices": project.books.prices,
    }
    named = group in ("agent", "branch")
    sums, answer["unpriced"] = yield from _gather(_pages(still, top, since, named=named), "agent" if named else group)
    whole = yield from _total(sums.values())
    if top and since == ALL:
        # Of agents below it that are not known any more only the sum is left.
        rest = still.leaves[top].branch.beyond(whole)
        unknown = OTHERS if group in ("model", "role") else ""
        sums |= {unknown: sums.get(unknown, ZERO) + rest} if rest != ZERO else {}
        whole += rest
    answer["total"] = usage(whole)
    if named:
        return answer | {"agents": (yield from _agents(still, sums, top, now, since, tops=group == "branch"))}
    return answer | {"rows": _rows(sums, group)}


def _gather(pages: Iterable[Page], field: str) -> Steps[tuple[dict[str, Usage], list[str]]]:
    """What the lines come to by one of their fields, and the models of which tokens were spent that no program and no
    table gave a cost. There may be a hundred thousand lines: none is kept."""
    of, looked = attrgetter(field), 0
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    for rows, lines in pages:
        for line in lines:
            key, numbers = (of(line), line.model), NUMBERS(line.spent)
            known = found.get(key)
            found[key] = numbers if known is None else tuple(map(add, known, numbers))
        looked += rows
        if looked >= ROWS:
            looked = 0
            yield
    sums: dict[str, Usage] = defaultdict(Usage)
    models: dict[str, Usage] = defaultdict(Usage)
    for at, ((key_, model), numbers) in enumerate(found.items(), 1):
        sums[key_] += Usage(*numbers)
        models[model] += Usage(*numbers)
        if at % ROWS == 0:
            yield
    return dict(sums), sorted(model for model, spent in models.items() if spent.tokens and not spent.cost)


def _total(usages: Iterable[Usage]) -> Steps[Usage]:
    sums = NUMBERS(ZERO)
    for at, each in enumerate(usages, 1):
        sums = tuple(map(add, sums, NUMBERS(each)))
        if at % ROWS == 0:
            yield
    return Usage(*sums)


def _pages(still: Still, top: str, since: str, *, named: bool) -> Iterator[Page]:
    """Every entry. What is not kept by day stands in the project's sums, by role and model, or, where agents are to be
    `named` or a branch is told apart, with its agent while that is in view."""
    earlier = ZERO
    own = since == ALL and (named or bool(top))
    for leaf in map(still.leaves.__getitem__, still.chosen):
        lines = [Line(leaf.id, leaf.role, day, model, spent) for day, model, spent in leaf.days if day >= since]
        lines += [Line(leaf.id, leaf.role, day, model, spent) for (day, model), spent in leaf.rows if day >= since]
        if own and leaf.earlier != ZERO:
            earlier += leaf.earlier
            lines.append(Line(leaf.id, leaf.role, "", OTHERS, leaf.earlier))
        yield 1 + len(leaf.days) + len(leaf.rows), lines
    for agent, past in still.past.items():
        known = not top or top in _above(still, agent)
        lines = [Line(agent, past.role, day, model, spent) for day, model, spent in past.rows if known and day >= since]
        yield 1 + len(past.rows), lines
    if not top:
        yield from _summed(still, since, earlier)


def _summed(still: Still, since: str, named: Usage) -> Iterator[Page]:
    """What has no agent any more, without what was `named` with one."""
    rest: list[Usage] = []
    for day, pairs in still.summed:
        lines = [Line("", role, day, model, spent) for (role, model), spent in pairs if day >= since]
        if named == ZERO:
            yield 1 + len(pairs), lines
        else:
            rest.append(sum((line.spent for line in lines), ZERO))
            yield 1 + len(pairs), []
    left = sum(rest, ZERO).beyond(named)
    if left != ZERO:
        yield 1, [Line("", OTHERS, "", OTHERS, left)]


def _above(still: Still, agent: str) -> Iterator[str]:
    """The agents above one, itself first, as far as they are known."""
    at: str | None = agent
    while at is not None and (known := _known(still, at)) is not None:
        yield at
        at = known.parent


def _known(still: Still, agent: str) -> Leaf | Past | None:
    return still.leaves.get(agent) or still.past.get(agent)


def _rows(sums: dict[str, Usage], group: By) -> list[Plain]:
    found = sorted(sums.items(), key=lambda row: row[0] if group == "day" else _rank(row[1]), reverse=True)
    return [{group: key, "own": usage(spent)} for key, spent in found]


def _agents(still: Still, own: dict[str, Usage], top: str, now: float, since: str, *, tops: bool) -> Steps[list[Plain]]:
    """A row for each that spent something, itself or below it; of `tops` only one for each branch that adds to the
    total: mains, or what stands below the branch that is asked for, and that one itself."""
    branches: dict[str, Usage] = {}
    highest: dict[str, None] = {}
    for at, (agent, spent) in enumerate(own.items(), 1):
        above = [*_above(still, agent)] or [agent]
        if top in above:
            above = above[: above.index(top) + 1]
        for each in above:
            branches[each] = branches.get(each, ZERO) + spent
        highest[above[-2] if top and len(above) > 1 else above[-1]] = None
        if at % AGENTS == 0:
            yield
    if since == ALL and not tops:
        # What an agent's branch spent in all is known of it, whoever of its branch is not known any more.
        chosen = map(still.leaves.__getitem__, still.chosen)
        branches |= {leaf.id: leaf.branch for leaf in chosen if leaf.branch != ZERO}
    if tops and top in highest:
        branches[top] = own[top]  # its own part; what is below it has rows of its own
    yield
    shown = sorted(highest if tops else branches, key=lambda agent: (*_rank(branches[agent]), -_number(agent)))
    rows: list[Plain] = []
    for at, agent in enumerate(reversed(shown), 1):
        rows.append(_row(still, agent, own.get(agent, ZERO), branches[agent], now))
        if at % AGENTS == 0:
            yield
    return rows


def _number(agent: str) -> int:
    return int(agent[1:] or 0)


def _rank(spent: Usage) -> tuple[int, int]:
    """Costliest first where costs are known, else by tokens."""
    return spent.cost, spent.tokens


def _row(still: Still, agent: str, own: Usage, branch: Usage, now: float) -> Plain:
    """One agent; one that is out of view, or not known any more, has less to tell."""
    leaf, past = still.leaves.get(agent), still.past.get(agent)
    spent = {"own": usage(own), "branch": usage(branch)}
    if leaf is not None:
        return {
            "id": leaf.id, "name": leaf.name, "parent": leaf.parent, "role": leaf.role, "kind": leaf.kind,
            "model": leaf.model, "state": leaf.state, "elapsed": round(max(0.0, now - leaf.born), 3),
        } | context(leaf) | spent  # fmt: skip
    past = past or Past("", None, "", "")
    models = past.rows[-1][1] if past.rows else ""
    return {
        "id": agent or None, "name": past.name, "parent": past.parent, "role": past.role, "kind": past.kind,
        "model": models, "state": "gone", "elapsed": None,
    } | context(None) | spent  # fmt: skip
