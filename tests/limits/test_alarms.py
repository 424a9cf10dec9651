"""A time comes when the clock on the wall shows it, and no later than it was said to be away."""

from __future__ import annotations

import trio
from attrs import define
from trio.testing import MockClock

from supervisor.runtime.alarms import PIECE, Alarms

#: As the clock on the wall shows it at the beginning.
NOON = 1_760_000_000.0


@define
class Clocks:
    """Both go with trio's; the one on the wall can be set, and both go on while the machine sleeps."""

    set: float = 0.0
    slept: float = 0.0

    def __call__(self) -> tuple[float, float]:
        gone = trio.current_time() + self.slept
        return NOON + gone + self.set, 1000.0 + gone


async def rung(clocks: Clocks, nursery: trio.Nursery, ahead: float) -> trio.Event:
    """An alarm so many seconds ahead."""
    alarms, event = Alarms(clocks), trio.Event()
    nursery.start_soon(alarms.run)
    alarms.set("agent", clocks()[0] + ahead, event.set)
    return event


async def seconds(event: trio.Event) -> float:
    """How long it takes until it rings."""
    since = trio.current_time()
    await event.wait()
    return trio.current_time() - since


async def test_it_rings_at_its_time(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    assert round(await seconds(await rung(Clocks(), nursery, 500.0)), 3) == 500
    assert await seconds(await rung(Clocks(), nursery, -5.0)) == 0
    assert autojump_clock.autojump_threshold == 0


async def test_a_sleep_of_the_machine_counts(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    clocks = Clocks()
    event = await rung(clocks, nursery, 3600.0)
    await trio.lowlevel.checkpoint()
    clocks.slept = 3500.0
    assert await seconds(event) <= 100 + PIECE
    assert autojump_clock.autojump_threshold == 0


async def test_a_clock_that_is_set_forward_brings_the_time(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    clocks = Clocks()
    event = await rung(clocks, nursery, 86_400.0)
    await trio.lowlevel.checkpoint()
    clocks.set = 90_000.0
    assert await seconds(event) <= PIECE
    assert autojump_clock.autojump_threshold == 0


async def test_a_clock_that_is_set_back_makes_nobody_wait_longer(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    clocks = Clocks()
    event = await rung(clocks, nursery, 600.0)
    await trio.lowlevel.checkpoint()
    clocks.set = -1e7
    assert round(await seconds(event), 3) == 600
    assert autojump_clock.autojump_threshold == 0


async def test_what_is_set_again_is_moved_and_rings_once(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    clocks, rings = Clocks(), list[str]()
    alarms = Alarms(clocks)
    nursery.start_soon(alarms.run)
    alarms.set("a", NOON + 10, lambda: rings.append("early"))
    alarms.set("b", NOON + 20, lambda: rings.append("other"))
    alarms.set("a", NOON + 30, lambda: rings.append("late"))
    await trio.sleep(2 * PIECE)
    assert rings == ["other", "late"]
    assert autojump_clock.autojump_threshold == 0


async def test_nothing_is_looked_at_while_nothing_is_set(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    looked: list[float] = []
    clocks = Clocks()

    def look() -> tuple[float, float]:
        looked.append(trio.current_time())
        return clocks()

    nursery.start_soon(Alarms(look).run)
    await trio.sleep(10 * PIECE)
    assert set(looked) == {0.0}
    assert autojump_clock.autojump_threshold == 0
