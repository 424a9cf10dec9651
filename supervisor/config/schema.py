"""The tables of an agents.toml as attrs values, and how raw TOML becomes them: exact types, no unknown key, all faults.
What a value means, and whether two of them fit together, is not known here."""

from __future__ import annotations

from collections import abc
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, NewType, cast, get_args, get_origin

import attrs
import cattrs
from attrs import frozen
from cattrs.errors import ClassValidationError, ForbiddenExtraKeysError, IterableValidationError
from cattrs.gen import make_dict_structure_fn, override

from supervisor.config import values
from supervisor.config.lines import Path
from supervisor.config.problems import WrongValueError, listed, nearest, quoted
from supervisor.config.values import Count, Duration, Filled, Model, Patience, Tasks, Variable
from supervisor.core.grants import Grant
from supervisor.core.spec import Resources, Restart, Resume, Stdio, Wall

#: Declared children; a type of its own because it holds the type it stands in.
Branch = NewType("Branch", Mapping[str, Any])


@frozen
class ProjectTable:
    name: str | None = None
    agent_talk: Wall | None = None


@frozen
class LimitsTable:
    depth: int | None = None
    agents: Count | None = None
    forks_per_minute: Count | None = None


@frozen
class KindTable:
    command: tuple[str, ...] | None = None
    protocol: str | None = None
    stdio: Stdio | None = None
    once: bool | None = None


@frozen
class DefaultsTable:
    kind: str | None = None
    model: str | None = None
    directory: str | None = None
    instructions: str | None = None
    env: Mapping[Variable, str] | None = None
    env_file: str | None = None
    max_tasks: Tasks | None = None
    replace: bool | None = None
    restart: Restart | None = None
    resume: Resume | None = None
    stop_grace: Duration | None = None
    quiet_after: Patience | None = None
    quiet_kill: Patience | None = None
    resources: Resources | None = None
    grant: Grant | None = None


@frozen
class RoleTable(DefaultsTable):
    description: str | None = None
    task: str | None = None


@frozen
class AgentTable(RoleTable):
    role: str | None = None
    agents: Branch | None = None

    @property
    def children(self) -> Mapping[str, AgentTable]:
        return cast("Mapping[str, AgentTable]", self.agents or {})


@frozen
class Document:
    project: ProjectTable = ProjectTable()
    defaults: DefaultsTable = DefaultsTable()
    agents: Branch = Branch({})
    roles: Mapping[str, RoleTable] = attrs.Factory(dict)
    kinds: Mapping[str, KindTable] = attrs.Factory(dict)
    limits: LimitsTable = LimitsTable()

    @property
    def mains(self) -> Mapping[str, AgentTable]:
        return cast("Mapping[str, AgentTable]", self.agents)


@frozen
class Fault:
    """A raw value that may not stand at `path`; or a key that is none of `table`."""

    path: Path
    message: str
    remedy: str = ""
    table: type | None = None

    def advice(self) -> str:
        """What to do about it. Looking for the nearest key takes a while: not worth it for thousands of faults."""
        return _belongs(str(self.path[-1]), self.table) if self.table else self.remedy


#: Where each key belongs, for a key that stands in the wrong table. The first home is the one that is named.
_HOMES: Final[tuple[tuple[str, type], ...]] = (
    ("[defaults] and of an agent", DefaultsTable),
    ("an agent", AgentTable),
    ("grant", Grant),
    ("resources", Resources),
    ("[limits]", LimitsTable),
    ("[project]", ProjectTable),
    ("[kinds.NAME]", KindTable),
)


def document(whole: dict[str, Any]) -> tuple[Document, tuple[Fault, ...]]:
    """The tables, and what is wrong with them. What is wrong is taken out of `whole`, so that the rest can be
    checked in the same pass."""
    faults = [*_too_deep(whole)]
    for fault in faults:
        _leave_out(whole, fault.path)
    try:
        return _CONVERTER.structure(whole, Document), tuple(faults)
    except cattrs.BaseValidationError as error:
        found = [*_faults(error, ())]
    # An element that is wrong takes its whole list with it: the rest of the list would read as if it were meant.
    for fault in found:
        _leave_out(whole, fault.path)
    return _CONVERTER.structure(whole, Document), (*faults, *found)


def _too_deep(raw: dict[str, Any]) -> Iterator[Fault]:
    """Agents below the deepest level there can be; without recursion, since nothing bounds the text."""
    level: list[tuple[Path, Any]] = [((), raw)]
    for _ in range(values.DEEPEST + 1):
        below: list[tuple[Path, Any]] = []
        for path, table in level:
            children = table.get("agents") if isinstance(table, dict) else None
            if isinstance(children, dict):
                below += [((*path, "agents", name), child) for name, child in children.items()]
        level = below
    for path, _table in level:
        yield Fault(path, f"an agent can be {values.DEEPEST} levels deep at most", "Declare it higher up")


def _leave_out(raw: dict[str, Any], path: Path) -> None:
    table: Any = raw
    for place, part in enumerate(path):
        inner = table.get(part) if isinstance(table, dict) else None
        if place == len(path) - 1 or not isinstance(inner, dict):
            if isinstance(table, dict):
                table.pop(part, None)
            return
        table = inner


def _faults(error: Exception, path: Path) -> Iterator[Fault]:
    if isinstance(error, ClassValidationError):
        named, rest = error.group_exceptions()
        for inner, note in named:
            yield from _faults(inner, (*path, note.name))
        for inner in rest:
            yield from _faults(inner, path)
    elif isinstance(error, IterableValidationError):
        elements, rest = error.group_exceptions()
        for inner, place in elements:
            yield from _faults(inner, (*path, place.index))
        for inner in rest:
            yield from _faults(inner, path)
    elif isinstance(error, ForbiddenExtraKeysError):
        for key in sorted(error.extra_fields):
            yield Fault((*path, key), f"there is no key {quoted(key)} here", table=error.cl)
    elif isinstance(error, WrongValueError):
        yield Fault(path, error.message, error.remedy)
    else:  # pragma: no cover - every type of the tables has a hook of its own
        raise error


def _belongs(key: str, table: type) -> str:
    """What to do about an unknown key: move it where it belongs, or the nearest known one, or what is known here."""
    known = _keys(table)
    homes = [home for home in _HOMES if home[1] is not table]
    for place, other in homes:
        if key in _keys(other):
            return f"{quoted(key)} is a key of {place}"
    near = nearest(key, known)
    if near:
        return near
    for place, other in homes:
        near = nearest(key, _keys(other))
        if near:
            return f"{near} It is a key of {place}"
    return f"Known here: {listed(known)}"


def _keys(table: type) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(table))


def _table(table: type, made: cattrs.Converter) -> Callable[[Any, Any], Any]:
    """A table of fixed keys; what is no table at all is told before its keys are looked at."""
    own: dict[str, Any] = {name: override(struct_hook=hook) for name, hook in _OWN.get(table, {}).items()}
    inner: Callable[[Any, Any], Any] = make_dict_structure_fn(table, made, **own)

    def structure(value: object, _: object) -> Any:
        return inner(_mapping(value), table)

    return structure


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise WrongValueError(f"{values.called(value)}, not a table")
    return value


def _is_texts(kind: Any) -> bool:
    return bool(kind == tuple[str, ...])


def _is_words(kind: Any) -> bool:
    return get_origin(kind) is Literal


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) is abc.Mapping


def _dict_of(mapping: Any) -> Any:
    """The concrete type for which cattrs has a hook that tells every element's fault."""
    key, value = get_args(mapping)
    return dict[key, value]  # type: ignore[valid-type]  # a type made while running, for cattrs


def _converter() -> cattrs.Converter:
    made = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    hooks: dict[Any, Callable[[Any, Any], Any]] = {
        str: values.text, bool: values.flag, int: values.whole, Count: values.count, Duration: values.duration,
        Patience: values.patience,
        Tasks: values.tasks, Model: values.model, Variable: values.variable, Filled: values.filled,
    }  # fmt: skip
    for kind, hook in hooks.items():
        made.register_structure_hook(kind, hook)
    made.register_structure_hook_func(_is_texts, lambda raw, _: values.texts(raw, str, made))
    made.register_structure_hook_func(_is_words, lambda raw, words: values.choice(raw, get_args(words)))
    made.register_structure_hook_func(_is_mapping, lambda raw, of: made.structure(_mapping(raw), _dict_of(of)))
    made.register_structure_hook(Branch, lambda raw, _: made.structure(raw, _BRANCH))
    made.register_structure_hook_factory(attrs.has, lambda table: _table(table, made))
    return made


def _list_of(kind: Any) -> Callable[[Any, Any], Any]:
    return lambda raw, _: values.texts(raw, kind, _CONVERTER)


#: The lists of a grant hold words that say something; its numbers may have units.
_GRANT: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **{name: _list_of(Filled) for name in ("tools", "kinds", "paths")},
    "models": _list_of(Model), "env": _list_of(Variable),
    **dict.fromkeys(("tokens", "turns", "descendants", "children", "depth"), values.count),
    "cost": values.money, "wall": values.duration,
}  # fmt: skip
_RESOURCES: Final = {"memory": values.memory, "cpu": values.cpu, "processes": values.processes}
#: Tables of the core's own, whose values are written otherwise than they are kept.
_OWN: Final[Mapping[type, Mapping[str, Callable[[Any, Any], Any]]]] = {Grant: _GRANT, Resources: _RESOURCES}
#: What a `Branch` really is.
_BRANCH: Final[Any] = Mapping[str, AgentTable]
_CONVERTER: Final = _converter()
