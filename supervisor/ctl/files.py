"""Verbs that read or write a person's files: `init`, `save`, `verify`. What exists is never overwritten."""

from __future__ import annotations

import os
import sys

from supervisor.ctl.outcome import DONE, REFUSED, USAGE, Failure
from supervisor.doors import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from supervisor.ctl.errand import Errand
    from supervisor.ctl.place import Place

#: The agent programs that a starter knows how to declare.
PROGRAMS = ("claude", "codex", "gemini", "opencode", "pi", "qwen")


def do(errand: Errand) -> int:
    """One of the three."""
    verb = errand.asked.verb.name
    return {"init": init, "save": save, "verify": verify}[verb](errand)


def init(errand: Errand) -> int:
    """Write a file to start from."""
    from shutil import which

    from supervisor.config.starter import starter

    environ = errand.place.environ
    found = {name: path for name in PROGRAMS if (path := which(name, path=environ.get("PATH", ""))) is not None}
    text = starter(found)
    if errand.params.get("stdout"):
        sys.stdout.write(text)
        return DONE
    if errand.params.get("personal") and errand.params.get("file"):
        raise Failure(USAGE, "name a file or --personal, not both")
    file = errand.place.personal if errand.params.get("personal") else errand.params.get("file") or _here(errand)
    file = os.path.join(file, paths.FILE) if os.path.isdir(file) else file
    write(file, text)
    words = f"for {', '.join(found)}" if found else "with a script as its agent: no agent program was found on PATH"
    lines = [f"wrote {file} {words}", "read it, then run it: supervisorctl up " + _shortest(errand, file)]
    return errand.answer({"file": file, "found": found}, [line.rstrip() for line in lines])


def _here(errand: Errand) -> str:
    if not errand.place.cwd:
        raise Failure(REFUSED, "the working directory is gone: name a file")
    return os.path.join(errand.place.cwd, paths.FILE)


def _shortest(errand: Errand, file: str) -> str:
    """What must be typed for `up` to find this file: nothing, where it is the nearest."""
    nearest = errand.place.nearest()
    return "" if nearest and os.path.samefile(nearest, file) else file


def write(file: str, text: str) -> None:
    """A new file with this text, whole or not at all."""
    made = False
    try:
        os.makedirs(os.path.dirname(file) or ".", exist_ok=True)
        with open(file, "x", encoding="utf-8") as target:
            made = True
            target.write(text)
    except FileExistsError:
        raise Failure(REFUSED, f"{file} exists and is kept", "name another file, or move that one away") from None
    except OSError as error:
        if made:
            os.unlink(file)
        raise Failure(REFUSED, f"{file} cannot be written: {error.strerror}") from None


def save(errand: Errand) -> int:
    """The live tree's agents as a file."""
    file = str(errand.params["file"])
    if os.path.lexists(file):
        raise Failure(REFUSED, f"{file} exists and is kept", "name another file, or move that one away")
    result = errand.ask()
    write(file, str(result["content"]))
    return errand.answer({"file": file}, [f"wrote {file}", f"run it: supervisorctl up {file}"])


def verify(errand: Errand) -> int:
    """Read journals and say whether they are whole. Exit code 1 where one is not."""
    from pathlib import Path

    from supervisor.runtime.journal import verify as reading

    named = errand.params.get("path")
    found = [named] if named else list(journals(errand.place))
    if not found:
        raise Failure(REFUSED, f"there is no journal in {errand.place.state}", "name one: supervisorctl verify PATH")
    answers: list[dict[str, Any]] = []
    broken = False
    for path in found:
        try:
            verdict = reading.verify(Path(path), replay=bool(errand.params.get("replay")))
        except OSError as error:
            answers.append({"path": path, "state": "unreadable", "words": error.strerror or str(error)})
            broken = True
            continue
        broken = broken or verdict.code != 0
        told = {key: getattr(verdict, key) for key in _VERDICT}
        answers.append({"path": path, **told, "words": str(verdict)})
    errand.answer({"journals": answers}, (f"{each['path']}: {errand.word(each['words'])}" for each in answers))
    return REFUSED if broken else DONE


_VERDICT = (
    "state",
    "seq",
    "head",
    "project",
    "since",
    "segments",
    "file",
    "line",
    "reason",
    "torn",
    "notes",
)


def journals(place: Place) -> Iterable[str]:
    """Directories with a journal: the daemon's own, and one for each project."""
    for directory, _, files in sorted(os.walk(place.state)):
        if "journal.jsonl" in files:
            yield directory
