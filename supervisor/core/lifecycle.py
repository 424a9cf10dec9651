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
    ("standing", "Awaiting"): "waiting",
    ("working", "Awaiting"): "waiting",
    ("standing", "Blocked"): "waiting",
    ("waiting", "TaskEnded"): "standing",
    ("starting", "Blocked"): "waiting",
    ("waiting", "Answered"): "working",
    ("waiting", "Withdrawn"): "working",
    **{(state, "Starting"): "starting" for state in (*LIVE, "stopped")},
    # One that waits for an answer, or for a time, goes on waiting without a process.
    **{(state, "Stood"): "standing" for state in (*LIVE, "stopped") if state not in ("parked", "standing")},
    **{(state, "Rerun"): "starting" for state in LIVE},
    **{(state, "Lost"): "starting" for state in LIVE if state != "parked"},
    **{(state, "Parked"): "parked" for state in LIVE},
    ("parked", "Unparked"): "standing",
    **{(state, "BackedOff"): "backoff" for state in LIVE},
    **{(state, "Leaving"): "stopping" for state in (*LIVE, "stopped")},
    ("stopping", "Left"): "stopped",
}


#: Where a pair leads whose fact alone does not say it: all the states that it may be, the one of `TABLE` first.
VARIES: dict[tuple[State, str], tuple[State, ...]] = {
    ("stopping", "Left"): ("stopped", "gone"),
    ("parked", "Unparked"): ("standing", "working", "waiting", "starting"),
    # Started for what its children have to tell.
    ("starting", "Ready"): ("standing", "waiting"),
    # Only what a person approves or denies is asked by a program that is not ready.
    ("starting", "Blocked"): ("waiting", "starting"),
    # Back to where it asked, unless it asks something else as well.
    ("waiting", "Answered"): ("working", "standing", "starting", "waiting"),
    ("waiting", "Withdrawn"): ("working", "standing", "starting", "waiting"),
    ("waiting", "TaskEnded"): ("standing", "waiting"),
    ("waiting", "TurnStarted"): ("working", "waiting"),
    ("waiting", "Stood"): ("standing", "waiting"),
}


def after(state: State, fact: str, to: State | None = None) -> State:
    """The state after a fact; `to` is where it leads among those that it may (`VARIES`)."""
    following = TABLE.get((state, fact))
    if following is None:
        return state
    return to if to in VARIES.get((state, fact), ()) else following
