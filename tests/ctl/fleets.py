"""Fleets as the daemon answers them, for drawing: plain values in the shape of `tree --json`."""

from __future__ import annotations

from typing import Any

Agent = dict[str, Any]


def usage(fresh: int = 0, cached: int = 0, output: int = 0, cost: float = 0) -> dict[str, float]:
    return {
        "input": fresh,
        "cache_read": cached,
        "cache_write": 0,
        "output": output,
        "reasoning": 0,
        "calls": 3,
        "turns": 2,
        "cost": cost,
    }


def agent(ident: str, name: str, *children: Agent, state: str = "standing", own: int = 0, **more: Any) -> Agent:
    branch = own + sum(
        child["branch"]["input"] + child["branch"]["output"] + child["branch"]["cache_read"] for child in children
    )
    return {
        "id": ident,
        "name": name,
        "role": "",
        "kind": "pi",
        "model": "small",
        "description": "",
        "state": state,
        "wanted": "running",
        "pid": 4000,
        "since": 1_700_000_000.0,
        "elapsed": 75.0,
        "until": None,
        "tasks": {"done": 0, "max": None},
        "own": usage(own),
        "branch": usage(branch),
        "context_percent": None,
        "grant": {},
        "last": "",
        "summary": "",
        "verdict": "",
        "waiting_on": "",
        "children": list(children),
        **more,
    }


def small() -> dict[str, Any]:
    """What most people have: one main with a few below it, each in another state."""
    reviewer = agent(
        "a4", "reviewer", state="parked", role="reviewer", own=48_200, elapsed=1260.0, until=1_700_003_600.0,
        last="limit reached", limit={"sort": "quota", "text": "usage limit reached"}, context_percent=61.0,
        tasks={"done": 1, "max": 4},
    )  # fmt: skip
    flaky = agent(
        "a7", "SubAgent-01", state="working", own=12_345, elapsed=42.0, last="pytest -k parser", context_percent=9.2
    )
    tests = agent(
        "a3", "tests", flaky, state="waiting", role="tester", own=208_000, elapsed=4_020.0, waiting_on="person",
        last="may I delete the old fixtures?", context_percent=83.0, tasks={"done": 2, "max": 8},
        grant={"tokens": {"held": 300_000, "spent": 220_345, "reserved": 30_000, "free": 49_655, "over": 0}},
    )  # fmt: skip
    lost = agent("a5", "SubAgent-02", state="gone", own=91_000)
    docs = agent(
        "a6", "docs", kind="claude", role="writer", own=310_400, elapsed=3_000.0, context_percent=37.0,
        summary="README and tour rewritten; links checked", verdict="done", tasks={"done": 3, "max": None},
    )  # fmt: skip
    lead = agent(
        "a1", "lead", tests, reviewer, docs, lost, state="working", kind="claude", role="integrator", own=1_402_000,
        elapsed=7_500.0, last="Merging the parser branch, then the docs.", context_percent=96.0,
        tasks={"done": 5, "max": None},
        grant={"tokens": {"held": 5_000_000, "spent": 2_071_945, "reserved": 49_655, "free": 2_878_400, "over": 0}},
    )  # fmt: skip
    lead["branch"]["cost"] = 3.41
    scribe = agent("a2", "scribe", kind="script", elapsed=7_498.0, tasks={"done": 0, "max": None})
    return {"project": "offgrind", "tier": "cgroup", "agents": [lead, scribe]}


def crowd(many: int = 200) -> dict[str, Any]:
    """A lead with teams of workers: more than a screen holds."""
    teams: list[Agent] = []
    number = 1
    while number < many:
        members: list[Agent] = []
        for at in range(min(33, many - number - 1)):
            number += 1
            state = ("working", "standing", "standing", "gone")[at % 4]
            members.append(agent(f"a{number}", f"worker-{number}", state=state, own=1000 * at, last=f"step {at}"))
        number += 1
        teams.append(agent(f"a{number}", f"team-{len(teams) + 1}", *members, state="working", own=50_000))
    return {"project": "crowd", "tier": "warden", "agents": [agent("a1", "lead", *teams, state="working")]}


def deep(levels: int = 14) -> dict[str, Any]:
    """A chain: each forked by the one above."""
    below: tuple[Agent, ...] = ()
    for at in range(levels, 0, -1):
        below = (agent(f"a{at}", f"level-{at}", *below, own=100, state="working"),)
    return {"project": "deep", "tier": "warden", "agents": list(below)}
