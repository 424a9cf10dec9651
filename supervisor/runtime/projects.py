"""All projects of one daemon, each with its journal, desk and hosts. It opens, finds and closes them; it decides
nothing."""

from __future__ import annotations

import hashlib
import os
import time
import traceback
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import trio
from attrs import define, field

from supervisor.core import facts
from supervisor.core.authority import Agent
from supervisor.core.refusals import Refusal, refuse
from supervisor.core.state import Project
from supervisor.runtime import credential
from supervisor.runtime.breakers import Breakers
from supervisor.runtime.containment.cell import Containment
from supervisor.runtime.desk import Desk
from supervisor.runtime.house import House
from supervisor.runtime.journal.journal import Journal
from supervisor.runtime.journal.recent import MOST
from supervisor.runtime.logins import Logins
from supervisor.runtime.starts import Starts

#: Below this many free bytes on the state directory's disk no new work is taken (DESIGN 10).
LOW_DISK = 32 * 1024 * 1024
#: The content that was accepted last, kept beside the journal.
ACCEPTED = "accepted.toml"
#: How many faults are kept for `status`, how many of one place, and how much of each (characters).
FAULTS, ALIKE, LONGEST = 50, 8, 400


@define
class Room:
    """One open project."""

    id: str
    directory: Path
    desk: Desk
    house: House
    #: one content is accepted and kept after the other
    accepting: trio.Lock = field(factory=trio.Lock)

    @property
    def project(self) -> Project:
        """Its state."""
        return self.desk.project


class Projects:
    """The open projects, by their id on disk."""

    def __init__(self, state: Path, containment: Containment, instance: int, tools: str, nursery: trio.Nursery) -> None:
        self.state = state
        self.rooms: dict[str, Room] = {}
        self.runs: dict[tuple[int, int], Agent] = {}
        self.faults: deque[dict[str, Any]] = deque(maxlen=FAULTS)
        self.containment = containment
        self.instance = instance
        self.breakers = Breakers(self.rooms.values())
        self._logins = Logins(credential.load(state), Starts(), self.breakers)
        self._tools = tools
        self._nursery = nursery

    def fault(self, where: str, what: BaseException | str) -> None:
        """Keep what went wrong, for `status`."""
        said = (what if isinstance(what, str) else "; ".join(_words(what)))[:LONGEST]
        known = next((fault for fault in self.faults if (fault["where"], fault["what"]) == (where, said)), None)
        if known is not None:  # a flood of one fault must not push the others out of sight
            known |= {"at": time.time(), "times": known["times"] + 1}
        else:
            alike = [fault for fault in self.faults if fault["where"] == where]
            if len(alike) >= ALIKE:  # nor may a flood of such as differ a little
                self.faults.remove(alike[0])
            self.faults.append({"at": time.time(), "where": where, "what": said, "times": 1})

    def stored(self) -> Iterator[str]:
        """The ids of all projects that have a journal here."""
        if self.state.is_dir():
            for entry in sorted(self.state.iterdir()):
                if entry.is_dir() and (entry / "journal.jsonl").exists() and entry.name != "daemon":
                    yield entry.name

    def open(self, project_id: str) -> Room:
        """Open a project and bring back what is wanted. Raises JournalError where its journal cannot be opened."""
        directory = self.state / project_id
        journal, past, cut = Journal.open(directory, project_id)
        project = past.project()
        house = House(
            directory, self.instance, self.containment, self._tools, self._nursery, self.fault, self.runs, self._logins
        )
        house.desk = desk = Desk(project, journal, house.act, self._next_agent, self._room_to_work)
        for batch in past.batches[-MOST:]:
            desk.recent.append(batch, len(repr(batch)))  # about what it takes in the journal
        room = self.rooms[project_id] = Room(project_id, directory, desk, house)
        self._nursery.start_soon(desk.run, name=f"flusher of {project_id}")
        self._nursery.start_soon(house.parks.alarms.run, name=f"alarms of {project_id}")
        repaired = [facts.Repaired(cut)] if cut else []
        desk.observe(*repaired, facts.Opened(str(self.instance), self.containment.tier))
        self.breakers.joined(room)
        return room

    def for_file(self, file: str, fresh: str) -> Room:
        """The project of this agents.toml, opened, or made under the id `fresh`. A changed name keeps its place."""
        real = os.path.realpath(file)
        for room in self.rooms.values():
            if room.project.file == real:
                return room
        suffix = "-" + hashlib.sha256(os.fsencode(real)).hexdigest()[:8]
        known = next((stored for stored in self.stored() if stored.endswith(suffix)), None)
        project_id = known or fresh
        return self.rooms.get(project_id) or self.open(project_id)

    def of_agent(self, agent: Agent) -> Room:
        """The project a run belongs to."""
        return self.rooms[agent.project]

    def find(self, named: str, cwd: str) -> Room:
        """The project a person means: by id, file or name, else the one whose directory they stand in, else the
        only one. Raises a refusal that lists them."""
        rooms = [room for room in self.rooms.values() if room.project.file]
        if named:
            real = os.path.realpath(named)
            found = [room for room in rooms if named == room.id or real == room.project.file]
            found = found or [room for room in rooms if room.project.name.casefold() == named.casefold()]
        else:
            found = _standing_in(rooms, cwd)
            wanted = [room for room in rooms if room.project.wanted]
            found = found or (wanted if len(wanted) == 1 else [])
        if len(found) == 1:
            return found[0]
        listed = ", ".join(f"{room.project.name} ({room.project.file})" for room in found or rooms) or "none is up"
        what = f"there is no project {named!r}" if named and not found else "which project"
        raise refuse("unknown", f"{what}: name one with --project; known: {listed}", field="project", asked=named)

    def _next_agent(self) -> int:
        return 1 + max((room.project.highest for room in self.rooms.values()), default=0)

    def _room_to_work(self) -> Refusal | None:
        free = os.statvfs(self.state)
        left = free.f_bavail * free.f_frsize
        if left >= LOW_DISK:
            return None
        return Refusal(
            "disk", f"{left >> 20} MiB are free on the disk of {self.state}; new work needs {LOW_DISK >> 20}",
            field="disk", asked=LOW_DISK, held=left, ask="operator",
        )  # fmt: skip

    async def close(self) -> None:
        """Leave in order: everything ends, what is wanted stays wanted, and it is all on disk."""
        for room in self.rooms.values():
            room.desk.observe(facts.Closing())
        async with trio.open_nursery() as nursery:
            for room in self.rooms.values():
                nursery.start_soon(room.house.close)

    async def settle(self) -> None:
        """When the flushers are over: the last facts, and the journals' closing records."""
        for room in self.rooms.values():
            await room.desk.drain()
            room.desk.journal.close(time.time())


def _words(error: BaseException) -> list[str]:
    """What went wrong and in which line, of each error in a group."""
    if isinstance(error, BaseExceptionGroup):
        return [words for one in error.exceptions for words in _words(one)]
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return [f"{type(error).__name__}: {error}{place}"]


def _standing_in(rooms: list[Room], cwd: str) -> list[Room]:
    if not cwd:
        return []
    real = os.path.realpath(cwd)

    def above(room: Room) -> bool:
        return (real + "/").startswith(os.path.dirname(room.project.file).rstrip("/") + "/")

    found = sorted(filter(above, rooms), key=lambda room: len(os.path.dirname(room.project.file)))
    return found[-1:]
