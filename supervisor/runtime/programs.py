"""What an agent needs of the machine before it is born: its program, its directory, its files. It looks, on disks that
may be slow, and starts nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping

from attrs import evolve, frozen

from supervisor.core.refusals import Code, Refusal
from supervisor.core.spec import Fleet, KindSpec, Spec
from supervisor.kinds.kind import Seat
from supervisor.kinds.table import KINDS
from supervisor.runtime.seating import given

#: So many directories above a program its package may be described.
_ABOVE = 5
#: So much of a PATH is shown (characters).
LONGEST_PATH = 300
_LARGEST = 1 << 20


@frozen
class Missing:
    """What is not there: `field` names the key that asks for it, `asked` its value."""

    code: Code
    field: str
    asked: str
    message: str

    def refusal(self) -> Refusal:
        """No agent is born without it."""
        return Refusal(self.code, self.message, self.field, self.asked)


def missing(fleet: Fleet, spec: Spec, path: str) -> Missing | None:
    """The first thing that a run of this agent would not find; `path` is the PATH recorded for its project."""
    if spec.directory and not os.path.isdir(spec.directory):
        what = "is no directory" if os.path.lexists(spec.directory) else "does not exist"
        return Missing("value", "directory", spec.directory, f"its directory {spec.directory} {what}: make it first")
    if spec.instructions and not os.path.isfile(spec.instructions):
        words = f"its instructions {spec.instructions} are no file: write it, or name another"
        return Missing("value", "instructions", spec.instructions, words)
    try:
        variables = given(spec)
    except OSError as error:
        words = f"its env_file cannot be used: {error.filename or spec.env_file}: {error.strerror or error}"
        return Missing("value", "env_file", spec.env_file, words)
    kind = next((kind for kind in fleet.kinds if kind.name == spec.kind), None)
    if kind is None or kind.protocol not in KINDS:
        return None  # the core's to refuse
    name = program(kind, spec)
    searched = variables.get("PATH") or path or os.environ.get("PATH", os.defpath)
    if find(name, searched, spec.directory):
        return None
    return Missing("unknown", "kind", spec.kind, _not_found(kind, name, searched))


def program(kind: KindSpec, spec: Spec) -> str:
    """The name or path of the program that this agent is."""
    seat = Seat("a0", 1, "", "", False, "/", evolve(spec, kind=kind.name))
    return KINDS[kind.protocol].launch(kind, seat).argv[0]


def find(name: str, path: str, directory: str = "") -> str | None:
    """Where the program is, as a run in that directory would find it."""
    if "/" in name:
        placed = os.path.join(directory, name)
        return placed if os.path.isfile(placed) and os.access(placed, os.X_OK) else None
    return shutil.which(name, path=path)


def _not_found(kind: KindSpec, name: str, path: str) -> str:
    if "/" in name:
        what = "is no program that may be run" if os.path.exists(name) else "does not exist"
        return f"the kind {kind.name} needs {name}, which {what}: install it, or correct [kinds.{kind.name}] command"
    shown = path if len(path) <= LONGEST_PATH else path[: LONGEST_PATH - 1] + "…"
    return (
        f"the kind {kind.name} needs the program {name}, which is not on the project's PATH: install it, and run "
        f"`supervisorctl up` in a shell that finds it (its PATH is recorded then); now it is {shown}"
    )


def version(found: str) -> str:
    """The version of an installed program as far as its files tell; "" where only the program itself could."""
    real = os.path.realpath(found)
    at = os.path.dirname(real)
    for _ in range(_ABOVE):
        described = _package(os.path.join(at, "package.json"))
        if isinstance(told := described.get("version"), str) and isinstance(described.get("name"), str):
            return told
        if os.path.dirname(at) == at or os.path.basename(at) == "node_modules":
            break
        at = os.path.dirname(at)
    # A native installer keeps each version under its number: …/versions/2.1.0
    parent, last = os.path.split(real)
    return last if os.path.basename(parent) == "versions" and last[:1].isdigit() else ""


def _package(path: str) -> Mapping[str, object]:
    try:
        with open(path, "rb") as file:
            told = json.loads(file.read(_LARGEST))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}
