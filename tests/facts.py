"""Values of every fact and of the state, made from the fields that a class declares."""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs
from hypothesis import strategies as st

from supervisor.core.facts import Fact

#: Any text that can come from outside: bytes that are no UTF-8 stand as lone surrogates (an argv, a file name).
TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\udc80\udcff\0\x1b\n\u2028\U0001f600"))
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: st.integers(-(2**63), 2**63),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    NoneType: st.none(),
    None: st.none(),  # as it stands in `dict[str, None]`
}


@cache  # a class that holds itself needs the same strategy again
def values(kind: Any) -> st.SearchStrategy[Any]:
    """Every value of an annotation as it is used for fields of facts and of the state."""
    if kind is None or kind is type(None):
        return st.none()
    if kind in _PLAIN:
        return _PLAIN[kind]
    parts = get_args(kind)
    if get_origin(kind) is Literal:
        return st.sampled_from(parts)
    if get_origin(kind) in (Union, UnionType):
        return st.one_of([values(part) for part in parts])
    if get_origin(kind) is tuple:
        if parts[1:] == (Ellipsis,):
            return st.lists(st.deferred(lambda: values(parts[0])), max_size=2).map(tuple)
        return st.tuples(*map(values, parts))
    if get_origin(kind) is dict:
        return st.dictionaries(values(parts[0]), values(parts[1]), max_size=2)
    if get_origin(kind) in (list, set):
        return st.lists(values(parts[0]), max_size=2, unique=get_origin(kind) is set).map(get_origin(kind))
    assert attrs.has(kind), f"no values are known for {kind}"
    hints = get_type_hints(kind)
    return st.builds(kind, **{each.name: values(hints[each.name]) for each in attrs.fields(kind)})


def all_facts() -> tuple[type, ...]:
    """The class of every fact."""
    return get_args(Fact)
