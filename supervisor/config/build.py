"""From tables to a `Fleet`: the kinds, roles and agents that the layers come to, and whether they fit together.
What a child may hold of its parent's grant is the core's business."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import define, evolve, field

from supervisor.config.kinds import Kinds, kinds
from supervisor.config.layers import (
    BUILT_IN,
    NARROW,
    WALLS,
    Entry,
    Origin,
    Resolved,
    Source,
    defaults,
    resolve,
    roles,
    text,
)
from supervisor.config.lines import Path
from supervisor.config.problems import Report, listed, quoted, show_path
from supervisor.config.schema import AgentTable
from supervisor.config.values import DEEPEST, label_fault
from supervisor.core import names
from supervisor.core.spec import Declared, Fleet, Role, Spec
from supervisor.core.state import fold

#: A project's name is part of the path of its sockets, which end at 107 bytes.
LONGEST: Final = 48
_NOTHING: Final = Spec(kind="")
_LIMITS: Final = {"depth": "depth", "agents": "agents_max", "forks_per_minute": "forks_per_minute"}


def build(
    sources: Sequence[Source], fallback: str, protocols: Mapping[str, bool], report: Report
) -> tuple[Fleet, tuple[Origin, ...]]:
    """The fleet of the last source, with the others under it, and every value's origin. What is wrong is reported;
    a fleet with problems reported is to be thrown away."""
    making = _Making(sources, kinds(sources, protocols, report), report)
    settings = making.settings(fallback)
    base = making.resolve(defaults(sources, grant=True), ("defaults",))
    made = [making.role(chain) for chain in making.roles.values()]
    agents = making.agents(settings["depth"], settings["agents_max"])
    fleet = Fleet(**settings, agents=agents, roles=tuple(made), kinds=making.kinds.specs, defaults=base.spec)
    return fleet, tuple(making.origins)


def project_name(fallback: str) -> str:
    """A name for a project that has none, from its directory."""
    kept = "".join("-" if _odd(char) else char for char in fallback.strip()).lstrip(".")
    return kept.encode()[:LONGEST].decode(errors="ignore").strip() or "project"


def _odd(char: str) -> bool:
    return unicodedata.category(char)[0] == "C" or char in "/:"


def _name_fault(name: str) -> str:
    """Why this can be no project's name; it is part of a directory's."""
    if not name or name != name.strip():
        return "a project's name is not empty and has no white space at its ends"
    if any(map(_odd, name)) or name.startswith("."):
        return "a project's name has no control characters, none of / :, and no dot at its start"
    if len(name.encode()) > LONGEST:
        return f"a project's name has at most {LONGEST} bytes"
    return ""


def _no_origins() -> list[Origin]:
    return []


@define
class _Making:
    """One fleet being made of its sources."""

    sources: Sequence[Source]
    kinds: Kinds
    report: Report
    roles: Mapping[str, list[Entry]] = field(init=False)
    origins: list[Origin] = field(factory=_no_origins)

    def __attrs_post_init__(self) -> None:
        self.roles = roles(self.sources)
        self.origins += self.kinds.origins

    @property
    def project(self) -> Source:
        return self.sources[-1]

    def settings(self, fallback: str) -> dict[str, Any]:
        """What `[project]` and `[limits]` come to."""
        project = self.project.tables.project
        name = project.name if project.name is not None else project_name(fallback)
        fault = _name_fault(name)
        if fault:
            self.project.tell(self.report, ("project", "name"), f"{quoted(name)}: {fault}")
        given = self.project.origin(("project", "name")) if project.name is not None else BUILT_IN
        self.origins.append(Origin("project.name", text("name", name), given))
        found: dict[str, Any] = {"name": name, "agent_talk": self.setting(("project", "agent_talk"), "mains")}
        for key, of_fleet in _LIMITS.items():
            found[of_fleet] = self.setting(("limits", key), getattr(_EMPTY, of_fleet))
        return found

    def setting(self, path: tuple[str, str], built_in: Any) -> Any:
        """The last value given, which may be no wider than the personal file's."""
        table, key = path
        value, origin, ceiling = built_in, BUILT_IN, None
        for source in self.sources:
            given = getattr(getattr(source.tables, table), key)
            if given is None:
                continue
            if key == "depth" and not 1 <= given <= DEEPEST:
                source.tell(self.report, path, f"{given} is not within 1 to {DEEPEST}")
            if key == "agents" and given == 0:
                source.tell(self.report, path, "0 leaves no room for any agent")
            if ceiling is not None and _rank(given) > _rank(ceiling):
                source.tell(
                    self.report, path, f"{text(key, given)} is wider than {text(key, ceiling)} of {origin}", NARROW
                )
            value, origin = given, source.origin(path)
            ceiling = given
        self.origins.append(Origin(f"{table}.{key}", text(key, value), origin))
        return value

    def resolve(self, chain: Sequence[Entry], owner: Path) -> Resolved:
        """The values of a chain, with its kinds checked."""
        resolved = resolve(chain, owner, _NOTHING, self.report)
        for entry in chain:
            self.kinds.check(entry, self.report)
        self.origins += resolved.origins
        return resolved

    def role(self, chain: Sequence[Entry]) -> Role:
        name = chain[-1].role
        fault = label_fault(name)
        if fault:
            chain[-1].source.tell(self.report, chain[-1].path, f"{quoted(name)} is no role: {fault}")
        same = [entry for entry in chain if entry.source is chain[-1].source]
        if len(same) > 1:
            words = f"{quoted(name)} and {quoted(same[0].role)} are one role: case makes no difference"
            chain[-1].source.tell(self.report, chain[-1].path, words)
        resolved = self.resolve([*defaults(self.sources, grant=False), *chain], chain[-1].path)
        return Role(name, evolve(resolved.spec, role=name), resolved.grant)

    def agents(self, depth: int, most: int) -> tuple[Declared, ...]:
        """The declared tree of the project."""
        taken: dict[str, Path] = {}
        mains = self.branch(("agents",), self.project.tables.mains, depth, taken)
        if len(taken) > most:
            path = ("limits", "agents") if self.project.tables.limits.agents is not None else ("agents",)
            words = f"{len(taken)} agents are declared, the project may have {most}"
            self.project.tell(self.report, path, words, "Declare fewer, or allow more with agents under [limits]")
        return mains

    def branch(
        self,
        path: Path,
        tables: Mapping[str, AgentTable],
        depth: int,
        taken: dict[str, Path],
        parent: tuple[str, Spec] | None = None,
    ) -> tuple[Declared, ...]:
        """The agents of one `agents` table, and below each its own, as long as `depth` allows."""
        if tables and depth < 1:
            level = len(path) // 2 + 1
            words = f"this is level {level} of the tree, which may have {level - 1}"
            for name in tables:
                self.project.tell(
                    self.report, (*path, name), words, "Declare it higher up, or allow more with depth under [limits]"
                )
            return ()
        return tuple(self.agent((*path, name), name, table, depth, taken, parent) for name, table in tables.items())

    def agent(
        self,
        path: Path,
        name: str,
        table: AgentTable,
        depth: int,
        taken: dict[str, Path],
        parent: tuple[str, Spec] | None,
    ) -> Declared:
        self.name(path, name, taken)
        entry = Entry(self.project, path, table)
        template = self.roles.get(fold(table.role or ""), [])
        resolved = self.resolve(
            [*defaults(self.sources, grant=len(path) == len(("agents", name))), *template, entry], path
        )
        spec = resolved.spec
        if spec.role and label_fault(spec.role):
            self.project.tell(self.report, (*path, "role"), f"{quoted(spec.role)} is no role: {label_fault(spec.role)}")
        if not spec.kind and not self.hidden("kind", entry, *template, *defaults(self.sources, grant=False)):
            words = f"{quoted(name)} has no kind"
            self.project.tell(
                self.report,
                path,
                words,
                f"Write kind = … here or under [defaults]; known are {listed(self.kinds.known)}",
            )
        if not spec.directory:
            spec = evolve(spec, directory=os.path.dirname(self.project.file))
            self.origins.append(Origin(f"{show_path(path)}.directory", text("directory", spec.directory), BUILT_IN))
        spec = self.model(path, spec, parent)
        children = self.branch((*path, "agents"), table.children, depth - 1, taken, (name, spec))
        return Declared(name, spec, resolved.grant, children)

    def model(self, path: Path, spec: Spec, parent: tuple[str, Spec] | None) -> Spec:
        """A child for which no layer says anything of a model uses its parent's, if it is the same program."""
        if spec.model_from or parent is None or not parent[1].model or parent[1].kind != spec.kind:
            return spec
        word = f"parent {parent[0]}"
        self.origins.append(Origin(f"{show_path(path)}.model", text("model", parent[1].model), word))
        return evolve(spec, model=parent[1].model, model_from=word)

    def name(self, path: Path, name: str, taken: dict[str, Path]) -> None:
        """Whether the name is one, and nobody else's in the project."""
        fault = names.fault(name)
        if fault:
            self.project.tell(self.report, path, fault)
        first = taken.setdefault(fold(name), path)
        if first != path:
            words = f"the name is taken by {show_path(first)} on line {self.project.lines.of(first)}"
            self.project.tell(self.report, path, words, "Names are unique in a project; case makes no difference")

    def hidden(self, key: str, *entries: Entry) -> bool:
        """Whether a value was given, but left out as wrong."""
        return any(entry.place(key) in entry.source.wrong for entry in entries)


_EMPTY: Final = Fleet("")


def _rank(value: Any) -> int:
    return WALLS.index(value) if isinstance(value, str) else int(value)
