"""Which refusals are put on record: all of a person's or a program's, but not all of a loop's. What is not is counted
with the next that is."""

from __future__ import annotations

from collections import Counter

import trio
from attrs import evolve

from supervisor.core.facts import Refused
from supervisor.core.refusals import Refusal
from supervisor.runtime.allowance import Allowance

#: Equal refusals within this many seconds share one record.
SAME = 1.0
#: Of one caller so many different ones are put on record at once, and so many a second.
BURST, RATE = 20, 2
#: A caller's words stand in a record up to this length.
LONGEST = 200
#: So many refusals and callers are remembered.
REMEMBERED = 1000


class Refusals:
    """Remembers what each caller was refused lately."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, Refused], float] = {}
        self._spare: dict[str, Allowance] = {}
        self._untold: Counter[str] = Counter()

    @property
    def unrecorded(self) -> int:
        """How many are not on record yet."""
        return self._untold.total()

    def take(self, by: str, verb: str, refusal: Refusal) -> Refused | None:
        """The fact to record, or None."""
        fact = Refused(verb, **{name: _clip(value) for name, value in refusal.plain().items()})  # type: ignore[arg-type]  # the same fields by construction
        now = trio.current_time()
        if len(self._last) > REMEMBERED:
            self._last.clear()
        if len(self._spare) > REMEMBERED:
            self._spare.clear()
        again = now - self._last.get((by, fact), -SAME) < SAME
        if again or not self._spare.setdefault(by, Allowance(BURST, RATE)).spare(1):
            self._untold[by] += 1
            return None
        self._last[by, fact] = now
        return evolve(fact, times=1 + self._untold.pop(by, 0))


def _clip(value: object) -> object:
    return value[: LONGEST - 1] + "…" if isinstance(value, str) and len(value) > LONGEST else value
