"""What a desk says to what it was asked."""

from __future__ import annotations

import trio
from attrs import define, field

from supervisor.core.facts import Born, Fact
from supervisor.core.refusals import Refusal


@define
class Answer:
    """What a request came to, be it a refusal. It may be told once `durable` is set: `facts` and `seq` are final then,
    and a refusal is on record."""

    refusal: Refusal | None = None
    facts: tuple[Fact, ...] = ()
    seq: int = 0
    size: int = 0  #: what it takes in the journal, in bytes
    durable: trio.Event = field(factory=trio.Event)

    @property
    def born(self) -> list[Born]:
        """The agents that it brought."""
        return [fact for fact in self.facts if isinstance(fact, Born)]
