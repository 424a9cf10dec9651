"""Doctor: the daemon, if one runs, what it says of itself, and what daemons left on disk. It asks and reads, for a
second at most, and removes nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat

from supervisor.ctl import call
from supervisor.ctl.findings import BAD, OK, WARN, Finding
from supervisor.ctl.outcome import NO_DAEMON, Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from supervisor.ctl.place import Place

TOPIC, STATE, CLIS = "daemon", "state", "agent CLIs"
_WITHIN = 1.2
#: So many faults are told; `status` has them all.
_FAULTS = 5
#: Of a journal so much is read: its end, and its beginning for the project's file (bytes).
_END, _BEGIN = 4096, 1 << 18
_FILE = re.compile(rb'"fact":"Accepted","file":"((?:[^"\\]|\\.)*)"')


class Seen:
    """What one part found that another compares with: the daemon's own words, and its pid."""

    def __init__(self) -> None:
        self.status: Mapping[str, Any] = {}
        self.pid = 0


def look(place: Place, seen: Seen) -> Iterator[Finding]:
    """Each place where a daemon may listen, then what the one that does says."""
    present = [path for path in place.sockets if os.path.lexists(path)]
    for path in present:
        yield from _socket(place, path, seen)
    if not seen.pid and not present:
        yield Finding(OK, TOPIC, "no daemon runs here", notes=("supervisorctl up starts one",))
    if seen.status:
        yield from _status(seen.status)


def _socket(place: Place, path: str, seen: Seen) -> Iterator[Finding]:
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        yield Finding(BAD, TOPIC, f"{path} is no socket, and a daemon cannot listen there", f"move it away: {path}")
        return
    try:
        with call.connect([path], place.uid, _WITHIN) as client:
            first = not seen.pid
            seen.pid = seen.pid or client.pid
            status = client.call("status", {}, _WITHIN)
            seen.status = status if first else seen.status
    except Failure as failure:
        if failure.code != NO_DAEMON:
            yield Finding(BAD, TOPIC, failure.message, "; ".join(failure.remedy))
        elif "stale" in " ".join(failure.remedy):
            yield Finding(
                WARN, TOPIC, f"{path} is stale: nobody listens", "the next daemon replaces it: supervisorctl up"
            )
        else:
            yield Finding(BAD, TOPIC, failure.remedy[0] if failure.remedy else failure.message, "see who: ss -xlp")
        return
    if first:
        yield Finding(OK, TOPIC, f"pid {client.pid} of uid {place.uid} answers at {path}")
    else:
        words = f"a second daemon, pid {client.pid}, answers at {path}"
        yield Finding(BAD, TOPIC, words, f"end one of them: FLEET_SOCKET={path} supervisorctl shutdown")


def _status(status: Mapping[str, Any]) -> Iterator[Finding]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        ours = version("fleet-supervisor")
    except PackageNotFoundError:
        ours = ""
    kept = "systemd" if status.get("systemd") else f"a warden (pid {status.get('warden')})"
    kept = kept if status.get("systemd") or status.get("warden") else "nobody: if it dies, it stays so"
    words = f"version {status.get('version')}, tier {status.get('tier')}, kept by {kept}"
    if ours and status.get("version") != ours:
        do = "supervisorctl shutdown, then up: what is wanted comes back"
        yield Finding(WARN, TOPIC, f"{words}; this command is {ours}", do)
    else:
        yield Finding(OK, TOPIC, words)
    faults = status.get("faults") or []
    for fault in faults[:_FAULTS]:
        words = ": ".join(str(fault[key]) for key in ("where", "what") if fault.get(key))
        yield Finding(WARN, TOPIC, words, "supervisorctl status")
    if len(faults) > _FAULTS:
        yield Finding(WARN, TOPIC, f"and {len(faults) - _FAULTS} more faults", "supervisorctl status")
    for project in status.get("projects") or ():
        name, file = project.get("name"), str(project.get("file"))
        if not os.path.exists(file):
            do = f"supervisorctl down --project {project.get('id')}, or bring the file back"
            yield Finding(WARN, TOPIC, f"{name}: {file} is gone; its agents run as it was accepted", do)
        elif project.get("changed"):
            yield Finding(WARN, TOPIC, f"{name}: {file} has changed since it was accepted", "supervisorctl reload")


# --- what lies on disk


def state(place: Place) -> Iterator[Finding]:
    """Journals: whole at their end, and of projects whose file is still there."""
    if not os.path.isdir(place.state):
        yield Finding(OK, STATE, f"nothing is kept yet ({place.state})")
        return
    mode = stat.S_IMODE(os.stat(place.state).st_mode)
    if mode & 0o077:
        yield Finding(BAD, STATE, f"{place.state} is open to others", f"chmod 700 {place.state}")
    stored = sorted(entry.path for entry in os.scandir(place.state) if os.path.exists(f"{entry.path}/journal.jsonl"))
    yield Finding(
        OK, STATE, f"{len(stored)} journals in {place.state}", notes=("supervisorctl verify reads them whole",)
    )
    for directory in stored:
        yield from _journal(directory)


def _journal(directory: str) -> Iterator[Finding]:
    try:
        with open(f"{directory}/journal.jsonl", "rb") as source:
            begin = source.read(_BEGIN)
            size = source.seek(0, os.SEEK_END)
            source.seek(max(0, size - _END))
            end = source.read()
    except OSError as error:
        yield Finding(BAD, STATE, f"{directory}: its journal cannot be read: {error.strerror}", "make it readable")
        return
    if end and not end.endswith(b"\n"):
        words = f"{directory}: the last record of its journal is torn"
        yield Finding(WARN, STATE, words, "the next daemon cuts it and says so: supervisorctl verify")
    found = _FILE.search(begin)
    file = json.loads(b'"' + found[1] + b'"') if found else ""
    if file and not os.path.exists(file):
        words = f"{directory} is what is left of a project whose file is gone: {file}"
        yield Finding(WARN, STATE, words, "if nobody wants it any more, remove the directory while no daemon runs")


# --- against the shell


def compare(place: Place, seen: Seen) -> Iterator[Finding]:
    """Where the daemon's agents would find another program than this shell does, or lack a key that it has."""
    from supervisor.kinds.programs import PROGRAMS

    shell = place.environ.get("PATH", os.defpath)
    here = {program.name: found for program in PROGRAMS if (found := shutil.which(program.name, path=shell))}
    for project in seen.status.get("projects") or ():
        recorded = str(project.get("path") or "")
        for name, found in here.items() if recorded else ():
            other = shutil.which(name, path=recorded)
            if other is None or os.path.realpath(other) != os.path.realpath(found):
                words = f"{project.get('name')}: `{name}` is {found} here and {other or 'not found'} for its agents"
                yield Finding(WARN, CLIS, words, "`supervisorctl up` in this shell records its PATH")
    yield from _keys(place, seen, here)


def _keys(place: Place, seen: Seen, here: Mapping[str, str]) -> Iterator[Finding]:
    from supervisor.kinds.programs import PROGRAMS

    if not seen.pid:
        return
    try:
        with open(f"/proc/{seen.pid}/environ", "rb") as source:
            has = {pair.partition(b"=")[0].decode(errors="replace") for pair in source.read().split(b"\0")}
    except OSError:
        return
    names = {key for program in PROGRAMS if program.name in here for key in program.keys if "*" not in key}
    for name in sorted(name for name in names if place.environ.get(name) and name not in has):
        words = f"{name} is set in your shell, but the daemon was started without it: its agents lack it"
        yield Finding(WARN, CLIS, words, "put it into an env_file of mode 0600, which agents.toml names")
