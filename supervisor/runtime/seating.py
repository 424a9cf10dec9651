"""What a run of an agent is started with: its seat, its program's argv, its environment and files. It reads the agent's
`env_file` and `instructions`, writes into the agent's home alone, and starts nothing."""

from __future__ import annotations

import os
from pathlib import Path

from attrs import evolve, field, frozen

from supervisor.core import facts, models, rights
from supervisor.core.facts import Starting
from supervisor.core.spec import KindSpec, Spec
from supervisor.core.state import Node, Project
from supervisor.kinds.kind import Kind, Launch, Seat
from supervisor.kinds.table import KINDS
from supervisor.runtime import credential, environment

#: The longest `instructions` (bytes): far more than a model takes.
INSTRUCTIONS = 1 << 20


@frozen
class Seating:
    """One run's, before it begins."""

    kind: KindSpec
    program: Kind
    seat: Seat
    launch: Launch
    environment: dict[str, str] = field(repr=False)  # secrets are in it
    model_from: str
    tools_from: str
    credential: str

    def started(self, pid: int, start: int) -> facts.Started:
        """The fact of its process."""
        seat = self.seat
        return facts.Started(
            seat.agent, seat.run, pid, start, self.credential,
            seat.spec.model, self.model_from, seat.tools, self.tools_from,
        )  # fmt: skip


def kind_of(project: Project, name: str) -> KindSpec:
    """The kind of that name. Raises FileNotFoundError."""
    kind = next((kind for kind in project.fleet.kinds if kind.name == name), None) if project.fleet else None
    if kind is None or kind.protocol not in KINDS:
        raise FileNotFoundError(f"the kind {name!r} is not declared any more")
    return kind


def seat(project: Project, node: Node, home: Path, fact: Starting | None = None) -> tuple[Seat, str, str]:
    """The seat of a run to be started, or of the one that was last; and whose word model and tools are."""
    model, model_from = models.chosen(project, node)
    tools, tools_from = models.tools(project, node)
    run, resume = (fact.run, fact.resume) if fact is not None else (node.run, bool(node.session))
    spec = evolve(node.spec, model=model)
    once = project.once(node)
    return Seat(node.id, run, node.name, node.session, resume, str(home), spec, tools, once), model_from, tools_from


def prepare(
    project: Project, node: Node, fact: Starting, home: Path, *, instance: int, tools: str, key: bytes
) -> Seating:
    """All that a run needs. Raises OSError: a file that cannot be read, or a model that is not the agent's to use."""
    kind = kind_of(project, node.spec.kind)
    program = KINDS[kind.protocol]
    seated, model_from, tools_from = seat(project, node, home, fact)
    if not rights.allows(project, node, "models", seated.spec.model) and seated.spec.model:
        raise PermissionError(f"the model {seated.spec.model} is not among those it holds")
    seated = evolve(seated, instructions=_instructions(node.spec))
    launch = program.launch(kind, seated)
    for name, text in launch.files:
        _write(home / name, text)
    built = _environment(project, node, program, dict(launch.env), tools)
    built["FLEET_AGENT"] = f"{instance}:{node.id}"
    told = credential.fingerprint(key, program, built, seated.spec.model)
    return Seating(kind, program, seated, launch, built, model_from, tools_from, told)


def login(project: Project, node: Node, *, tools: str, key: bytes) -> str:
    """The login that the agent's next run has. Raises OSError."""
    program = KINDS[kind_of(project, node.spec.kind).protocol]
    model, _ = models.chosen(project, node)
    return credential.fingerprint(key, program, _environment(project, node, program, {}, tools), model)


def _environment(project: Project, node: Node, program: Kind, own: dict[str, str], tools: str) -> dict[str, str]:
    allowed = rights.effective(project, node, "env")
    return environment.build(
        os.environ,
        allowed if isinstance(allowed, tuple) else None,
        environment.needs(program, KINDS.values()),
        own | given(node.spec),
        project.path,
        tools,
    )


def _instructions(spec: Spec) -> str:
    """What the agent is told as a system prompt. Raises OSError."""
    if not spec.instructions:
        return ""
    with Path(spec.instructions).open("rb") as file:
        text = file.read(INSTRUCTIONS + 1)
    if len(text) > INSTRUCTIONS:
        raise OSError(f"{spec.instructions} is larger than {INSTRUCTIONS} bytes")
    return text.decode("utf-8", "replace")


def _write(file: Path, text: str) -> None:
    """As a whole or not at all, for the person alone: an agent that runs may be reading the one before."""
    fresh = file.with_name(f"{file.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.touch(0o600, exist_ok=False)
    fresh.write_text(text, "utf-8")
    fresh.replace(file)


def given(spec: Spec) -> dict[str, str]:
    """The variables that a person gave the agent: `env`, and over it `env_file`. Raises OSError."""
    return dict(spec.env) | (environment.read_file(spec.env_file) if spec.env_file else {})
