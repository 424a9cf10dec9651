"""Who may ask what: principals and the one table for every door. Names come from the kernel (see `runtime/peers`),
never from a message."""

from __future__ import annotations

from typing import Literal

from attrs import frozen


@frozen
class Operator:
    """The person whose machine this is, or what they started outside the fleet."""

    def __str__(self) -> str:
        return "operator"


@frozen
class Agent:
    """A living run of an agent. `project` is the project's id on disk."""

    project: str
    agent: str
    run: int

    def __str__(self) -> str:
        return self.agent


@frozen
class Nobody:
    """A caller that could not be named; `why` says what was seen."""

    why: str

    def __str__(self) -> str:
        return "nobody"


Principal = Operator | Agent | Nobody

#: What a verb reaches, for an agent. `below`: strictly below itself; `self`: also itself; `own`: itself and its
#: branch; `read`: its project; `operator`: no agent.
Reach = Literal["below", "self", "own", "read", "operator"]

TABLE: dict[str, Reach] = {
    "status": "read",
    "tree": "read",
    "about": "read",
    "whoami": "read",
    "usage": "own",
    "logs": "own",
    "events": "own",
    "fork": "own",
    "instruct": "below",
    "stop": "below",
    "start": "below",
    "restart": "below",
    "disband": "below",
    "grant": "below",
    "rename": "self",
    "approve": "operator",
    "deny": "operator",
    "up": "operator",
    "down": "operator",
    "reload": "operator",
    "config": "operator",
    "metrics": "operator",
    "save": "operator",
    "shutdown": "operator",
}
