"""Thousands of agents cost what thousands of agents do, not thousands of thousands: counted in lines that run, which no
busy machine can change."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from supervisor.core import facts, spending, view
from supervisor.core.grants import Grant
from supervisor.core.ledger import Report, Usage
from supervisor.core.requests import Disband, Down, Fork, Instruct
from tests.core.play import OPERATOR, Play, accept, agent, fleet

FEW, MANY = 40, 320


def lines_run(do: Callable[[], object]) -> int:
    """How many lines of the core run, each turn of a loop counted."""
    counted = 0

    def trace(frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal counted
        if "/supervisor/core/" not in frame.f_code.co_filename and not frame.f_code.co_filename.startswith("<"):
            return None
        counted += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        do()
    finally:
        sys.settrace(before)
    return counted


class Alone(Play):
    """Without a twin: only the core runs."""

    def __init__(self, many: int) -> None:
        content = fleet(
            agent("lead", grant=Grant(tokens=10**9, turns=10**9, descendants=10**6)), forks_per_minute=10**6
        )
        super().__init__(content, each=lambda *_: None)
        self.many = many

    def _take(self, facts: Any, moment: Any) -> Any:
        from supervisor.core.decide.gate import take

        taken = take(self.project, facts, moment)
        self.twin = self.project
        return taken

    def fork_all(self) -> None:
        for number in range(self.many):
            self.facts(Fork("Go.", kind="lines", name=f"n{number}", parent="a1", grant=Grant(tokens=10)))

    def ready_all(self) -> None:
        self.ready(*[f"a{number + 2}" for number in range(self.many)])

    def spend_all(self) -> None:
        for number in range(self.many):
            reports = tuple(Report("call", Usage(input=1), id=f"c{index}") for index in range(3))
            self.tell(facts.Spent(f"a{number + 2}", 1, reports))

    def end_all_turns(self) -> None:
        for number in range(self.many):
            self.end_turn(f"a{number + 2}")

    def disband_lead(self) -> None:
        self.facts(Disband("a1"))
        for number in range(self.many):
            self.exit(f"a{number + 2}")
        self.exit("a1")

    def disband_each(self) -> None:
        for number in range(self.many):
            self.facts(Disband(f"a{number + 2}"))
            self.exit(f"a{number + 2}")


def prepared(many: int, *steps: Callable[[Alone], None]) -> Alone:
    """The fleet after these steps."""
    play = Alone(many)
    for step in steps:
        step(play)
    return play


def crash(play: Alone) -> None:
    """Another daemon takes over."""
    play.reopen()


def look(play: Alone) -> None:
    """The whole tree is drawn and the usage listed."""
    view.tree(play.project, OPERATOR, "warden", 0.0)
    spending.spending(play.project, OPERATOR, 0.0)


def instruct_by_name(play: Alone) -> None:
    """Each is given a task by its name."""
    for number in range(play.many):
        play.facts(Instruct(f"n{number}", "Go."))


def reload_one(play: Alone) -> None:
    """A file with one change."""
    content = play.project.fleet
    assert content is not None
    play.facts(accept(fleet(*content.agents, agent("new"), forks_per_minute=10**6)))


def down(play: Alone) -> None:
    """All ends, and nothing was alive any more."""
    play.facts(Down())


@pytest.mark.parametrize(
    ("step", "before"),
    [
        (Alone.fork_all, ()),
        (Alone.ready_all, (Alone.fork_all,)),
        (Alone.spend_all, (Alone.fork_all, Alone.ready_all)),
        (Alone.end_all_turns, (Alone.fork_all, Alone.ready_all)),
        (Alone.disband_lead, (Alone.fork_all, Alone.ready_all)),
        (Alone.disband_each, (Alone.fork_all, Alone.ready_all)),
        (instruct_by_name, (Alone.fork_all, Alone.ready_all)),
        (crash, (Alone.fork_all, Alone.ready_all)),
        (look, (Alone.fork_all,)),
        (down, (Alone.fork_all,)),
        (reload_one, (Alone.fork_all,)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_eight_times_as_many_agents_cost_eight_times_as_much(
    step: Callable[[Alone], None], before: tuple[Callable[[Alone], None], ...]
) -> None:
    few, many = prepared(FEW, *before), prepared(MANY, *before)
    assert lines_run(lambda: step(many)) < 8.8 * lines_run(lambda: step(few))


def test_a_thousand_digests_are_handed_over_in_one_walk() -> None:
    def waiting(many: int) -> Alone:
        play = prepared(many, Alone.fork_all, Alone.ready_all)
        play.ready("a1")
        play.facts(Instruct("a1", "Wait for them."))
        play.end_all_turns()
        return play

    few, many = waiting(FEW), waiting(MANY)
    assert len(many.node("a1").inbox) == MANY
    assert lines_run(lambda: many.end_turn("a1")) < 8.8 * lines_run(lambda: few.end_turn("a1"))


def test_an_unchanged_part_of_a_file_costs_nothing() -> None:
    few, many = prepared(FEW, Alone.fork_all), prepared(MANY, Alone.fork_all)
    assert lines_run(lambda: reload_one(many)) < 1.2 * lines_run(lambda: reload_one(few))
