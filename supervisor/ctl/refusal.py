"""A refusal in words: what was said, and the command that would help. It invents no reason."""

from __future__ import annotations

from supervisor.core import units
from supervisor.ctl.outcome import BAD_CONFIG, REFUSED, Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_KEYS = ("code", "field", "asked", "held", "used", "reserved", "ask", "message")
#: Grant fields whose option has another name.
_OPTION = {
    "tools": "--tool",
    "models": "--allow-model",
    "kinds": "--allow-kind",
    "fork": "--may-fork",
}
_COUNTS = ("tokens", "turns", "descendants", "children", "depth")


def refused(data: Mapping[str, Any], words: str) -> Failure:
    """The failure for an answer no; broken configuration has its own exit code."""
    message = str(data.get("message") or words)
    problems = data.get("problems")
    if problems or data.get("code") == "config":
        lines = [_problem(each) for each in problems or ()]
        return Failure(BAD_CONFIG, message, *lines, shape={"refused": dict(data)})
    shape = {"refused": {**dict.fromkeys(_KEYS, ""), **data, "message": message}}
    return Failure(REFUSED, f"refused: {message}", _books(data), _remedy(data), shape=shape)


def _problem(each: object) -> str:
    """One fault of an agents.toml: where, what, and what to do."""
    if not isinstance(each, dict):
        return str(each)
    at = ":".join(str(each[key]) for key in ("file", "line") if each.get(key))
    parts = [part for part in (at, str(each.get("key") or ""), str(each.get("message") or "")) if part]
    remedy = each.get("remedy")
    return ": ".join(parts) + (f" ({remedy})" if remedy else "")


def shown(field: str, value: object) -> str:
    """A number of a refusal or a grant as people write it: counts are whole, cost is in USD, wall in seconds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if field == "cost":
        return units.show_money(round(value * 10**9))
    return units.show_duration(value) if field == "wall" else units.show_count(int(value))


def _books(data: Mapping[str, Any]) -> str:
    """The numbers behind a refused budget, on one line."""
    if data.get("code") not in {"budget", "bound"}:
        return ""
    field = str(data.get("field") or "")
    told = [(key, data.get(key)) for key in ("asked", "held", "used", "reserved")]
    return f"{field}: " + ", ".join(f"{key} {shown(field, value)}" for key, value in told if value not in (None, ""))


def _remedy(data: Mapping[str, Any]) -> str:
    ask = str(data.get("ask") or "")
    if data.get("code") == "disk":
        return "make room there; what ends or renames something goes on"
    if not ask or "supervisorctl" in ask:
        return f"ask {ask}" if ask else ""
    who = "a person can allow it" if ask == "operator" else f"ask {ask}"
    option = _option(data)
    agent = str(data.get("holder") or "AGENT")
    return f"{who}: supervisorctl grant {agent} {option}" if option else who


def _option(data: Mapping[str, Any]) -> str:
    """The grant option that would have let it pass, its value included; "" where a grant cannot help."""
    field, code, asked = str(data.get("field") or ""), data.get("code"), data.get("asked")
    if code == "rights" and field in _OPTION and isinstance(asked, str):
        values = [asked] if field == "fork" else asked.split(", ")
        return " ".join(f"{_OPTION[field]} {value}" for value in values if value)
    if code not in {"budget", "bound"} or isinstance(asked, bool) or not isinstance(asked, (int, float)):
        return ""
    total = sum(value for key in ("asked", "used", "reserved") if isinstance(value := data.get(key), (int, float)))
    if field in _COUNTS:
        return f"--{field} {_count(int(total))}"
    if field == "cost":
        return f"--cost {-(-round(total * 10**4) // 100) / 100:.2f}"
    return f"--wall {units.show_duration(asked)}" if field == "wall" else ""


def _count(number: int) -> str:
    """Enough, in two digits: what is shown is typed again."""
    step = 1 if number < 1000 else 10 ** (len(str(number)) - 2)
    return units.show_count(-(-number // step) * step)
