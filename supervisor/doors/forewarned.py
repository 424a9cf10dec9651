"""What a person is warned of when a file is accepted: it is run as it is, but something in it will not go well. It
refuses nothing."""

from __future__ import annotations

from collections.abc import Iterator

from supervisor.core.private import looks_secret
from supervisor.core.spec import Declared, Fleet, Spec
from supervisor.doors.calls import Plain
from supervisor.runtime import programs

#: So many are told; of a fleet of thousands that lacks one program, a few say it.
TOLD = 20


def warnings(fleet: Fleet, path: str) -> list[Plain]:
    """One for each declared agent that could not start, and for each secret that stands where it is recorded. Looks at
    disks: not on the loop."""
    known: dict[object, programs.Missing | None] = {}
    found: list[Plain] = []
    for name, spec in _declared(fleet.agents):
        key = (spec.kind, spec.directory, spec.instructions, spec.env_file, spec.env)
        if key not in known:
            known[key] = programs.missing(fleet, spec, path)
        if (missing := known[key]) is not None:
            found.append({"where": name, "field": missing.field, "what": f"{name} cannot start: {missing.message}"})
    for where, spec in (*_declared(fleet.agents), *((f"role {role.name}", role.spec) for role in fleet.roles)):
        for variable in (variable for variable, _ in spec.env if looks_secret(variable)):
            what = f"env.{variable} looks like a secret, and values of env are recorded: move it to an env_file"
            found.append({"where": where, "field": f"env.{variable}", "what": f"{where}: {what}"})
    more = len(found) - TOLD
    rest = [{"where": fleet.name, "field": "", "what": f"and {more} more of these"}] if more > 0 else []
    return found[:TOLD] + rest


def _declared(agents: tuple[Declared, ...]) -> Iterator[tuple[str, Spec]]:
    for agent in agents:
        yield agent.name, agent.spec
        yield from _declared(agent.children)
