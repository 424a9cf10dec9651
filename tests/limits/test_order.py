"""Who shares a login starts alone while it is not known to be fresh: what comes of the first, the others see."""

from __future__ import annotations

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from supervisor.runtime.starts import FRESH, PATIENCE, Starts


class Wave:
    """Runs that take their places; `begun` is in order."""

    def __init__(self, starts: Starts, nursery: trio.Nursery) -> None:
        self.starts = starts
        self.begun: list[str] = []
        self._nursery = nursery

    async def start(self, *agents: str, login: str = "") -> None:
        for agent in agents:
            self._nursery.start_soon(self._one, agent, login)
            await wait_all_tasks_blocked()

    async def _one(self, agent: str, login: str) -> None:
        await self.starts.take(agent, 1, login)
        self.begun.append(agent)


async def test_one_starts_alone_with_a_login_and_the_others_when_it_is_ready(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    autojump_clock.autojump_threshold = float("inf")
    wave = Wave(Starts(16), nursery)
    await wave.start("a1", "a2", "a3", login="one")
    await wave.start("b1", "b2", login="two")
    await wave.start("c1", "c2")
    assert wave.begun == ["a1", "b1", "c1", "c2"], "logins do not wait for each other, and who has none for nobody"
    wave.starts.free("a1", 1, "one")
    await wait_all_tasks_blocked()
    assert wave.begun[4:] == ["a2", "a3"], "the login is fresh"
    await wave.start("a4", login="one")
    assert wave.begun[-1] == "a4"
    autojump_clock.jump(FRESH)
    await wave.start("a5", "a6", login="one")
    assert wave.begun[-2:] == ["b2", "a5"], "and is not so for ever"


async def test_one_that_ends_without_having_been_ready_is_followed_by_one(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    autojump_clock.autojump_threshold = float("inf")
    wave = Wave(Starts(16), nursery)
    await wave.start("a1", "a2", "a3", login="one")
    wave.starts.free("a1", 1)
    await wait_all_tasks_blocked()
    assert wave.begun == ["a1", "a2"]
    autojump_clock.jump(PATIENCE)  # it says nothing: no reason to hold up another
    await wait_all_tasks_blocked()
    assert wave.begun == ["a1", "a2", "a3"]


async def test_who_leaves_while_it_waits_for_a_login_holds_up_nobody(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    autojump_clock.autojump_threshold = float("inf")
    starts = Starts(1)
    await starts.take("a0", 1)
    with trio.CancelScope() as scope:
        scope.cancel()
        await starts.take("a1", 1, "one")
    assert scope.cancelled_caught
    starts.free("a0", 1)
    wave = Wave(starts, nursery)
    await wave.start("a2", login="one")
    assert wave.begun == ["a2"]
