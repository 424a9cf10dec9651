"""Requests: what can be asked of a project and can be refused. Targets are as the caller wrote them; numbers are in
base units."""

from __future__ import annotations

from attrs import frozen

from supervisor.core.grants import Grant
from supervisor.core.spec import Fleet, Restart


@frozen
class Stamp:
    """What the core may not read for itself: the wall clock (`at`, Unix seconds, for people only), the next free
    agent number, the forks of the caller's instance within the last minute, a random number in [0, 1) for jitter, and
    the local day (`2026-11-30`; "" where it is not told)."""

    at: float
    number: int = 1
    forks: int = 0
    chance: float = 0.0
    day: str = ""


@frozen
class Fork:
    """Start an agent under `parent` (the caller where empty; a main where the operator names none). With `queue` it
    waits in line where there is no room; `place` is where it waits already, when it asks again."""

    task: str = ""
    role: str = ""
    kind: str = ""
    name: str = ""
    description: str = ""
    parent: str = ""
    model: str = ""
    directory: str = ""
    max_tasks: int | None = None
    replace: bool | None = None
    restart: Restart | None = None
    grant: Grant = Grant()
    queue: bool = False
    place: str = ""


@frozen
class Instruct:
    agent: str
    text: str


@frozen
class Approve:
    """Yes to what an agent's program asks; `prompt` names it where more than one thing is asked."""

    agent: str
    prompt: str = ""


@frozen
class Deny:
    """No to it; `text` goes along to the program."""

    agent: str
    prompt: str = ""
    text: str = ""


@frozen
class Stop:
    agent: str


@frozen
class Start:
    agent: str


@frozen
class Restarting:
    """End the run and start another; with `branch` of all below it too."""

    agent: str
    branch: bool = False


@frozen
class Disband:
    agent: str


@frozen
class Hold:
    """`agent` is to hold what is named in `grant` (totals, not additions)."""

    agent: str
    grant: Grant


@frozen
class Rename:
    agent: str
    name: str


@frozen
class Up:
    """Run exactly this content. `again` is a reload: what is gone from it ends, what changed restarts."""

    file: str
    sha256: str
    path: str
    fleet: Fleet
    again: bool = False


@frozen
class Down:
    pass


Request = Fork | Instruct | Approve | Deny | Stop | Start | Restarting | Disband | Hold | Rename | Up | Down

#: The verb that a request is known by in refusals and in the authority table.
VERB: dict[type[Request], str] = {
    Fork: "fork",
    Instruct: "instruct",
    Approve: "approve",
    Deny: "deny",
    Stop: "stop",
    Start: "start",
    Restarting: "restart",
    Disband: "disband",
    Hold: "grant",
    Rename: "rename",
    Up: "up",
    Down: "down",
}
