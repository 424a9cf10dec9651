"""A project's state as a file, so that a journal need not be replayed from its beginning. It follows the classes of
core.state by their annotations and knows none of their fields; it must never take a file that is not exactly what was
written, by a version that keeps the same state."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import attrs

from supervisor.core.state import Node, Project
from supervisor.runtime.journal import chain, codec
from supervisor.runtime.journal.chain import Carry, Link

#: To be raised when `apply` comes to mean something else by the same facts and fields: snapshots from before are then
#: left alone and made again from the facts. The golden life's digest notices.
MEANING = 1
_CHUNK = 1 << 20


class UnusableError(Exception):
    """No snapshot, or none that this version can use: why."""


def write(path: Path, project: Project, at: Link) -> tuple[str, int]:
    """Write the state after record `at` under another name, make it durable, then give it its name; its sha256 and
    size. Raises OSError."""
    aside = fresh(path)
    digest, size, held = sha256(), 0, bytearray()
    file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        for line in lines(project, at):
            digest.update(line)
            size += len(line)
            held += line
            if len(held) >= _CHUNK:
                _put(file, held)
        _put(file, held)
        os.fsync(file)
    finally:
        os.close(file)
    aside.rename(path)
    return digest.hexdigest(), size


def fresh(path: Path) -> Path:
    """Where it is written before it is whole."""
    return path.with_suffix(".new")


def lines(project: Project, at: Link) -> Iterator[bytes]:
    """The file's lines, in canonical JSON: the project, then its agents, one at a time. A thread that writes them lets
    others have their turn between two."""
    head = {"format": chain.FORMAT, "head": at.hash, "seq": at.seq, "shape": SHAPE}
    yield _line(head | {"project": _converter.unstructure(attrs.evolve(project, agents={}))})
    for node in project.agents.values():
        yield _line(_converter.unstructure(node))


def digest(project: Project, at: Link) -> str:
    """What the file's sha256 would be."""
    made = sha256()
    for line in lines(project, at):
        made.update(line)
    return made.hexdigest()


def load(path: Path, carry: Carry) -> Project:
    """The state that the segment which begins with `carry` starts from. Raises UnusableError."""
    if carry.shape != SHAPE:
        raise UnusableError(f"{path.name} was written by a version that keeps another state")
    seen = sha256()
    project: Project | None = None
    try:
        with path.open("rb") as file:
            while line := file.readline(chain.LONGEST):
                seen.update(line)
                raw = chain.decode(line.decode("ascii"))
                if project is None:
                    project = _converter.structure(raw["project"], Project)
                    known = (raw["seq"], raw["head"], project.id) == (carry.seq, carry.prev, carry.project)
                else:
                    node = _converter.structure(raw, Node)
                    project.agents[node.id] = node
    except OSError as error:
        raise UnusableError(f"{path.name}: {error.strerror}") from error
    except Exception as error:  # whatever it was, the hash says that it is not what was written
        raise UnusableError(f"{path.name} is not as it was written: {error!r:.200}") from error
    if project is None or not known or seen.hexdigest() != carry.snapshot:
        raise UnusableError(f"{path.name} is not as it was written")
    return project


def check(path: Path, carry: Carry) -> str:
    """What is wrong with the file, "" if it is as it was written. Raises FileNotFoundError."""
    seen = sha256()
    with path.open("rb") as file:
        while part := file.read(_CHUNK):
            seen.update(part)
    return "" if seen.hexdigest() == carry.snapshot else "it is not as it was written"


def _line(raw: Any) -> bytes:
    return chain.encode(raw).encode("ascii") + b"\n"


def _put(file: int, held: bytearray) -> None:
    while held:
        del held[: os.write(file, held)]


# --- the classes of the state


def copied(project: Project) -> Project:
    """The state as it is now, of which nothing changes when the project does: what never changes is shared."""
    made: Project = _copy_project(project)
    return made


def _copier(kind: Any) -> Callable[[Any], Any] | None:
    """What copies a value of this annotation; None where it never changes."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (list, set):
        if _copier(parts[0]) is not None:
            raise TypeError(f"{kind}: what changes stands in a dict or in a field")
        return list.copy if origin is list else set.copy
    if origin is dict:
        item = _copier(parts[1])
        return dict.copy if item is None else lambda value: {key: item(each) for key, each in value.items()}
    if attrs.has(kind) and getattr(kind, "__hash__", None) is None:
        return _object_copier(kind)
    if any(_copier(part) is not None for part in parts if part is not Ellipsis):
        raise TypeError(f"{kind}: what changes stands in a dict or in a field")
    return None


def _object_copier(kind: type) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    names = [each.name for each in attrs.fields(kind)]
    values = attrgetter(*names)
    deep = [(place, copy) for place, name in enumerate(names) if (copy := _copier(hints[name])) is not None]

    def copy_object(value: Any) -> Any:
        found = list(values(value))
        for place, copy in deep:
            found[place] = copy(found[place])
        return kind(*found)

    return copy_object


def _classes(kind: Any, found: dict[str, type]) -> dict[str, type]:
    """Every attrs class that a value of this annotation may hold."""
    if attrs.has(kind) and kind.__name__ not in found:
        found[kind.__name__] = kind
        for hint in get_type_hints(kind).values():
            _classes(hint, found)
    for part in get_args(kind):
        _classes(part, found)
    return found


def _shape() -> str:
    fields = [
        f"{name}.{each.name}: {kind.__annotations__[each.name]} = {_default(each)}"
        for name, kind in sorted(_classes(Project, {}).items())
        for each in attrs.fields(kind)
    ]
    return sha256(repr([MEANING, fields]).encode()).hexdigest()[:16]


def _default(field: Any) -> str:
    made = field.default
    return str(made.factory.__qualname__) if isinstance(made, attrs.Factory) else repr(made)  # type: ignore[arg-type]  # a class, whatever its stub says


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda annotation: get_origin(annotation) is kind


def _make() -> Any:
    """Dicts keep their order, and their keys their type: pairs. Sets are sorted."""
    made = codec.converter()

    def dict_out(kind: Any) -> Callable[[Any], list[Any]]:
        out = made.get_unstructure_hook(get_args(kind)[1])
        return lambda value: [[key, out(each)] for key, each in value.items()]

    def dict_in(kind: Any) -> Callable[[Any, Any], dict[Any, Any]]:
        of_key, of_value = get_args(kind)
        key_in, value_in = made.get_structure_hook(of_key), made.get_structure_hook(of_value)
        return lambda value, _: {key_in(key, of_key): value_in(each, of_value) for key, each in value}

    made.register_unstructure_hook_factory(_is(dict), dict_out)
    made.register_structure_hook_factory(_is(dict), dict_in)
    made.register_unstructure_hook_factory(_is(set), lambda _: sorted)
    made.register_structure_hook(NoneType, lambda value, _: value)
    return made


_copy_project = _object_copier(Project)
_converter = _make()
#: Names the classes of the state, their fields and what `apply` means by them.
SHAPE = _shape()
