"""Writes docs/refusals.md, one row for each code of `supervisor/core/refusals.py`: `make docs`."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from supervisor.core.refusals import Code

PAGE = Path(__file__).with_name("refusals.md")
#: What each says, and what to do about it.
ROWS: dict[Code, tuple[str, str]] = {
    "nobody": (
        "The kernel does not name the caller: its run is over, it left its agent's process tree, or hides its origin.",
        "Call from a shell of your own, or from the agent's own process; `supervisorctl whoami` says who you are.",
    ),
    "authority": (
        "It is not the caller's to ask: agents act strictly below themselves, and some verbs are a person's alone.",
        "Ask whom `ask` names.",
    ),
    "unknown": (
        "There is no such agent in sight, no such role, or no such kind. What is behind a wall is not hinted at.",
        "`supervisorctl tree` shows whom you can name; roles and kinds are declared in agents.toml.",
    ),
    "ambiguous": ("Several agents fit.", "Name one of those in the message by its id."),
    "renamed": ("That is an old name.", "Use the new one, which is in the message."),
    "name": (
        "It can be no name, or an agent has it. One that is stopping has it until it is gone.",
        "Choose another: up to 64 characters, no control ones, none of / : *, no hyphen first, not like an id (a17).",
    ),
    "rights": (
        "The parent does not hold this tool, model, kind, path, variable or switch, so its child cannot.",
        "Ask for less, or have whom `ask` names grant it to the parent.",
    ),
    "budget": (
        (
            "`used` + `reserved` + `asked` is more than `held`. What forks in line wait for counts as reserved for "
            "those who ask later."
        ),
        (
            "Ask for less, disband a child that holds some, or have whom `ask` names grant more; `fork --queue` waits "
            "for `descendants`."
        ),
    ),
    "bound": (
        "One child, waiting text or waiting fork too many, deeper than the parent's `depth`, longer than its `wall`.",
        "Disband or wait (`fork --queue` does, for a child), or have whom `ask` names raise the bound in `field`.",
    ),
    "depth": (
        "The place is deeper than the project's cap, which is at most 64.",
        "Fork higher up, or raise `depth` under `[limits]`.",
    ),
    "agents": (
        "The project has as many agents as it may. One that is leaving counts until it is gone, a stopped one not.",
        "Disband some, wait (`fork --queue`), or raise `agents` under `[limits]`.",
    ),
    "rate": (
        (
            "The caller's main and all below it forked that often within the last minute; or the caller's changes "
            "filled the journal too fast (field `journal`)."
        ),
        "Wait, or raise `forks_per_minute` under `[limits]`.",
    ),
    "state": (
        (
            "The agent is not in a state in which this can be done; `held` says in which it is. For `approve` and "
            "`deny`: that prompt is not up (any more); `held` names those that are. `field` is `line` where a fork "
            "waited and its place was given up."
        ),
        "The message says what to do first: wait, `start` it or its parent, or fork another.",
    ),
    "empty": ("The text has nothing in it.", "Say what is to be done."),
    "value": (
        "A number is out of its range, or a grant is less than what is used already.",
        "The message has the range, or `used` the least that can be held.",
    ),
    "down": ("The project is not up, or its daemon is leaving.", "`supervisorctl up` runs an agents.toml."),
    "disk": (
        "The disk of the state directory is almost full; nothing new is taken so that what runs can be recorded.",
        "Free some space; `held` is what is free, in bytes.",
    ),
}
HEAD = """# Refusals

A refused request changes nothing and is on record. It has one shape everywhere: `{"refused": {"code", "field",
"asked", "held", "used", "reserved", "ask", "holder", "message"}}`. Counts are whole numbers, `cost` is in USD, `wall`
in seconds, sets are text; what does not apply is null. Made by `make docs`.

| code | means | what to do |
|---|---|---|
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(f"| `{code}` | {ROWS[code][0]} | {ROWS[code][1]} |\n" for code in get_args(Code))


if __name__ == "__main__":
    PAGE.write_text(page())
