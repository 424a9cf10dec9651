"""Facts to JSON values and back, exactly: the journal's vocabulary. Must never guess: an unknown name, an unknown
field, a missing field or a value of another type is an error that says where."""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from cattrs import Converter, transform_error

from supervisor.core.facts import Accepted, Born, Fact

#: Every fact by its name. A name that stood in a journal once stays here for ever.
FACTS: dict[str, type[Fact]] = {kind.__name__: kind for kind in get_args(Fact)}


class UnreadableError(ValueError):
    """A JSON value that is no fact of this version."""


def warm() -> None:
    """Make ready what is made once for each type of fact, for those that come in hundreds at once: it would be half of
    what the first such batch takes, and everybody waits for that."""
    for kind in (Accepted, Born):
        _converter.get_unstructure_hook(kind)


def dump(fact: Fact) -> dict[str, Any]:
    """The fact as JSON values, its name under `fact`; fields that have their default are left out."""
    raw: dict[str, Any] = _converter.unstructure(fact, type(fact))
    raw["fact"] = type(fact).__name__
    return raw


def load(raw: object) -> Fact:
    """The fact that `dump` gave. Raises UnreadableError with the fact's name and the field's path."""
    if not isinstance(raw, dict):
        raise UnreadableError(f"a fact is an object, not {raw!r:.60}")
    name = raw.get("fact")
    if not isinstance(name, str) or name not in FACTS:
        raise UnreadableError(f"{name!r:.60} is no fact that this version knows")
    fields = raw.copy()
    del fields["fact"]
    try:
        return _LOADERS[name](fields, FACTS[name])
    except Exception as error:
        said = "; ".join(transform_error(error, path=name, format_exception=_said))
        raise UnreadableError(said) from error


def _said(error: BaseException, _type: type | None) -> str:
    missing = isinstance(error, KeyError)
    return f"required field {error} is missing" if missing else str(error)


def _exactly(kind: type) -> Callable[[object, object], Any]:
    """A check where cattrs would convert: `"7"` is no number here, and `true` is no count."""

    def check(value: object, _: object) -> Any:
        if type(value) is not kind:
            raise TypeError(f"{value!r:.60} is no {kind.__name__}")
        return value

    return check


def _number(value: object, _: object) -> float:
    """JSON writes 10.0 as 10 in other hands; both are the number."""
    if type(value) is float or type(value) is int:
        return float(value)
    raise TypeError(f"{value!r:.60} is no float")


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple


def _tuples(kind: Any, converter: Converter) -> Callable[[object, object], tuple[Any, ...]]:
    """A list and nothing else is a tuple: a text is iterable too, and must not become its letters."""
    parts = get_args(kind)
    endless = len(parts) == 2 and parts[1] is Ellipsis

    def build(value: object, _: object) -> tuple[Any, ...]:
        if type(value) is not list:
            raise TypeError(f"{value!r:.60} is no list")
        if endless:
            item = parts[0]
            load_item = converter.get_structure_hook(item)  # kept by cattrs; a class may hold itself, so not earlier
            return tuple([load_item(each, item) for each in value])
        if len(value) != len(parts):
            raise TypeError(f"{len(value)} items where {len(parts)} belong")
        return tuple([converter.structure(each, part) for each, part in zip(value, parts, strict=True)])

    return build


def _is_choice(kind: Any) -> bool:
    """`int | str | None`, where JSON's own types tell the members apart. cattrs knows `int | None`."""
    parts = {*get_args(kind)} - {NoneType}
    return get_origin(kind) is UnionType and len(parts) > 1 and parts <= {str, int, float, bool}


def _choices(kind: Any, _: Converter) -> Callable[[object, object], Any]:
    parts = get_args(kind)

    def check(value: object, _: object) -> Any:
        if type(value) not in parts:
            raise TypeError(f"{value!r:.60} is none of {kind}")
        return value

    return check


def converter() -> Converter:
    """One that loads values of core classes exactly, or not at all; for more than facts, give it more hooks."""
    made = Converter(forbid_extra_keys=True, omit_if_default=True)
    for plain in (str, int, bool):
        made.register_structure_hook(plain, _exactly(plain))
    made.register_structure_hook(float, _number)
    made.register_unstructure_hook(float, float)
    made.register_structure_hook_factory(_is_tuple, _tuples)
    made.register_structure_hook_factory(_is_choice, _choices)
    return made


_converter = converter()
_LOADERS: dict[str, Callable[[Any, Any], Fact]] = {
    name: _converter.get_structure_hook(kind) for name, kind in FACTS.items()
}
