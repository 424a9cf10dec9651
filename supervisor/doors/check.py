"""What is checked of a request before anyone acts on it: its method, its parameters' names and shapes, and whether
its caller may ask at all. Never anything that needs the tree: that is the core's."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping

from supervisor.core.authority import TABLE, Nobody, Operator, Principal
from supervisor.core.refusals import refuse
from supervisor.core.units import LARGEST
from supervisor.doors.verbs import METHODS, Param, Shape, Verb
from supervisor.doors.wire import UNKNOWN, BadParams, WireError, brief

#: What every method takes beside its own: the project meant, and where the caller stands.
COMMON = (
    Param("project", "text", "the project: its name, id or file"),
    Param("cwd", "path", "the caller's directory"),
)
_TIMEOUT = Param("timeout", "duration", "give up waiting after this long")
_NANO = 10**9


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, "" if none is near. A long word is none of ours, and comparing it is
    slow."""
    if len(word) > 64:
        return ""
    return next(iter(difflib.get_close_matches(word.lower(), list(known), 1, 0.6)), "")


def method(name: str) -> Verb:
    """The verb of that name; the list is closed."""
    verb = METHODS.get(name)
    if verb is None:
        near = nearest(name, METHODS)
        hint = f"; did you mean {near!r}?" if near else ""
        raise WireError(UNKNOWN, f"unknown method {brief(name)}{hint}", {"method": brief(name), "nearest": near})
    return verb


def authority(principal: Principal, verb: Verb) -> None:
    """Raises RefusedError for who may not ask this whatever the tree is like."""
    if isinstance(principal, Nobody):
        raise refuse("nobody", f"the caller is nobody: {principal.why}", field="caller", asked=verb.name)
    if not isinstance(principal, Operator) and TABLE.get(verb.name, "operator") == "operator":
        message = f"{verb.name!r} is the operator's alone, the caller is agent {principal}"
        raise refuse("authority", message, field="verb", asked=verb.name, ask="operator")


def params(verb: Verb, given: Mapping[str, object]) -> None:
    """Raises BadParams for the first parameter that is unknown, of another shape, or missing."""
    known = {param.name: param for param in (*verb.params, *COMMON)}
    if verb.waits:
        known.setdefault("timeout", _TIMEOUT)
    for name, value in given.items():
        param = known.get(name)
        if param is None:
            near = nearest(name, known)
            hint = f"; did you mean {near!r}?" if near else ""
            raise BadParams(brief(name), f"{verb.name!r} has no parameter {brief(name)}{hint}", near)
        wrong = _misfit(param.shape, value)
        if wrong:
            raise BadParams(name, f"parameter {name!r} of {verb.name!r} {wrong}")
    for param in verb.params:
        if param.required and param.name not in given:
            raise BadParams(param.name, f"{verb.name!r} needs the parameter {param.name!r}")


def _misfit(shape: Shape, value: object) -> str:
    """What is wrong with the value, "" if nothing is. Nothing is coerced: `true` is no number, "7" is no count."""
    match shape:
        case "count":
            return _number(value, LARGEST, "count")
        case "money":
            return _number(value, LARGEST * _NANO, "sum in whole nano-USD")
        case "duration":
            return _seconds(value)
        case "flag":
            return "" if isinstance(value, bool) else "must be true or false"
        case "texts":
            if not isinstance(value, list):
                return "must be a list of strings"
            return next(filter(None, map(_text, value)), "")
        case _:
            return _text(value)


def _number(value: object, largest: int, what: str) -> str:
    if type(value) is not int:
        return f"must be a {what}, as a number without a fraction"
    return "" if 0 <= value <= largest else f"must be a {what} from 0 to {largest}"


def _seconds(value: object) -> str:
    if type(value) not in (int, float):
        return "must be a duration, as a number of seconds"
    seconds = float(value)  # type: ignore[arg-type]  # one of the two types, and no bool
    return (
        "" if math.isfinite(seconds) and 0 <= seconds <= LARGEST else f"must be a duration from 0 to {LARGEST} seconds"
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        return "must be a string"
    # No path, argument or environment can hold one: it would fail far from its cause.
    return "must not hold a NUL character" if "\0" in value else ""
