"""Which value wins: built-in, personal defaults, project, role, agent, the later one. It knows each value's origin, and
refuses what a project would widen beyond the personal file. It knows nothing of text or TOML types."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import attrs
from attrs import evolve, field, frozen

from supervisor.config import schema
from supervisor.config.lines import Lines, Path
from supervisor.config.problems import Report, quoted, show_path
from supervisor.config.values import UNLIMITED, show_count, show_duration, show_money, show_patience, show_resource
from supervisor.core import models, private, rights
from supervisor.core.grants import Grant
from supervisor.core.spec import Resources, Spec
from supervisor.core.state import fold

#: From the narrowest wall to the widest.
WALLS: Final = ("mains", "instance", "project")
GRANT: Final = tuple(one.name for one in attrs.fields(Grant))
RESOURCES: Final = tuple(one.name for one in attrs.fields(Resources))
#: Keys that name a file or a directory.
PATHS: Final = ("directory", "instructions", "env_file")
BUILT_IN: Final = "built-in"
NARROW: Final = "A project may narrow what the personal file allows, not widen it"


@frozen
class Source:
    """One file, read: its tables, where each key of it stands, and the keys that were left out as wrong."""

    layer: Literal["personal", "project"]
    file: str
    lines: Lines
    tables: schema.Document
    sha256: str = ""
    wrong: frozenset[Path] = frozenset()

    def tell(self, report: Report, path: Path, message: str, remedy: str = "") -> None:
        """Something is wrong at `path`; not once more where the value itself was none."""
        if path not in self.wrong:
            report.add(self.file, self.lines, path, message, remedy)

    def origin(self, path: Path, role: str = "") -> str:
        return f"{f'role {role}' if role else self.layer} {self.file}:{self.lines.of(path)}"


@frozen
class Entry:
    """One table that has a say in an agent's values, and where it stands."""

    source: Source
    path: Path
    table: schema.DefaultsTable
    role: str = ""

    def get(self, key: str) -> Any:
        """The value it gives, None where it gives none; `grant.tokens` looks into the grant."""
        name, _, inner = key.partition(".")
        value = getattr(self.table, name, None)
        return getattr(value, inner) if inner and value is not None else value

    def place(self, key: str) -> Path:
        return (*self.path, *key.split("."))

    def origin(self, key: str) -> str:
        return self.source.origin(self.place(key), self.role)


@frozen
class Origin:
    """A value in force and where it comes from, as text."""

    key: str
    value: str
    origin: str


@frozen
class Resolved:
    """What the tables of one agent or role come to."""

    spec: Spec
    grant: Grant
    origins: tuple[Origin, ...] = field(default=(), repr=False)


def defaults(sources: Sequence[Source], *, grant: bool) -> list[Entry]:
    """The `[defaults]` of each file. Their grant is a main's: a child that names nothing has its parent's anyway."""
    return [
        Entry(source, ("defaults",), source.tables.defaults if grant else evolve(source.tables.defaults, grant=None))
        for source in sources
    ]


def roles(sources: Sequence[Source]) -> dict[str, list[Entry]]:
    """The `[roles.NAME]` of each file, by the name as names are compared; the last one's spelling is the role's."""
    found: dict[str, list[Entry]] = {}
    for source in sources:
        for name, table in source.tables.roles.items():
            found.setdefault(fold(name), []).append(Entry(source, ("roles", name), table, role=name))
    return found


def resolve(chain: Sequence[Entry], owner: Path, built_in: Spec, report: Report) -> Resolved:
    """The values of one agent or role (`owner`), `chain` in the order of the layers."""
    spec: dict[str, Any] = {}
    origins: list[Origin] = []
    shown = show_path(owner)
    for key in (one.name for one in attrs.fields(Spec)):
        if key == "env":
            spec[key] = _env(chain, shown, origins)
            continue
        if key == "model_from":
            spec[key] = _word_of(chain)
            continue
        if key == "resources":
            spec[key] = _resources(chain, shown, origins, report)
            continue
        entry = _last(chain, key)
        value = entry.get(key) if entry else getattr(built_in, key)
        if entry and key in PATHS:
            value = _absolute(value, entry, key, report)
        if key == "max_tasks":
            value = value or None
        spec[key] = value
        if entry or value not in ("", None):
            origins.append(Origin(f"{shown}.{key}", text(key, value), entry.origin(key) if entry else BUILT_IN))
    grant: dict[str, Any] = {}
    for name in GRANT:
        key = f"grant.{name}"
        entry = _last(chain, key)
        if entry:
            grant[name] = _paths(entry, report) if name == "paths" else entry.get(key)
            origins.append(Origin(f"{shown}.{key}", text(name, grant[name]), entry.origin(key)))
            _no_wider(chain, key, report)
    return Resolved(Spec(**spec), Grant(**grant), tuple(origins))


def _word_of(chain: Sequence[Entry]) -> str:
    """Whose word the model is, `""` included, as agents are told: a line of a file would be another one with each
    change of it."""
    entry = _last(chain, "model")
    if entry is None:
        return ""
    if entry.role:
        return f"role {entry.role}"
    return models.DEFAULTS if entry.path == ("defaults",) else models.FILE


def _last(chain: Iterable[Entry], key: str) -> Entry | None:
    given = [entry for entry in chain if entry.get(key) is not None]
    return given[-1] if given else None


def _env(chain: Sequence[Entry], shown: str, origins: list[Origin]) -> tuple[tuple[str, str], ...]:
    """Variables are joined by name, in the order of their names."""
    given = {name: (value, entry) for entry in chain for name, value in (entry.get("env") or {}).items()}
    for name in sorted(given):
        value, entry = given[name]
        key = f"{shown}.{show_path(('env', name))}"
        value = private.HIDDEN if private.looks_secret(name) else text("env", value)
        origins.append(Origin(key, value, entry.source.origin((*entry.path, "env", name), entry.role)))
    return tuple((name, given[name][0]) for name in sorted(given))


def _resources(chain: Sequence[Entry], shown: str, origins: list[Origin], report: Report) -> Resources:
    """Joined by name, as a grant is."""
    given: dict[str, int | None] = {}
    for name in RESOURCES:
        key = f"resources.{name}"
        entry = _last(chain, key)
        if entry:
            given[name] = entry.get(key) or None
            origins.append(Origin(f"{shown}.{key}", text(name, given[name]), entry.origin(key)))
            _no_wider(chain, key, report)
    return Resources(**given)


def absolute(path: str, file: str) -> str:
    """A path as written in `file`: after `~`, and relative to the directory of the file. Raises ValueError."""
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        raise ValueError(f"there is no home directory for {quoted(path.split('/', maxsplit=1)[0])}")
    joined = os.path.normpath(os.path.join(os.path.dirname(file), expanded))
    return "/" + joined.lstrip("/") if joined.startswith("/") else joined


def _absolute(path: str, entry: Entry, key: str, report: Report) -> str:
    """ "" stays "": nothing is named, whatever an earlier layer said."""
    if not path:
        return ""
    try:
        return absolute(path, entry.source.file)
    except ValueError as error:
        entry.source.tell(report, entry.place(key), str(error))
        return ""


def _paths(entry: Entry, report: Report) -> tuple[str, ...]:
    return tuple(_absolute(path, entry, "grant.paths", report) for path in entry.get("grant.paths"))


def _no_wider(chain: Sequence[Entry], key: str, report: Report) -> None:
    """A project's value lies within each value that the personal file gives before it."""
    name = key.partition(".")[2]
    personal: list[tuple[Any, Entry]] = []
    for entry in chain:
        value = entry.get(key)
        if value is None:
            continue
        if name == "paths":
            value = _paths(entry, Report())
        if entry.source.layer == "personal":
            personal.append((value, entry))
            continue
        for held, above in personal:
            if wider(name, value, held):
                words = f"{text(name, value)} is wider than {text(name, held)} of {above.origin(key)}"
                entry.source.tell(report, entry.place(key), words, NARROW)


def wider(name: str, asked: Any, held: Any) -> bool:
    """Whether `asked` goes beyond `held`."""
    if isinstance(held, tuple):
        return not all(any(rights.covers(name, have, want) for have in held) for want in asked)
    if name in RESOURCES:
        asked, held = (value or math.inf for value in (asked, held))  # 0 is no limit
    return bool(asked > held)


def text(key: str, value: Any) -> str:
    """A value as `supervisorctl config` shows it: close to how it is written, whole, and exact."""
    if key == "max_tasks" and value is None:
        return UNLIMITED
    if key in RESOURCES:
        return str(show_resource(key, value or None))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(quoted(one, len(one)) for one in value)}]"
    if key == "cost":
        return show_money(value)
    if key in {"wall", "stop_grace"}:
        return show_duration(value)
    if key in {"quiet_after", "quiet_kill"}:
        return show_patience(value)
    if key in {"tokens", "turns", "descendants"}:
        return show_count(value)
    return quoted(value, len(value)) if isinstance(value, str) else str(value)
