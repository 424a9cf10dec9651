"""What comes between two moments of the runtime: a project of real processes in this one, asked without a pause."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from supervisor.core import facts
from supervisor.core.authority import Operator
from supervisor.core.requests import Fork, Restarting, Start, Stop, Up
from supervisor.core.spec import Declared, Fleet, KindSpec, Spec
from supervisor.core.state import Node
from supervisor.runtime.containment.contain import contain
from supervisor.runtime.containment.reaper import reap
from supervisor.runtime.projects import Projects, Room
from tests.house import PATIENCE, below, eventually


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    """A project with one agent, which stands by."""
    instance = secrets.randbelow(2**30) + 1
    containment = contain(instance, "warden")
    state = tmp_path / "state"
    state.mkdir()
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(reap, containment)
            projects = Projects(state, containment, instance, str(tmp_path), nursery)
            room = projects.open("t-12345678")
            spec = Spec(kind="sleep", directory=str(tmp_path), stop_grace=5.0)
            fleet = Fleet("t", (Declared("lead", spec),), kinds=(KindSpec("sleep", "lines", ("sleep", "1000")),))
            room.desk.ask(Operator(), Up("/t/agents.toml", "", os.environ["PATH"], fleet))
            await standing(room)
            yield room
            with trio.fail_after(PATIENCE):
                await projects.close()
            nursery.cancel_scope.cancel()
        await projects.settle()
    finally:
        containment.close()


def lead(room: Room) -> Node:
    return room.project.agents["a1"]


async def standing(room: Room) -> None:
    """Wait until the agent stands by."""
    with trio.fail_after(PATIENCE):
        await room.desk.until("a1", lambda: lead(room).state == "standing")


async def test_what_is_decided_as_the_project_closes_does_not_start(room: Room) -> None:
    answer = room.desk.ask(Operator(), Fork(kind="sleep"))
    assert answer.refusal is None
    room.desk.observe(facts.Closing())
    with trio.fail_after(PATIENCE):
        await room.house.close()
        await answer.durable.wait()
    await eventually(lambda: not room.house.hosts)
    assert below(os.getpid()) == []
    assert room.project.agents["a2"].wanted == "running"  # the next daemon starts it


async def test_a_restart_that_comes_before_the_run_began_is_one(room: Room) -> None:
    room.desk.ask(Operator(), Restarting("a1"))
    with room.desk.watch("a1", lambda: lead(room).run == 2) as decided, trio.fail_after(PATIENCE):
        await decided.met.wait()
        answer = room.desk.ask(Operator(), Restarting("a1"))  # the process of run 2 is not there yet
    assert any(isinstance(fact, facts.Rerun) for fact in answer.facts)
    with trio.fail_after(PATIENCE):
        await room.desk.until("a1", lambda: lead(room).run == 3 and lead(room).state == "standing")
    assert len(below(os.getpid())) == 1


async def test_a_start_that_comes_as_the_last_process_of_a_stop_ends_is_not_taken_for_its_end(room: Room) -> None:
    desk = room.desk
    desk.ask(Operator(), Stop("a1"))
    with desk.watch("a1", lambda: lead(room).state == "stopped") as stopped, trio.fail_after(PATIENCE):
        await stopped.met.wait()
        desk.ask(Operator(), Start("a1"))
        await stopped.wait()  # though it is starting again by the time that it is on disk
        await desk.until("a1", lambda: lead(room).state == "standing" and lead(room).run == 2)
    assert len(below(os.getpid())) == 1
