"""`about`: all that is known of one agent and has no room in `tree`. It looks, at the state and at disks, and shows no
value of a variable."""

from __future__ import annotations

import glob
import os
import shlex
import time
from pathlib import Path
from typing import Any

from supervisor.core import rights, view
from supervisor.core.facts import Started
from supervisor.core.grants import BOUNDS
from supervisor.core.spec import KindSpec, Spec
from supervisor.core.state import Node
from supervisor.doors.aside import aside
from supervisor.doors.calls import Plain
from supervisor.kinds.kind import Reopening, Seat
from supervisor.kinds.table import KINDS
from supervisor.runtime import programs, seating
from supervisor.runtime.projects import Room

#: How its texts reach it, by whether its program tells which it has begun with.
DELIVERY = {
    True: (
        "at least once",
        "what its program had not begun with when a run ended is given to the next, with the same id, marked `again`",
    ),
    False: (
        "at most once",
        "its program does not tell what it has begun with: what was handed to a run is lost if that run ends",
    ),
    None: ("not known yet", "its program says it when it is ready"),
}
_SHOWN = ("id", "name", "role", "description", "state", "wanted", "declared", "pid", "run", "since", "until", "tasks")


async def about(room: Room, node: Node) -> Plain:
    """The answer. What of it lies on disk is looked at beside the loop."""
    project = room.project
    shown = view.agent(project, node, time.time())
    home = room.directory / "agents" / node.id
    seat, model_from, tools_from = seating.seat(project, node, home)
    started = node.started or Started(node.id, 0, 0, 0, "", seat.spec.model, model_from, seat.tools, tools_from)
    parent = project.above(node)
    kind = next((kind for kind in (project.fleet.kinds if project.fleet else ()) if kind.name == node.spec.kind), None)
    return {
        **{key: shown[key] for key in _SHOWN},
        "project": project.name,
        "parent": view.label(parent) if parent is not None else None,
        "directory": node.spec.directory or str(home),
        "kind": await aside(lambda: _program(kind, node.spec, project.path)),
        "model": {
            "name": started.model, "from": started.model_from, "reported": node.model, "outside": shown["outside"],
        },
        "tools": {"names": None if started.tools is None else [*started.tools], "from": started.tools_from},
        "unenforced": [*KINDS[kind.protocol].unenforced(seat)] if kind is not None else [],
        "grant": shown["grant"],
        "bounds": {field: getattr(node.grant, field) for field in BOUNDS},
        "rights": {field: rights.effective(project, node, field) for field in (*rights.SETS, *rights.SWITCHES)},
        "login": started.credential,
        "session": await aside(lambda: _session(kind, seat, node)),
        "transcript": _file(home / "transcript.jsonl"),
        "stderr": _file(home / "stderr.log"),
        "delivery": _delivery(node),
        "restart": {
            "policy": node.spec.restart, "resume": node.spec.resume, "crashes": node.crashes, "failed": node.crashed,
        },
        "exit": shown["exit"],
        "reason": node.reason or None,
    }  # fmt: skip


def _delivery(node: Node) -> Plain:
    guarantee, words = DELIVERY[node.talk.tells if node.talk.ready else None]
    return {"guarantee": guarantee, "words": words}


def _file(path: Path) -> str | None:
    return str(path) if path.exists() else None


def _program(kind: KindSpec | None, spec: Spec, path: str) -> Plain:
    """What it runs, as far as the machine has it."""
    if kind is None:
        return {"name": spec.kind, "protocol": None, "program": None, "path": None, "version": None}
    name = programs.program(kind, spec)
    found = programs.find(name, _path(spec, path), spec.directory)
    version = programs.version(found) if found else ""
    return {"name": kind.name, "protocol": kind.protocol, "program": name, "path": found, "version": version or None}


def _path(spec: Spec, path: str) -> str:
    try:
        given = seating.given(spec).get("PATH")
    except OSError:
        given = None
    return given or path or os.environ.get("PATH", os.defpath)


def _session(kind: KindSpec | None, seat: Seat, node: Node) -> Plain:
    """Its conversation: where the program keeps it, and how a person goes on with it."""
    reopening = KINDS[kind.protocol].reopen(kind, seat) if kind is not None and node.session else Reopening()
    argv = [*reopening.argv]
    where = seat.spec.directory or seat.home
    command = f"cd {shlex.quote(where)} && {shlex.join(argv)}" if argv else None
    return {
        "id": node.session or None,
        "file": _newest(reopening.file, seat.spec) if reopening.file else None,
        "reopen": command,
        "argv": argv or None,
    }


def _newest(pattern: str, spec: Spec) -> str | None:
    """The file that the program keeps, where it is there."""
    given: dict[str, Any] = dict(spec.env)
    home = given.get("HOME") or os.environ.get("HOME") or os.path.expanduser("~")
    # Only the kind's own words are a pattern: a home may have any sign in it.
    whole = glob.escape(home) + pattern[1:] if pattern.startswith("~/") else pattern
    found = [path for path in glob.iglob(whole) if os.path.lexists(path)]
    return max(found, key=lambda path: os.stat(path, follow_symlinks=False).st_mtime, default=None)
