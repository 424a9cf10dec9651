"""`up` and `reload`: finds and reads the agents.toml, sees to it that a daemon runs, and hands it over."""

from __future__ import annotations

import json
import os

from supervisor.ctl.outcome import BAD_CONFIG, NO_DAEMON, REFUSED, USAGE, Failure
from supervisor.doors.wire import LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from supervisor.ctl.call import Client
    from supervisor.ctl.errand import Errand

#: What a file may take in a request, which is one line of ASCII; the rest is for PATH and where one stands.
_LARGEST = LIMIT - (1 << 16)


def bring(errand: Errand) -> int:
    """Accept exactly what the file says now."""
    verb = errand.asked.verb.name
    file = os.path.realpath(_file(errand))
    errand.asked.project = ""  # the file says it
    params = {**errand.params, "file": file, "content": content(file), "path": errand.place.environ.get("PATH", "")}
    began, result = _handed(errand, params, start=verb == "up")
    same = "the content accepted before: its agents run again" if began else "nothing changed"
    return errand.answer(result, [*began, *_receipt(errand, verb, result or {}, file, same)])


def _handed(errand: Errand, params: Mapping[str, Any], *, start: bool) -> tuple[Iterable[str], Any]:
    """What is to be said of a daemon that had to be started, and the answer. One that is leaving takes nothing more:
    what is brought up is for the next one. So it is where it ended before it had answered at all."""
    from supervisor.ctl.leaving import Watch

    client, began = _client(errand, start=start)
    with Watch(client) as watch:
        try:
            return began, errand.ask(params, client)
        except Failure as failure:
            refused = failure.shape.get("refused")
            leaves = isinstance(refused, dict) and refused.get("code") == "down"
            if not start or not (leaves or (failure.code == NO_DAEMON and watch.ends())):
                raise
        watch.gone(errand)
    client, began = _client(errand, start=start)
    return began, errand.ask(params, client)


def _file(errand: Errand) -> str:
    """The file that is meant. A project named by its name or id is asked for: its file may lie anywhere."""
    named, project = errand.params.get("file"), errand.asked.project
    if named and project:
        raise Failure(USAGE, "name a file or --project, not both")
    if not project or errand.place.project(project) != project:
        return errand.place.file(named or project or None)
    with errand.client() as client:
        known = client.call("status", {})["projects"]
    found = [str(each["file"]) for each in known if project in {each.get("name"), each.get("id")}]
    if len(found) != 1:
        words = "several projects are" if found else "no project is"
        raise Failure(REFUSED, f"{words} called {project!r}", "name its file, or its id: supervisorctl status --json")
    return found[0]


def content(file: str) -> str:
    """The file's text. Whatever is wrong with it as TOML is the daemon's to say."""
    try:
        with open(file, "rb") as source:
            raw = source.read(_LARGEST + 1)
    except OSError as error:
        raise Failure(BAD_CONFIG, f"{file} cannot be read: {error.strerror}") from None
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        if len(raw) <= _LARGEST:
            line = raw.count(b"\n", 0, error.start) + 1
            raise Failure(BAD_CONFIG, f"{file}:{line}: not UTF-8", "TOML is UTF-8: save the file as that") from None
        text = raw.decode(errors="replace")
    if len(json.dumps(text)) > _LARGEST:
        words = f"{file} is larger than one request: at most {_LARGEST} bytes, 6 for a letter that is not ASCII"
        raise Failure(BAD_CONFIG, words, 'a long text can lie in a file of its own: instructions = "FILE"')
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise Failure(BAD_CONFIG, f"{file}:{line}: a NUL character", "TOML is text: take it out")
    return text


def _client(errand: Errand, *, start: bool) -> tuple[Client, Iterable[str]]:
    """A connection, and what is to be said of the daemon that had to be started for it."""
    try:
        return errand.client(), ()
    except Failure as failure:
        if failure.code != NO_DAEMON or not start:
            raise
    errand.place.outside("up")
    from supervisor.ctl import daemon, manager

    kept = manager.find(errand.place)
    if kept is not None and manager.enabled(kept.show()):
        client = kept.start(errand.place, quiet=errand.asked.json)
        return client, [f"started {manager.UNIT} (pid {client.pid})"]
    client = daemon.start(errand.place, quiet=errand.asked.json)
    began = [f"started the daemon (pid {client.pid})"]
    if kept is None and manager.orphaned(errand.place):
        began.append(f"without {manager.UNIT}, which is enabled: no user manager answers here")
    return client, began


def _receipt(errand: Errand, verb: str, result: Mapping[str, Any], file: str, same: str) -> Iterable[str]:
    project = errand.screen.style(errand.word(result.get("project")), "bold")
    planned = "plan" in result or bool(errand.params.get("plan"))
    told = result.get("plan") if isinstance(result.get("plan"), dict) else result
    changes = list(_changes(errand, told or {}, "would be " if planned else ""))
    yield f"{project}  {errand.word(result.get('file') or file)}"
    yield from (f"  {change}" for change in changes or ["nothing to change" if planned else same])
    for warning in (told or {}).get("warnings") or ():
        yield "  " + errand.screen.style(f"warning: {errand.word(warning.get('what'))}", "yellow")
    if planned:
        yield "nothing was changed"
    elif verb == "up":
        yield "see it: supervisorctl tree"


def _changes(errand: Errand, told: Mapping[str, Any], modal: str) -> Iterable[str]:
    """Grants first: who may do more is what a person must see."""
    for word in ("grants", "changed", "restarted", "started", "stopped"):
        each: Sequence[object] = told.get(word) or ()
        if each:
            label = "granted" if word == "grants" else word
            yield f"{modal}{label}: " + ", ".join(errand.who(agent) for agent in each)
