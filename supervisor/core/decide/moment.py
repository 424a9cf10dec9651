"""What one batch may use up: the time it happens at and fresh ids, so that deciding stays a pure function of what is
passed in."""

from __future__ import annotations

from attrs import define

from supervisor.core.facts import Input, Queued, Sort
from supervisor.core.requests import Stamp
from supervisor.core.state import Node, Project
from supervisor.core.words import digest


@define
class Moment:
    """The stamp of a batch, and the ids that were given out within it."""

    stamp: Stamp
    number: int
    inputs: int

    @classmethod
    def of(cls, project: Project, stamp: Stamp) -> Moment:
        """The ids go on where the state and the stamp are."""
        return cls(stamp, max(stamp.number, project.highest + 1), project.inputs)

    def agent(self) -> str:
        """A new agent id."""
        self.number += 1
        return f"a{self.number - 1}"

    def input(self, sort: Sort, text: str, by: str, *, wake: bool = True) -> Input:
        """A new text for an agent."""
        self.inputs += 1
        return Input(f"m{self.inputs}", sort, text, by, wake)

    def tell(self, node: Node, text: str, *, wake: bool) -> list[Queued]:
        """A digest for an agent, unless it leaves."""
        if not node.live:
            return []
        return [Queued(node.id, self.input("digest", digest(text), "fleet", wake=wake))]
