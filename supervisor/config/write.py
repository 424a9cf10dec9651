"""A `Fleet` as the text of an agents.toml, for what we write back. What a lower layer says is not said again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
import tomli_w

from supervisor.config.kinds import EITHER, built_in
from supervisor.config.values import UNLIMITED, show_duration, show_money, show_patience, show_resource
from supervisor.core.grants import Grant
from supervisor.core.spec import Declared, Fleet, KindSpec, Resources, Role, Spec
from supervisor.core.state import fold

_FLEET: Final = Fleet("")
_LIMITS: Final = {"depth": "depth", "agents": "agents_max", "forks_per_minute": "forks_per_minute"}


def dump(fleet: Fleet) -> str:
    """The text that `parse` reads as this fleet again, where no personal file lies under it. A fleet that was not
    parsed may hold what no text says: an agent without a variable, or a grant's number, that its role or the
    defaults have; there the text says what they have."""
    roles = {fold(role.name): role for role in fleet.roles}
    project = {"name": fleet.name} | ({"agent_talk": fleet.agent_talk} if fleet.agent_talk != _FLEET.agent_talk else {})
    limits = {
        key: getattr(fleet, name) for key, name in _LIMITS.items() if getattr(fleet, name) != getattr(_FLEET, name)
    }
    tables: dict[str, Any] = {
        "project": project,
        "limits": limits,
        "defaults": _spec(fleet.defaults, Spec(kind="")),
        "kinds": {kind.name: _kind(kind) for kind in fleet.kinds if not _is_built_in(kind)},
        "roles": {role.name: _role(role, fleet.defaults) for role in fleet.roles},
        "agents": {agent.name: _agent(agent, fleet.defaults, roles) for agent in fleet.agents},
    }
    given = {key: table for key, table in tables.items() if table}
    # In a multi-line string the writer takes every line end for a plain newline.
    return tomli_w.dumps(given, multiline_strings=not _returns(given))


def _returns(value: Any) -> bool:
    """Whether any text in the tables has a carriage return."""
    if isinstance(value, Mapping):
        return any(_returns(inner) for inner in value.values())
    return isinstance(value, str) and "\r" in value


def _is_built_in(kind: KindSpec) -> bool:
    """Whether it says no more than its protocol does: what that is, only the reader of the text knows."""
    return kind in built_in({kind.name: kind.once}) and not (kind.once and kind.name in EITHER)


def _kind(kind: KindSpec) -> dict[str, Any]:
    table: dict[str, Any] = {"protocol": kind.protocol}
    if kind.command:
        table["command"] = list(kind.command)
    if kind.stdio != "socket":
        table["stdio"] = kind.stdio
    if kind.once and kind.protocol in EITHER:
        table["once"] = True
    return table


def _role(role: Role, defaults: Spec) -> dict[str, Any]:
    table = _spec(attrs.evolve(role.spec, role=""), defaults)
    return _with_grant(table, role.grant, Grant())


def _agent(agent: Declared, defaults: Spec, roles: Mapping[str, Role], parent: Spec | None = None) -> dict[str, Any]:
    """The agent's own keys, over those of its role or of the defaults, and its children. A child that does not use the
    model that its parent does has to say so."""
    spec, role = agent.spec, roles.get(fold(agent.spec.role))
    base = attrs.evolve(role.spec if role else defaults, role="")
    table = _with_grant(_spec(spec, base), agent.grant, role.grant if role else Grant())
    if parent is not None and parent.model and parent.kind == spec.kind and not spec.model:
        table = {"model": ""} | table
    if agent.children:
        table["agents"] = {child.name: _agent(child, defaults, roles, spec) for child in agent.children}
    return table


def _spec(spec: Spec, base: Spec) -> dict[str, Any]:
    """The keys in which `spec` differs from what is below it."""
    table: dict[str, Any] = {}
    for key in (one.name for one in attrs.fields(Spec)):
        value, below = getattr(spec, key), getattr(base, key)
        if value == below or key == "model_from":
            continue
        if key == "env":
            value = {name: text for name, text in value if (name, text) not in below}
        elif key == "max_tasks" and value is None:
            value = UNLIMITED
        elif key == "stop_grace":
            value = show_duration(value)
        elif key in {"quiet_after", "quiet_kill"}:
            value = show_patience(value)
        elif key == "resources":
            value = _resources(value, below)
        table[key] = value
    return table


def _resources(value: Resources, below: Resources) -> dict[str, Any]:
    names = [one.name for one in attrs.fields(Resources) if getattr(value, one.name) != getattr(below, one.name)]
    return {name: show_resource(name, getattr(value, name)) for name in names}


def _with_grant(table: dict[str, Any], grant: Grant, base: Grant) -> dict[str, Any]:
    """The table with what its grant has over the role's, last: the writer makes a table of its own of it."""
    given: dict[str, Any] = {}
    for key in (one.name for one in attrs.fields(Grant)):
        value = getattr(grant, key)
        if value is None or value == getattr(base, key):
            continue
        if key == "cost":
            value = show_money(value)
        elif key == "wall":
            value = show_duration(value)
        given[key] = list(value) if isinstance(value, tuple) else value
    return {**table, "grant": given} if given else table
