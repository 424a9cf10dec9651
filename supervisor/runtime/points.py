"""Named moments of the daemon's work, at any of which it may die. Whoever tries that out arms a hook; nothing else
does, and without one a moment passes unnoticed. Must never change what the daemon does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

#: Told of a moment and of what it is about: facts, lines of the journal, or nothing.
Hook = Callable[[str, object], None]

#: Every moment, in the order in which a batch and then a run pass them.
POINTS: Final = {
    "observing": "the world did something; the core has not heard of it",
    "decided": "a request or what happened was decided and applied in memory",
    "appended": "its batch waits for the disk",
    "written": "the line is in the file, and not yet synced",
    "flushed": "it is durable, and nobody has acted on it",
    "acted": "it was acted on, and nobody was answered",
    "spawning": "a run is durable, and its process is not there",
    "spawned": "the process is there, and no fact says so",
    "handing": "a text was handed by a fact, and its program has none of it",
    "handed": "all of it is written to the program",
    "ending": "a run is to end, or its first process ended; what lives of it was told nothing",
    "emptied": "nothing of the run lives, and no fact says so",
    "left": "an agent's host is done",
}

_hook: Hook | None = None


def arm(hook: Hook | None) -> None:
    """Tell `hook` of every moment from now on; it runs where the moment is, in whatever thread that may be."""
    global _hook  # noqa: PLW0603 - one process is one daemon, and passing it to every place would put it on every path
    _hook = hook


def reach(point: str, what: object = None) -> None:
    """This moment is now."""
    if _hook is not None:
        _hook(point, what)
