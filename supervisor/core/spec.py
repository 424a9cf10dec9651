"""What is declared: kinds, roles, agents and the fleet of one project, as plain values without defaults of their own
file."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen

from supervisor.core.grants import Grant

Restart = Literal["never", "on-failure", "always"]
Resume = Literal["stand", "continue"]
Stdio = Literal["socket", "pipe"]
Wall = Literal["mains", "instance", "project"]


@frozen
class KindSpec:
    """A program an agent can be. `protocol` names the module under `kinds/` that speaks with it; `command` is
    argv, empty for a kind that knows its own. `once` is a program that does one task and ends: its agent stands by
    without a process."""

    name: str
    protocol: str
    command: tuple[str, ...] = ()
    stdio: Stdio = "socket"
    once: bool = False


@frozen
class Resources:
    """What of the machine an agent may use together with all below it; None is no limit. `memory` is in bytes, `cpu` in
    percent of one processor, `processes` counts threads too, as the kernel does."""

    memory: int | None = None
    cpu: int | None = None
    processes: int | None = None


@frozen
class Spec:
    """How an agent is started and kept. Paths are absolute; no `max_tasks` is no limit. `stop_grace` is in seconds; so
    are `quiet_after`, the silence in a turn after which people are shown it, and `quiet_kill`, after which the run is
    ended (0 is never)."""

    kind: str
    role: str = ""
    description: str = ""
    directory: str = ""
    model: str = ""
    task: str = ""
    instructions: str = ""
    env: tuple[tuple[str, str], ...] = ()
    env_file: str = ""
    max_tasks: int | None = None
    replace: bool = False
    restart: Restart = "never"
    resume: Resume = "stand"
    stop_grace: float = 10.0
    resources: Resources = Resources()
    quiet_after: float = 600.0
    quiet_kill: float = 0.0
    #: whose word `model` is, for people: no other agent for being told by another
    model_from: str = field(default="", eq=False)


@frozen
class Declared:
    """An agent of `agents.toml`, with its declared children."""

    name: str
    spec: Spec
    grant: Grant = Grant()
    children: tuple[Declared, ...] = ()


@frozen
class Role:
    """A template for a fork; its grant is asked for, never given."""

    name: str
    spec: Spec
    grant: Grant = Grant()


@frozen
class Fleet:
    """One project's content as accepted. `depth` caps the tree (at most 64: nested nurseries fail at about 329)."""

    name: str
    agents: tuple[Declared, ...] = ()
    roles: tuple[Role, ...] = ()
    kinds: tuple[KindSpec, ...] = ()
    defaults: Spec = Spec(kind="lines")
    agent_talk: Wall = "mains"
    depth: int = 32
    agents_max: int = 3000
    forks_per_minute: int = 120

    def once(self, kind: str) -> bool:
        """Whether this is a kind whose program does one task and ends."""
        return any(each.once for each in self.kinds if each.name == kind)
