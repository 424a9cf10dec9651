"""The life of an agent as one table: which fact moves which state where. The docs' diagram is drawn from it."""

from __future__ import annotations

from typing import Literal

State = Literal["starting", "working", "standing", "waiting", "parked", "backoff", "stopping", "stopped", "gone"]

#: Has a place among the living: neither leaving nor away.
LIVE: frozenset[State] = frozenset({"starting", "working", "standing", "waiting", "parked", "backoff"})
#: Has left, or is about to: its children leave too.
LEAVING: frozenset[State] = frozenset({"stopping", "gone"})
#: No run, and none to come by itself.
AWAY: frozenset[State] = frozenset({"stopped", "gone"})
#: Can be handed a text that starts a turn.
IDLE: frozenset[State] = frozenset({"standing", "waiting"})

#: (state, fact) → state. A pair that is not here leaves the state as it is: the world may say anything at any time.
TABLE: dict[tuple[State, str], State] = {
    ("starting", "Ready"): "standing",
    ("standing", "Handed"): "working",
    ("waiting", "Handed"): "working",
    ("standing", "TurnStarted"): "working",
    ("waiting", "TurnStarted"): "working",
    ("working", "TurnEnded"): "standing",
    ("working", "Blocked"): "waiting",
    ("standing", "Blocked"): "waiting",
    ("waiting", "TaskEnded"): "standing",
    **{(state, "Starting"): "starting" for state in (*LIVE, "stopped")},
    # One that waits for an answer, or for a time, goes on waiting without a process.
    **{(state, "Stood"): "standing" for state in (*LIVE, "stopped") if state not in ("waiting", "parked", "standing")},
    **{(state, "Rerun"): "starting" for state in LIVE},
    **{(state, "Lost"): "starting" for state in LIVE if state != "parked"},
    **{(state, "Parked"): "parked" for state in LIVE},
    ("parked", "Unparked"): "standing",  # or where its run was: the fact says where
    **{(state, "BackedOff"): "backoff" for state in LIVE},
    **{(state, "Leaving"): "stopping" for state in (*LIVE, "stopped")},
    ("stopping", "Left"): "stopped",  # or gone: the fact says which
}


def after(state: State, fact: str, to: State | None = None) -> State:
    """The state after a fact; `to` is where a `Left` or an `Unparked` leads."""
    following = TABLE.get((state, fact))
    if following is None:
        return state
    return to if to is not None and fact in ("Left", "Unparked") else following
