"""What all projects of a daemon share about the logins of their agents."""

from __future__ import annotations

from attrs import field, frozen

from supervisor.runtime.breakers import Breakers
from supervisor.runtime.starts import Starts


@frozen
class Logins:
    """The key that logins are told apart by, the order of starts, and what tells projects of stopped logins."""

    key: bytes = field(repr=False)
    starts: Starts
    breakers: Breakers
