"""Starts come one after the other in the order of asking, so many at once, and none is held up for ever."""

from __future__ import annotations

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from supervisor.runtime.starts import PATIENCE, Starts


async def test_so_many_are_under_way_at_once_and_the_next_begins_when_one_is_ready_or_over(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    starts = Starts(2)
    begun: list[int] = []

    async def one(run: int) -> None:
        await starts.take("a1", run)
        begun.append(run)

    autojump_clock.autojump_threshold = float("inf")
    for run in range(1, 6):
        nursery.start_soon(one, run)
        await wait_all_tasks_blocked()
    assert begun == [1, 2]
    starts.free("a1", 2)
    starts.free("a1", 2)  # over, after it was ready
    await wait_all_tasks_blocked()
    assert begun == [1, 2, 3]
    starts.free("a1", 9)  # never began
    await wait_all_tasks_blocked()
    assert begun == [1, 2, 3]
    autojump_clock.jump(PATIENCE)  # neither ever said that it is ready
    await wait_all_tasks_blocked()
    assert begun == [1, 2, 3, 4, 5]


async def test_who_leaves_while_it_waits_takes_no_place(autojump_clock: MockClock) -> None:
    starts = Starts(1)
    await starts.take("a1", 1)
    with trio.move_on_after(PATIENCE / 2) as left:
        await starts.take("a2", 1)
    assert left.cancelled_caught
    starts.free("a1", 1)
    await starts.take("a3", 1)
    assert autojump_clock.autojump_threshold == 0
