"""What only looks: status, tree, usage, whoami, logs, events, config, save. It changes nothing and keeps the walls."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from supervisor.config import agents_toml
from supervisor.core import save, view
from supervisor.core.authority import Agent, Principal
from supervisor.core.facts import Fact
from supervisor.core.names import sees
from supervisor.core.refusals import RefusedError, refuse
from supervisor.core.state import Node
from supervisor.doors.calls import Plain, find_room, target
from supervisor.doors.service import Call
from supervisor.runtime import codec, transcript
from supervisor.runtime.chain import Batch
from supervisor.runtime.projects import ACCEPTED, Projects, Room

#: What `logs` and `events` show when no number is given.
LINES = 40


class Reads:
    """The verbs that look, by name in `table`. `about` gives the daemon's own part of `status`."""

    def __init__(self, projects: Projects, about: Callable[[], Plain], personal: Path) -> None:
        self._projects = projects
        self._about = about
        self._personal = personal
        self.table = {
            "status": self.status,
            "tree": self.tree,
            "whoami": self.whoami,
            "usage": self.usage,
            "logs": self.logs,
            "events": self.events,
            "config": self.config,
            "save": self.save,
        }

    def _room(self, call: Call) -> tuple[Room, dict[str, Any]]:
        params: dict[str, Any] = call.params
        return find_room(self._projects, call.principal, params), params

    async def status(self, call: Call) -> Plain:
        """Is the daemon well; an agent sees its own project only."""
        rooms = list(self._projects.rooms.values())
        if isinstance(call.principal, Agent):
            rooms = [room for room in rooms if room.id == call.principal.project]
        faults = list(self._projects.faults) if not isinstance(call.principal, Agent) else []
        for room in rooms:
            faults += _garbled(room) + _unkept(room)
        return self._about() | {"projects": [_project(room) for room in rooms if room.project.file], "faults": faults}

    async def tree(self, call: Call) -> Plain:
        """Who started whom."""
        room, params = self._room(call)
        branch = target(room, call.principal, params["agent"], "tree") if params.get("agent") else None
        return view.tree(room.project, call.principal, self._projects.containment.tier, time.time(), branch)

    async def whoami(self, call: Call) -> Plain:
        """Who the kernel says the caller is."""
        if isinstance(call.principal, Agent):
            room = self._projects.of_agent(call.principal)
            return view.whoami(room.project, room.project.agents[call.principal.agent])
        try:
            project = self._room(call)[0].project.name
        except RefusedError:
            project = None
        return {"principal": "operator", "project": project}

    async def usage(self, call: Call) -> Plain:
        """Who spent what."""
        room, params = self._room(call)
        branch = target(room, call.principal, params["agent"], "usage") if params.get("agent") else None
        return view.spending(room.project, call.principal, time.time(), branch)

    async def logs(self, call: Call) -> Plain:
        """What an agent printed."""
        room, params = self._room(call)
        node = target(room, call.principal, params["agent"], "logs")
        name = "stderr.log" if params.get("stderr") else "transcript.jsonl"
        path = room.directory / "agents" / node.id / name
        lines = [transcript.text(line) for line in transcript.tail(path, params.get("lines", LINES))]
        if not params.get("follow"):
            return {"lines": lines}
        for line in lines:
            call.notify({"line": line})
        if node.id not in room.house.hosts:
            return {"lines": []}
        printed = room.house.printed(node.id)
        follower = transcript.Follower(printed.stderr if params.get("stderr") else printed.stdout)
        while fresh := await follower.lines():
            for raw in fresh:
                call.notify({"line": transcript.text(raw)})
            await call.drained()
        return {"lines": []}

    async def events(self, call: Call) -> Plain:
        """The facts of the journal, newest last; an agent sees those of its own branch."""
        room, params = self._room(call)
        since = params.get("since")
        batches = [batch for batch in room.desk.recent if since is None or batch.seq >= since]
        events = [event for batch in batches for event in _events(room, call.principal, batch)]
        if since is None:
            events = events[-LINES:]
        if not params.get("follow"):
            return {"events": events}
        waiting: list[Batch] = []
        come = trio.Event()

        def see(batch: Batch) -> None:
            waiting.append(batch)
            come.set()

        unfollow = room.desk.follow(see)
        try:
            for event in events:
                call.notify(event)
            await call.drained()
            while True:
                await come.wait()
                come = trio.Event()
                for batch in waiting:
                    for event in _events(room, call.principal, batch):
                        call.notify(event)
                waiting.clear()
        finally:
            unfollow()

    async def config(self, call: Call) -> Plain:
        """Each value of the accepted content, with its origin."""
        room, _ = self._room(call)
        content = (room.directory / ACCEPTED).read_text("utf-8")
        file = room.project.file
        loaded = await trio.to_thread.run_sync(lambda: agents_toml.parse(content, file, personal=self._personal))
        return {"values": agents_toml.explain(loaded)}

    async def save(self, call: Call) -> Plain:
        """The live tree's agents as the content of a file."""
        room, _ = self._room(call)
        if room.project.fleet is None:
            raise refuse("down", "the project has no accepted content yet")
        return {"content": agents_toml.dump(save.as_fleet(room.project, room.project.fleet))}


def _project(room: Room) -> Plain:
    project = room.project
    return {
        "name": project.name,
        "id": room.id,
        "file": project.file,
        "state": "up" if project.wanted else "down",
        "agents": project.living,
        "journal": {"seq": room.desk.journal.seq, "head": room.desk.journal.head},
        "refused": project.refused + room.desk.unrecorded,
        "changed": _changed(project.file, project.sha256),
    }


def _changed(file: str, sha256: str) -> bool | None:
    """Whether the file differs from what was accepted; None where it cannot be read."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest() != sha256
    except OSError:
        return None


def _garbled(room: Room) -> list[Plain]:
    return [
        {"at": node.since, "where": f"{node.name} ({node.id})", "what": f"{node.garbled} unreadable lines"}
        for node in room.project.agents.values()
        if node.garbled
    ]


def _unkept(room: Room) -> list[Plain]:
    """Limits that the kernel does not keep here: one fault a reason, however many agents have them."""
    by_reason: dict[str, list[Node]] = {}
    for agent, host in room.house.hosts.items():
        if host.cell is not None and host.cell.unkept and agent in room.project.agents:
            by_reason.setdefault(host.cell.unkept, []).append(room.project.agents[agent])
    found = []
    for reason, nodes in by_reason.items():
        named = ", ".join(f"{node.name} ({node.id})" for node in nodes[:3])
        others = f" and {len(nodes) - 3} others" if len(nodes) > 3 else ""
        what = f"resources of {named}{others} are not kept: {reason}"
        found.append({"at": min(node.since for node in nodes), "where": room.project.name, "what": what})
    return found


def _events(room: Room, by: Principal, batch: Batch) -> list[Plain]:
    return [
        {"seq": batch.seq, "at": batch.at, "by": batch.by} | codec.dump(fact)
        for fact in batch.facts
        if _seen(room, by, fact)
    ]


def _seen(room: Room, by: Principal, fact: Fact) -> bool:
    if not isinstance(by, Agent):
        return True
    node = room.project.agents.get(getattr(fact, "agent", ""))
    return node is not None and sees(room.project, by, node) and room.project.within(node, by.agent)
