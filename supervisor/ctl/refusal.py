"""A refusal in words: what was said, and the command that would help. It invents no reason."""

from __future__ import annotations

from supervisor.core import units
from supervisor.ctl.outcome import BAD_CONFIG, REFUSED, Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_KEYS = ("code", "field", "asked", "held", "used", "reserved", "ask", "message")
#: Grant fields whose option has another name.
_OPTION = {
    "tools": "--tool",
    "models": "--allow-model",
    "kinds": "--allow-kind",
    "fork": "--may-fork",
}
_NUMBERS = ("tokens", "turns", "descendants", "children", "depth")


def refused(data: Mapping[str, Any], words: str) -> Failure:
    """The failure for an answer no; broken configuration has its own exit code."""
    message = str(data.get("message") or words)
    problems = data.get("problems")
    if problems or data.get("code") == "config":
        lines = [_problem(each) for each in problems or ()]
        return Failure(BAD_CONFIG, message, *lines, shape={"refused": dict(data)})
    shape = {"refused": {**{key: str(data.get(key, "")) for key in _KEYS}, **data, "message": message}}
    return Failure(REFUSED, f"refused: {message}", _books(data), _remedy(data), shape=shape)


def _problem(each: object) -> str:
    if not isinstance(each, dict):
        return str(each)
    at = ":".join(str(each[key]) for key in ("file", "line") if each.get(key))
    parts = [part for part in (at, str(each.get("key") or ""), str(each.get("message") or "")) if part]
    remedy = each.get("remedy")
    return ": ".join(parts) + (f" ({remedy})" if remedy else "")


def _books(data: Mapping[str, Any]) -> str:
    """The numbers behind a refused budget, on one line."""
    told = [(key, str(data.get(key) or "")) for key in ("asked", "held", "used", "reserved")]
    if data.get("code") != "budget":
        return ""
    return f"{data.get('field', '')}: " + ", ".join(f"{key} {value}" for key, value in told if value)


def _remedy(data: Mapping[str, Any]) -> str:
    ask = str(data.get("ask") or "")
    if not ask or "supervisorctl" in ask:
        return f"ask {ask}" if ask else ""
    who = "a person can allow it" if ask == "operator" else f"ask {ask}"
    option = _option(data)
    agent = str(data.get("agent") or "AGENT")
    return f"{who}: supervisorctl grant {agent} {option}" if option else who


def _option(data: Mapping[str, Any]) -> str:
    """The grant option that would have let it pass, its value included; "" where a grant cannot help."""
    field, asked, code = (str(data.get(key) or "") for key in ("field", "asked", "code"))
    if code == "rights" and field in _OPTION:
        values = [asked] if field == "fork" else asked.split(", ")
        return " ".join(f"{_OPTION[field]} {value}" for value in values if value)
    if code not in {"budget", "bound"}:
        return ""
    try:
        if field in _NUMBERS:
            return f"--{field} {units.show_count(_enough(data, units.count))}"
        if field == "cost":
            return f"--cost {_enough(data, units.money) / 10**9:.2f}"
        if field == "wall":
            return f"--wall {asked}"
    except ValueError:
        pass  # numbers in a form of a newer daemon: better no advice than a wrong one
    return ""


def _enough(data: Mapping[str, Any], number: Callable[[str], int]) -> int:
    """What must be held for the request to pass. Shown numbers are rounded, so their sum is rounded up."""
    texts = [str(data.get(key) or "0") for key in ("asked", "used", "reserved")]
    total = sum(number(text) for text in texts)
    if all(text.isdigit() for text in texts):
        return total
    step: int = 10 ** max(0, len(str(total)) - 2)
    return -(-(total + total // 200) // step) * step
