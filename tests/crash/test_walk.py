"""The daemon dies at every moment of every verb, under its warden: what comes back is the tree that was wanted, each
agent with one process and its conversation, every text given once, every cost counted once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from supervisor.conformance.__main__ import ERRAND, LIMIT, TASK
from supervisor.conformance.examine import scripted
from supervisor.conformance.lives import Lives
from supervisor.conformance.walk import LIMITS, VERBS, Subject, Walk, walked
from supervisor.runtime.points import POINTS

SUBJECT = Subject("scripted", TASK, scripted, limit=LIMIT)
#: At least so many moments are between asking and the end of what was asked; what is decided at once may share one.
LEAST_ERRAND = {"fork": 30, "instruct": 30, "stop": 6, "restart": 4, "disband": 7, "recover": 5}
LEAST = {"fork": 30, "instruct": 18, "stop": 10, "restart": 18, "disband": 16, "recover": 26, "park": 15, "wake": 15}


@pytest.mark.parametrize("verb", VERBS + LIMITS)
def test_whatever_moment_the_daemon_dies_at_the_fleet_comes_back_whole(tier: str, verb: str, tmp_path: Path) -> None:
    with Lives(tmp_path, tier, os.environ) as lives:
        walk = walked(lives, SUBJECT, verb)
    assert walk.wrong == []
    assert walk.missed == []
    assert len(walk.walked) >= LEAST[verb], walk.walked


@pytest.mark.parametrize("verb", VERBS)
def test_one_that_stands_by_without_a_process_comes_back_without_one(tier: str, verb: str, tmp_path: Path) -> None:
    with Lives(tmp_path, tier, os.environ) as lives:
        walk = walked(lives, ERRAND, verb)
    assert walk.wrong == []
    assert walk.missed == []
    assert len(walk.walked) >= LEAST_ERRAND[verb], walk.walked


def test_every_named_moment_is_walked(tmp_path: Path) -> None:
    with Lives(tmp_path, "warden", os.environ) as lives:
        walk = Walk(lives, SUBJECT)
        walk.begin()
        passed = {moment.split()[0] for verb in VERBS for moment in walk.moments(verb)}
    assert passed == set(POINTS)


def test_what_is_not_armed_dies_of_nothing(tmp_path: Path) -> None:
    with Lives(tmp_path, "warden", os.environ) as lives:
        walk = Walk(lives, SUBJECT)
        walk.begin()
        daemon = lives.pid
        for verb in ("fork", "instruct", "stop", "restart", "disband"):
            walk.moments(verb)
        assert lives.pid == daemon
        assert walk.wrong == []


def test_a_moment_that_does_not_come_is_said(tmp_path: Path) -> None:
    with Lives(tmp_path, "warden", os.environ) as lives:
        lives.arm("acted Nothing 1")
        assert not lives.died(0.1)
