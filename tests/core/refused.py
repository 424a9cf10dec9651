"""One sentence for each refusal code, by which a refusal is held to have been right. None of them asks the core's own
checks: each looks at the state again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import get_args

from attrs import frozen

from supervisor.core import requests
from supervisor.core.authority import Agent, Nobody, Principal
from supervisor.core.grants import Grant
from supervisor.core.ledger import NANO
from supervisor.core.refusals import Code, Refusal
from supervisor.core.requests import Request, Stamp
from supervisor.core.state import Node, Project, fold
from supervisor.core.units import LARGEST


@frozen
class Case:
    """A refusal with all that it was decided on; it changed nothing, so the state is what it was."""

    project: Project
    by: Principal
    request: Request
    stamp: Stamp
    refusal: Refusal

    @property
    def number(self) -> tuple[float, float, float, float]:
        """held, used, reserved, asked, where they are numbers."""
        values = (self.refusal.held, self.refusal.used, self.refusal.reserved, self.refusal.asked)
        return tuple(value if isinstance(value, int | float) else 0 for value in values)  # type: ignore[return-value]  # four


def text_of(request: Request) -> str:
    """The target as it was written."""
    return request.parent if isinstance(request, requests.Fork) else getattr(request, "agent", "")


def visible(case: Case) -> Iterator[Node]:
    """Whom the caller may know of."""
    for node in case.project.agents.values():
        wide = case.project.fleet is not None and case.project.fleet.agent_talk == "project"
        if not isinstance(case.by, Agent) or wide or root(case.project, node) == root_of(case.project, case.by.agent):
            yield node


def root(project: Project, node: Node) -> str:
    """The main above an agent."""
    while node.parent is not None:
        node = project.agents[node.parent]
    return node.id


def root_of(project: Project, agent: str) -> str:
    """The same by id."""
    return root(project, project.agents[agent]) if agent in project.agents else ""


def meant(case: Case) -> list[Node]:
    """All whom the text can mean."""
    wanted = fold(text_of(case.request))
    seen = [*visible(case)]
    exact = [node for node in seen if node.id == wanted or (node.state != "gone" and fold(node.name) == wanted)]
    if exact:
        return exact[:1]
    here = [node for node in seen if node.state != "gone"]
    if wanted.startswith("role:"):
        role = wanted.removeprefix("role:").strip()
        return [node for node in here if role and fold(node.spec.role) == role]
    takes_part = isinstance(case.request, requests.Fork | requests.Instruct)
    parts = [node for node in here if takes_part and wanted and wanted in fold(node.name)]
    return parts or [node for node in seen if node.state == "gone" and fold(node.name) == wanted][-1:]


def parent_of(case: Case) -> Node | None:
    """Under whom a fork would stand."""
    assert isinstance(case.request, requests.Fork)
    if case.request.parent:
        return meant(case)[0]
    return case.project.agents[case.by.agent] if isinstance(case.by, Agent) else None


def is_below(project: Project, node: Node, agent: str) -> bool:
    """Strictly below."""
    while node.parent is not None:
        if node.parent == agent:
            return True
        node = project.agents[node.parent]
    return False


# --- the codes


def nobody(case: Case) -> None:
    """The caller has no name, or is a run that is over, or one of another project."""
    if isinstance(case.by, Agent):
        node = case.project.agents.get(case.by.agent)
        elsewhere = case.by.project != case.project.id
        assert elsewhere or node is None or not node.alive or node.run != case.by.run
    else:
        assert isinstance(case.by, Nobody)


def authority(case: Case) -> None:
    """An agent asked for the operator's own, for itself where it may not, or for what is not below it."""
    assert isinstance(case.by, Agent)
    if isinstance(case.request, requests.Up | requests.Down | requests.Approve | requests.Deny):
        return
    (node,) = meant(case)
    assert not is_below(case.project, node, case.by.agent)
    if isinstance(case.request, requests.Fork | requests.Rename):
        assert node.id != case.by.agent


def unknown(case: Case) -> None:
    """There is no such agent in sight, or no such role or kind."""
    fleet = case.project.fleet
    if isinstance(case.request, requests.Fork) and case.refusal.field in ("kind", "role"):
        assert fleet is not None
        known = fleet.kinds if case.refusal.field == "kind" else fleet.roles
        assert fold(str(case.refusal.asked)) not in {fold(one.name) for one in known}
        return
    assert meant(case) == []


def ambiguous(case: Case) -> None:
    """Several fit, and they are named, the first eight of them at least."""
    found = meant(case)
    assert len(found) > 1
    assert sum(f"({node.id})" in case.refusal.message for node in found) == min(8, len(found))


def renamed(case: Case) -> None:
    """The text is an old name, which nobody has; the message says what its agent is called now."""
    agent = case.project.former[fold(text_of(case.request))]
    assert fold(text_of(case.request)) not in case.project.names
    assert case.project.agents[agent].name in case.refusal.message


def name(case: Case) -> None:
    """What is asked for as a name is none, or somebody has it or is about to."""
    asked = str(case.refusal.asked)
    bad = not asked.strip() or len(asked) > 63 or any(mark in asked for mark in "/:*\n\x00")
    word = fold(asked) in ("fleet", "operator", "person", "nobody", "all")
    looks = fold(asked)[:1] == "a" and fold(asked)[1:].isdecimal()
    twice = isinstance(case.request, requests.Up | requests.Start)  # two of what is declared
    assert bad or word or looks or fold(asked) in case.project.names or twice


def rights(case: Case) -> None:
    """The parent does not hold what is asked for: nothing that it or anyone above it names covers that."""
    project, field, asked = case.project, case.refusal.field, str(case.refusal.asked)
    if isinstance(case.request, requests.Up | requests.Start):
        return  # which of the declared agents it was is not said
    if isinstance(case.request, requests.Fork):
        at: Node | None = parent_of(case)
        own: Grant | None = case.request.grant
    else:
        at, own = project.above(meant(case)[0]), None
    sets = [getattr(own, field)] if own is not None and field == "models" else []
    while at is not None:
        sets.append(getattr(at.grant, field))
        at = project.above(at)
    if field in ("fork", "talk"):
        assert False in sets
        return
    wanted = asked.split(", ")
    assert any(not held_within(field, entries, each) for entries in sets if entries is not None for each in wanted)


def held_within(field: str, entries: tuple[str, ...], asked: str) -> bool:
    """Whether one entry lies within a set."""
    if field == "models":
        return any(asked == held or (held[-1:] == "*" and asked[: len(held) - 1] == held[:-1]) for held in entries)
    if field == "paths":
        within = [held for held in entries if asked.startswith(held.rstrip("/") + "/") and ".." not in asked]
        return bool(within) or asked in entries
    return asked in entries


def budget(case: Case) -> None:
    """What is spent, reserved and asked for is more than is held; the account is somebody's, and says the same."""
    held, used, reserved, asked = case.number
    assert used + reserved + asked > held
    unit = NANO if case.refusal.field == "cost" else 1
    if not isinstance(case.request, requests.Up):
        accounts = [node.accounts.get(case.refusal.field) for node in case.project.agents.values()]
        numbers = [(one.held / unit, one.spent / unit, one.reserved / unit) for one in accounts if one is not None]
        ahead = {0, *range(1, seats_in_line(case) + 1)} if case.refusal.field == "descendants" else {0}
        assert any((held, used, reserved - others) in numbers for others in ahead)


def seats_in_line(case: Case) -> int:
    """How many `descendants` those who wait ask for together."""
    return sum(place.seats for place in case.project.line.values() if place.field == "descendants")


def bound(case: Case) -> None:
    """One child or text too many, too deep for the parent's depth, or longer than the parent's own time; those who wait
    for the same and asked before are as good as there."""
    held, used, reserved, asked = case.number
    assert used + reserved + asked > held
    assert reserved <= len(case.project.line)
    if case.refusal.field == "line":
        assert used == len(case.project.line) == held
    if case.refusal.field == "inbox":
        assert sum(item.sort != "digest" for item in meant(case)[0].inbox) == held
    if case.refusal.field == "children" and isinstance(case.request, requests.Fork):
        parent = parent_of(case)
        assert parent is not None
        assert sum(case.project.agents[child].state != "gone" for child in parent.children) == used
        assert parent.grant.children == held


def depth(case: Case) -> None:
    """The place is deeper than the project's cap."""
    held, _, _, asked = case.number
    assert asked > held
    if isinstance(case.request, requests.Fork):
        fleet, parent = case.project.fleet, parent_of(case)
        assert fleet is not None
        assert held == min(fleet.depth, 64)
        assert parent is not None
        assert case.project.level(parent) + 2 == asked


def agents(case: Case) -> None:
    """There would be more agents than the project's cap."""
    held, used, reserved, asked = case.number
    assert used + reserved + asked > held
    assert reserved <= len(case.project.line)
    assert used == sum(node.state not in ("stopped", "gone") for node in case.project.agents.values())


def rate(case: Case) -> None:
    """The caller forked as often within the minute as it may."""
    assert isinstance(case.request, requests.Fork)
    assert case.project.fleet is not None
    assert case.stamp.forks >= case.project.fleet.forks_per_minute


def state(case: Case) -> None:
    """The agent is not in a state in which this can be done."""
    if isinstance(case.request, requests.Up):
        assert case.refusal.held == "stopping"
        return
    if case.refusal.field == "line":
        assert isinstance(case.request, requests.Fork)
        assert case.request.place not in case.project.line
        return
    node = parent_of(case) if isinstance(case.request, requests.Fork) else meant(case)[0]
    assert node is not None
    live = node.state in ("starting", "working", "standing", "waiting", "parked", "backoff")
    match case.request:
        case requests.Start() | requests.Restarting() if node.state == "parked":
            assert isinstance(case.by, Agent), "a person may have it tried at any time"
        case requests.Fork() | requests.Instruct() | requests.Restarting():
            assert not live
        case requests.Hold():
            assert node.state in ("stopping", "gone")
        case requests.Rename():
            assert node.state == "gone"
        case requests.Approve(prompt=name) | requests.Deny(prompt=name):
            assert name not in node.prompts
            assert name or len(node.prompts) != 1
        case requests.Start():
            assert not live
            parent = case.project.above(node)
            done = node.spec.max_tasks is not None and node.tasks >= node.spec.max_tasks
            away = parent is not None and parent.state in ("stopping", "stopped", "gone")
            assert node.state in ("stopping", "gone") or away or done
        case _:
            raise AssertionError(case.request)


def empty(case: Case) -> None:
    """The text says nothing."""
    assert isinstance(case.request, requests.Instruct)
    assert not case.request.text.strip()


def value(case: Case) -> None:
    """A number that can be none: out of its range, or less than what is used already; or no kind at all."""
    field, grant = case.refusal.field, getattr(case.request, "grant", Grant())
    if field == "kind":
        assert isinstance(case.request, requests.Fork)
        assert not case.request.kind
        return
    if field == "max_tasks":
        assert not 1 <= int(str(case.refusal.asked)) <= 32
        return
    if isinstance(case.request, requests.Up | requests.Start):
        asked = float(str(case.refusal.asked)) * (NANO if field == "cost" else 1)
    else:
        asked = getattr(grant, field)
    out = asked < 0 or asked > LARGEST * (NANO if field == "cost" else 1) or not math.isfinite(asked)
    assert out or (field == "wall" and asked <= 0) or case.number[3] < case.number[1]


def down(case: Case) -> None:
    """The project is not wanted, or its daemon leaves."""
    assert not case.project.wanted or case.project.closing


def disk(_case: Case) -> None:
    """The core sees no disk."""
    raise AssertionError("not the core's to say")


RIGHT: dict[Code, Callable[[Case], None]] = {
    "nobody": nobody,
    "authority": authority,
    "unknown": unknown,
    "ambiguous": ambiguous,
    "renamed": renamed,
    "name": name,
    "rights": rights,
    "budget": budget,
    "bound": bound,
    "depth": depth,
    "agents": agents,
    "rate": rate,
    "state": state,
    "empty": empty,
    "value": value,
    "down": down,
    "disk": disk,
}
assert RIGHT.keys() == {*get_args(Code)}
