"""Writes docs/lifecycle.md from the table in `supervisor/core/lifecycle.py`: `make docs`."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from supervisor.core.lifecycle import AWAY, IDLE, LIVE, TABLE, VARIES, State

PAGE = Path(__file__).with_name("lifecycle.md")
STATES: tuple[State, ...] = get_args(State)
MEANS: dict[str, str] = {
    "starting": "A run begins, or is being ended to begin anew; its program does not take input yet.",
    "working": "A turn runs.",
    "standing": "It takes the next text: done means standing by, with its context.",
    "waiting": "It asked a person or another agent and goes on with the answer; or its children have tasks.",
    "parked": "Its provider takes no more for now: it waits for a named time, with or without its process.",
    "backoff": "Its run failed; another one follows after a wait. Its children stay.",
    "stopping": "It leaves: its children first, then its own run, until nothing of it is alive.",
    "stopped": "It keeps name, conversation and reservation, and comes back by `start`.",
    "gone": "It is over: name, seat and reservation are released, what it spent stays in its parent's branch.",
}
HEAD = """# The life of an agent

Made from the table in `supervisor/core/lifecycle.py` by `make docs`. An agent changes its state by facts about itself
and in no other way; a fact that is not at one of a state's arrows leaves the state as it is, because the world may say
anything at any time. What is *wanted* of an agent (`running`, `stopped`, `gone`) is kept apart from its state, and so
is whether its process is alive.

"""


def arrows() -> dict[tuple[str, str], list[str]]:
    """(from, to) → facts; what all live states have in common is drawn once, from `live`."""
    found: dict[tuple[str, str], list[str]] = {}
    for (state, fact), to in sorted(TABLE.items(), key=lambda arrow: STATES.index(arrow[0][0])):
        common = state in LIVE and all(TABLE.get((other, fact)) == to for other in LIVE)
        facts = found.setdefault(("live" if common else state, to), [])
        if fact not in facts:
            facts.append(fact)
    # What the fact alone does not say.
    for (state, fact), leads in VARIES.items():
        for to in leads[1:]:
            found.setdefault((state, to), []).append(fact)
    return found


def diagram() -> str:
    """The drawing, as Mermaid."""
    inner, outer = [], []
    for (state, to), facts in arrows().items():
        line = f"{state} --> {to}: {', '.join(facts)}"
        (inner if state in LIVE and to in LIVE else outer).append(line)
    alone = [state for state in STATES if state in LIVE and not any(state in line.split() for line in inner)]
    body = "".join(f"        {line}\n" for line in [*inner, *alone])
    rest = "".join(f"    {line}\n" for line in [*outer, "[*] --> stopped: Born", "gone --> [*]: Forgotten"])
    return f"```mermaid\nstateDiagram-v2\n    state live {{\n{body}    }}\n{rest}```\n"


def table() -> str:
    """The same, for terminals: each state, what it means, and where its facts lead."""
    rows = []
    for state in ("live", *STATES):
        leads = "; ".join(f"{', '.join(facts)}: {to}" for (at, to), facts in arrows().items() if at == state)
        kind = "live, idle" if state in IDLE else "live" if state in LIVE else "away" if state in AWAY else ""
        means = MEANS.get(state, "All states above: what leads on from each of them.")
        rows.append(f"| {state} | {kind} | {means} | {leads} |\n")
    # What is common stands after those who have it in common.
    rows.insert(len(LIVE), rows.pop(0))
    return "| state | is | means | leads on |\n|---|---|---|---|\n" + "".join(rows)


def page() -> str:
    """The whole page."""
    return f"{HEAD}{diagram()}\n{table()}"


if __name__ == "__main__":
    PAGE.write_text(page())
