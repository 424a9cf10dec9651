"""Calls as requests: from a door's checked parameters to what the core is asked, and back to an answer. It holds no
rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import trio

from supervisor.core import facts, view
from supervisor.core.authority import Agent, Principal
from supervisor.core.decide.gate import reach
from supervisor.core.grants import Grant
from supervisor.core.refusals import RefusedError
from supervisor.core.requests import Request
from supervisor.core.state import Node
from supervisor.doors import wire
from supervisor.runtime.answer import Answer
from supervisor.runtime.projects import Projects, Room

Plain = dict[str, Any]
T = TypeVar("T")


class RecordedError(RefusedError):
    """A refusal that is on record, or that tells of what is."""


def grant_of(params: Mapping[str, Any]) -> Grant:
    """The grant that a call names."""
    may_fork = params.get("may_fork")
    if may_fork is not None and may_fork not in ("yes", "no"):
        raise wire.BadParams("may_fork", "may_fork is `yes` or `no`")
    return Grant(
        tools=_texts(params, "tool"),
        models=_texts(params, "allow_model"),
        kinds=_texts(params, "allow_kind"),
        fork=None if may_fork is None else may_fork == "yes",
        **{name: params.get(name) for name in ("tokens", "turns", "cost", "descendants", "children", "depth", "wall")},
    )


def _texts(params: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    value = params.get(name)
    return tuple(value) if value is not None else None


def find_room(projects: Projects, by: Principal, params: Mapping[str, Any]) -> Room:
    """The project of a call: an agent's own, wherever it stands; the one a person names or stands in."""
    if isinstance(by, Agent):
        return projects.of_agent(by)
    return projects.find(str(params.get("project") or ""), str(params.get("cwd") or ""))


def target(room: Room, by: Principal, text: str, verb: str) -> Node:
    """The agent that a call is about."""
    return reach(room.project, by, text, verb)


async def told(answer: Answer) -> Answer:
    """The answer once it is on disk, be it a refusal: that is raised."""
    await answer.durable.wait()
    if answer.refusal is not None:
        raise RecordedError(answer.refusal)
    return answer


async def ask(room: Room, by: Principal, request: Request) -> Answer:
    """Ask the desk; returns when the answer is on disk."""
    return await told(room.desk.ask(by, request))


async def within(params: Mapping[str, Any], what: str, wait: Callable[[], Any]) -> None:
    """Wait, but not longer than the caller's `timeout` (seconds; none: as long as it takes)."""
    timeout = params.get("timeout")
    with trio.move_on_after(timeout if timeout is not None else float("inf")) as scope:
        await wait()
    if scope.cancelled_caught:
        raise wire.TimedOut(f"{what} took longer than {timeout} s; it goes on")


def started(answer: Answer) -> list[Plain]:
    """The agents that an answer brought."""
    return [{"id": fact.agent, "name": fact.name} for fact in answer.facts if isinstance(fact, facts.Born)]


def plan(room: Room, nodes: list[Node]) -> Plain:
    """Who would end, with which processes and what is unsettled; nothing ends."""
    agents = []
    for node in nodes:
        host = room.house.hosts.get(node.id)
        members = host.cell.members() if host is not None and host.cell is not None else ()
        processes = [
            {"pid": member.pid, "argv0": member.argv0, "stray": member.stray, "escaped": member.escaped}
            for member in members
        ]
        agents.append(
            view.label(node)
            | {"state": node.state, "depth": room.project.level(node)}
            | {"processes": processes, "unsettled": view.unsettled(node)}
        )
    grace = max((node.spec.stop_grace for node in nodes), default=0.0)
    return {"plan": {"agents": agents, "grace": grace}}
