"""Accepting an agents.toml: `up` and `reload` take exactly the content that the person's client sent, and keep it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from attrs import asdict

from supervisor.config import agents_toml
from supervisor.core import facts, requests
from supervisor.core.facts import Fact
from supervisor.core.refusals import Refusal, RefusedError, refuse
from supervisor.doors import calls, forewarned, paths, wire
from supervisor.doors.aside import aside
from supervisor.doors.calls import Plain
from supervisor.doors.service import Call
from supervisor.runtime.projects import ACCEPTED, Projects, Room


class Accepting:
    """The two verbs that accept content."""

    def __init__(self, projects: Projects, personal: Path) -> None:
        self._projects = projects
        self._personal = personal
        self.table = {"up": self.up, "reload": self.up}

    async def up(self, call: Call) -> Plain:
        """Run this content; a further time, apply what changed."""
        params: dict[str, Any] = call.params
        file = _real(str(params.get("cwd") or "/"), str(params.get("file") or ""))
        content = params.get("content")
        if content is None or not params.get("file"):
            raise wire.BadParams("content", "up and reload take a file and its content")
        try:
            # A file of thousands of agents takes its time; the loop does not wait for it.
            loaded = await aside(lambda: agents_toml.parse(content, file, personal=self._personal))
        except agents_toml.ConfigError as error:
            raise _misconfigured(file, error) from None
        if call.verb == "reload" and not any(room.project.file == file for room in self._projects.rooms.values()):
            raise refuse("down", f"{file} is not up; `supervisorctl up` runs it", field="file", asked=file)
        room = self._projects.for_file(file, paths.project_id(loaded.fleet.name, file))
        request = requests.Up(
            file, loaded.sha256, str(params.get("path") or ""), loaded.fleet, again=call.verb == "reload"
        )
        warnings = await aside(lambda: forewarned.warnings(loaded.fleet, request.path))
        if params.get("plan"):
            decided = room.desk.plan(call.principal, request)
            if isinstance(decided, Refusal):
                raise RefusedError(decided)
            return self._came_to(room, decided, None) | {"warnings": warnings}
        async with room.accepting:
            answer = await calls.ask(room, call.principal, request)
            await aside(lambda: _keep(room.directory / ACCEPTED, content))
        return self._came_to(room, list(answer.facts), answer.seq) | {"warnings": warnings}

    @staticmethod
    def _came_to(room: Room, what: list[Fact], seq: int | None) -> Plain:
        project = room.project

        def named(kind: type[facts.Rerun | facts.Respecified | facts.Leaving | facts.Granted]) -> list[Plain]:
            ids = dict.fromkeys(fact.agent for fact in what if isinstance(fact, kind))
            return [{"id": agent, "name": project.agents[agent].name} for agent in ids if agent in project.agents]

        born = [{"id": fact.agent, "name": fact.name} for fact in what if isinstance(fact, facts.Born)]
        return {
            "project": project.name,
            "file": project.file,
            "started": born,
            "changed": [
                *named(facts.Rerun),
                *(row for row in named(facts.Respecified) if row not in named(facts.Rerun)),
            ],
            "restarted": named(facts.Rerun),
            "stopped": named(facts.Leaving),
            "grants": named(facts.Granted),
            "seq": seq,
        }


def _real(cwd: str, file: str) -> str:
    return os.path.realpath(os.path.join(cwd, file))


def _misconfigured(file: str, error: agents_toml.ConfigError) -> wire.WireError:
    """All that is wrong, as data for programs and for the client to draw."""
    problems = [asdict(problem) for problem in error.problems]
    message = f"{file} is not accepted; nothing was changed"
    return wire.WireError(wire.REFUSED, message, {"code": "config", "message": message, "problems": problems})


def _keep(path: Path, content: str) -> None:
    """What was accepted, whole: a file that was refused leaves the one before it as it is."""
    fresh = path.with_suffix(".new")
    fresh.write_text(content, "utf-8")
    fresh.replace(path)
