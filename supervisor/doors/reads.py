"""What only looks: status, tree, usage, metrics, whoami, logs, events, config, save. It changes nothing and keeps the
walls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any

import trio

from supervisor.config import agents_toml
from supervisor.core import metrics, save, spending, view
from supervisor.core.authority import Agent
from supervisor.core.refusals import RefusedError, refuse
from supervisor.core.state import Node
from supervisor.doors import about, feed, history, wire
from supervisor.doors.aside import aside
from supervisor.doors.calls import Plain, find_room, target
from supervisor.doors.changed import Changed
from supervisor.doors.service import Call
from supervisor.runtime import transcript, turn
from supervisor.runtime.containment import marks
from supervisor.runtime.containment.cell import Containment
from supervisor.runtime.projects import ACCEPTED, Projects, Room

#: What `logs` shows when no number is given.
LINES = 40
#: One answer holds at most so many lines of a transcript, and so many bytes of them.
MOST_LINES, MOST_BYTES = 10_000, 1024 * 1024
#: So many processes that are nobody's are named in a fault.
NAMED = 8


class Reads:
    """The verbs that look, by name in `table`. `about` gives the daemon's own part of `status`."""

    def __init__(self, projects: Projects, about: Callable[[], Plain], personal: Path) -> None:
        self._projects = projects
        self._about = about
        self._personal = personal
        self._changed = Changed()
        self._feeds: dict[str, feed.Feed] = {}
        self.table = {
            "status": self.status,
            "tree": self.tree,
            "about": self.about,
            "whoami": self.whoami,
            "usage": self.usage,
            "metrics": self.metrics,
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
        faults: list[Plain] = []
        if not isinstance(call.principal, Agent):
            faults += [*self._projects.faults, *_unclaimed(self._projects.containment)]
        for room in rooms:
            faults += _garbled(room) + _outside(room) + _unkept(room) + _unlimited(room) + _put_off(room)
        shown = [
            await self._project(room) | {"line": view.line(room.project, call.principal)}
            for room in rooms
            if room.project.file
        ]
        return self._about() | {"projects": shown, "limits": _stopped(rooms), "faults": faults}

    async def _project(self, room: Room) -> Plain:
        changed = await self._changed.since(room.project.file, room.project.sha256)
        return _project(room) | {"changed": changed}

    async def tree(self, call: Call) -> Plain:
        """Who started whom."""
        room, params = self._room(call)
        branch = target(room, call.principal, params["agent"], "tree") if params.get("agent") else None
        tier = self._projects.containment.tier
        return view.tree(room.project, call.principal, tier, time.time(), branch, room.house.signs)

    async def about(self, call: Call) -> Plain:
        """One agent, whole."""
        room, params = self._room(call)
        return await about.about(room, target(room, call.principal, params["agent"], "about"))

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
        """Who spent what, costliest first; of today, where no other day is named."""
        room, params = self._room(call)
        branch = target(room, call.principal, params["agent"], "usage") if params.get("agent") else None
        group = params.get("by") or "agent"
        if group not in spending.BY:
            raise wire.BadParams("by", f"by is {', '.join(spending.BY[:-1])} or {spending.BY[-1]}")
        try:
            since = spending.first_day(params.get("since") or "today", _today())
        except ValueError as error:
            raise wire.BadParams("since", str(error)) from None
        steps = spending.spent(room.project, call.principal, time.time(), branch, group, since)
        return await turn.stepped(steps)

    async def metrics(self, call: Call) -> Plain:
        """Counts of every project, or of the one that is named, for programs that keep them over time."""
        named = call.params.get("project")
        rooms = [self._room(call)[0]] if named else [*self._projects.rooms.values()]
        return {"families": metrics.families([room.project for room in rooms if room.project.file])}

    async def logs(self, call: Call) -> Plain:
        """What an agent printed."""
        room, params = self._room(call)
        node = target(room, call.principal, params["agent"], "logs")
        path = room.directory / "agents" / node.id / ("stderr.log" if params.get("stderr") else "transcript.jsonl")
        host = room.house.hosts.get(node.id)
        printed = room.house.printed(node.id) if host is not None and params.get("follow") else None
        follower = transcript.Follower(printed.stderr if params.get("stderr") else printed.stdout) if printed else None
        found = await aside(lambda: _tail(path, params.get("lines", LINES)))
        if not params.get("follow"):
            return {"lines": found}
        await _print(call, found)
        while follower is not None and (fresh := await follower.lines()):
            await _print(call, map(transcript.text, fresh))
        return {"lines": []}

    async def events(self, call: Call) -> Plain:
        """The facts of the journal, newest last; an agent sees those of its own branch."""
        room, params = self._room(call)
        since = params.get("since")
        if not params.get("follow"):
            await room.desk.recorded()  # a tree shows what was decided: who has seen it there finds it here
            return await history.page(room, call.principal, since)
        await history.tell(room, call, since)
        leave = self._feeds.setdefault(room.id, feed.Feed(room)).follow(call.principal, call.relay)
        try:
            await trio.sleep_forever()
        finally:
            leave()

    async def config(self, call: Call) -> Plain:
        """Each value of the accepted content, with its origin."""
        room, _ = self._room(call)
        content = (room.directory / ACCEPTED).read_text("utf-8")
        file = room.project.file
        loaded = await aside(lambda: agents_toml.parse(content, file, personal=self._personal))
        return {"values": agents_toml.explain(loaded)}

    async def save(self, call: Call) -> Plain:
        """The live tree's agents as the content of a file."""
        room, _ = self._room(call)
        if room.project.fleet is None:
            raise refuse("down", "the project has no accepted content yet")
        live = save.as_fleet(room.project, room.project.fleet)
        return {"content": await aside(lambda: agents_toml.dump(live))}


def _today() -> date:
    """The local day, as the desk writes it."""
    return date.fromisoformat(time.strftime("%Y-%m-%d"))


def _project(room: Room) -> Plain:
    project = room.project
    return {
        "name": project.name,
        "id": room.id,
        "file": project.file,
        "path": project.path,
        "state": "up" if project.wanted else "down",
        "agents": project.living,
        "journal": {
            "seq": room.desk.journal.durable,
            "head": room.desk.journal.head,
            "segment": room.desk.journal.segment,
        },
        "refused": project.refused + room.desk.unrecorded,
    }


def _stopped(rooms: list[Room]) -> list[Plain]:
    """The logins that take no more for now, each once."""
    found: dict[str, Plain] = {}
    for room in rooms:
        for credential, login in view.logins(room.project).items():
            found[credential] = view.joined(found[credential], login) if credential in found else login
    return [*found.values()]


def _unclaimed(containment: Containment) -> list[Plain]:
    """What got away from every sign of whose it is: no agent's end finds it, so a person is told."""
    pids = containment.unclaimed()
    if not pids:
        return []
    named = ", ".join(f"{pid} {marks.argv0(pid)}".strip() for pid in pids[:NAMED])
    others = f" and {len(pids) - NAMED} others" if len(pids) > NAMED else ""
    what = f"no sign says whose these are: {named}{others}; they end with the daemon, or by your own kill"
    return [{"at": None, "where": "processes", "what": what}]


def _garbled(room: Room) -> list[Plain]:
    return [
        {"at": node.since, "where": f"{node.name} ({node.id})", "what": f"{node.garbled} unreadable lines"}
        for node in room.project.agents.values()
        if node.garbled
    ]


def _outside(room: Room) -> list[Plain]:
    """Who uses a model that it does not hold."""
    return [
        {"at": None, "where": f"{node.name} ({node.id})", "what": f"uses the model {model}, which it does not hold"}
        for node in room.project.agents.values()
        if node.outside and not node.away
        for model in view.outside(room.project, node)
    ]


def _unlimited(room: Room) -> list[Plain]:
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


def _unkept(room: Room) -> list[Plain]:
    agents = room.project.agents
    return [
        {"at": agents[agent].since, "where": f"{agents[agent].name} ({agent})", "what": why}
        for agent, why in room.house.unkept()
        if agent in agents
    ]


def _put_off(room: Room) -> list[Plain]:
    """What a disk did not take, or someone took away from it, and cost no fact."""
    said = filter(None, (room.desk.journal.trouble, room.desk.journal.lost))
    return [{"at": None, "where": f"journal of {room.project.name}", "what": what} for what in said]


def _tail(path: Path, count: int) -> list[str]:
    """The last lines, as many as are asked for and as one answer holds."""
    found: list[str] = []
    size = 0
    for line in reversed(transcript.tail(path, min(count, MOST_LINES))):
        size += len(line)
        if size > MOST_BYTES and found:
            break
        found.append(transcript.text(line))
    return found[::-1]


async def _print(call: Call, lines: Iterable[str]) -> None:
    """Send lines in pieces, no faster than they are read."""
    piece: list[bytes] = []
    watch = turn.Watch()
    for line in lines:
        piece.append(wire.notification("logs", {"line": line}))
        if watch.over:
            call.relay(b"".join(piece))
            piece.clear()
            await call.drained()
            await trio.lowlevel.checkpoint()
            watch.again()
    call.relay(b"".join(piece))
    await call.drained()
