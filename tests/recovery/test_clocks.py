"""A clock that is set, or a machine that slept, changes time stamps and nothing else: nothing is decided by the time of
day, but when a park ends, which people read as one (`tests/limits/test_alarms.py`)."""

from __future__ import annotations

from copy import deepcopy
from random import Random

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.core import facts, requests
from supervisor.core.facts import Fact
from supervisor.core.refusals import Refusal
from supervisor.core.requests import Request
from supervisor.core.state import Project
from tests.core import anything
from tests.core.play import OPERATOR, Play, accept

#: Where a clock may be set to: long ago, far ahead, and by fractions.
TIMES = st.floats(-1e11, 1e11, allow_nan=False)
STEPS = 40


def steps(rnd: Random) -> list[Request | Fact]:
    """A life of a project: what is asked and what happens, drawn while it is played once."""
    play = Play()
    taken: list[Request | Fact] = [accept(anything.GOOD)]
    _one(play, taken[0])
    for _ in range(STEPS):
        node = rnd.choice([*play.project.agents.values()])
        which = rnd.randrange(8)
        step: Request | Fact
        if which < 3:
            step = anything.request(rnd, node.name)
        elif which == 3:
            step = facts.Opened("2", "warden")
        elif which == 4:
            step = requests.Instruct(node.name, "Go on.")
        else:
            step = anything.observation(rnd, node.id, node.run, limits=False)
        taken.append(step)
        _one(play, step)
    return taken


def _one(play: Play, step: Request | Fact) -> list[Fact] | Refusal:
    return play.tell(step) if isinstance(step, facts.Fact) else play.ask(step, OPERATOR)


def timeless(project: Project) -> Project:
    """The state without its time stamps."""
    bare = deepcopy(project)
    for node in bare.agents.values():
        node.born = node.since = 0.0
        node.until = None
    return bare


@settings(max_examples=60)
@given(st.randoms(use_true_random=True), st.lists(TIMES, min_size=STEPS + 1, max_size=STEPS + 1))
def test_a_clock_that_jumps_decides_nothing(rnd: Random, times: list[float]) -> None:
    life = steps(rnd)
    steady, jumping = Play(), Play()
    for step, at in zip(life, times, strict=True):
        jumping.stamp = evolve(jumping.stamp, at=at)
        assert _one(steady, step) == _one(jumping, step)
        assert timeless(steady.project) == timeless(jumping.project)
