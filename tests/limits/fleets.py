"""Fleets of scripted agents that share logins, in one or more projects of one daemon. They judge nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.fleet import Fleet
from tests.recovery.lives import agent, events

#: Far enough for any test to be over before.
LATER = "in 2 hours"
SHARED, OWN = {"FLEET_LOGIN": "shared"}, {"FLEET_LOGIN": "own"}
#: An answer of a model, and the task is done.
WORKS = "spend output=10\ndone went-on"


def meets(sort: str = "quota", until: str = LATER, end: str = "fail 429") -> str:
    """A task that meets a limit."""
    return f'script:\nlimit {sort} "until={until}" "usage limit reached"\n{end}\n'


def project(name: str, *tables: str) -> str:
    """A project with these tables, and a role whose agents have the shared login."""
    role = '[roles.hand]\nkind = "scripted"\nenv = { FLEET_LOGIN = "shared" }\n'
    return f'[project]\nname = "{name}"\n' + "".join(tables) + role


def elsewhere(fleet: Fleet, at: Path) -> Fleet:
    """The same daemon, seen from another project's directory."""
    at.mkdir()
    return Fleet(at, fleet.process, fleet.tier)


def shares(name: str, *, under: str = "", **values: Any) -> str:
    """An agent with the shared login."""
    return agent(name, under=under, env=SHARED, **values)


async def texts(fleet: Fleet, name: str) -> list[str]:
    """What was queued for an agent, by its id."""
    return [event["input"]["text"] for event in await events(fleet, "Queued") if event["agent"] == name]


def is_parked(shown: dict[str, Any], sort: str, *, least: float = 3000.0) -> None:
    """Parked by this, with an end, and nothing counted."""
    assert shown["state"] == "parked", shown
    assert shown["limit"]["sort"] == sort
    assert shown["until"] > time.time() + least
    assert (shown["crashes"], shown["tasks"]["done"]) == (0, 0)
