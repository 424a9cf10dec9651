"""What changes something: each verb asks the desk and answers when it is done. Every rule behind it is the core's."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import trio
from attrs import evolve

from supervisor.core import facts, requests, view
from supervisor.core.decide import fork
from supervisor.core.refusals import Refusal
from supervisor.core.requests import Request
from supervisor.core.state import Node
from supervisor.doors import calls, line, wire
from supervisor.doors.aside import aside
from supervisor.doors.calls import Plain, ask, find_room, target
from supervisor.doors.service import Call
from supervisor.kinds import fields
from supervisor.runtime import programs, transcript
from supervisor.runtime.answer import Answer
from supervisor.runtime.projects import Projects, Room


class Asks:
    """The verbs that change something, by name in `table`."""

    def __init__(self, projects: Projects, stop: Callable[[], None]) -> None:
        self._projects = projects
        self._stop = stop
        self.table = {
            "fork": self.fork,
            "instruct": self.instruct,
            "approve": self.approve,
            "deny": self.deny,
            "stop": self.stop,
            "start": self.start,
            "restart": self.restart,
            "disband": self.disband,
            "grant": self.grant,
            "rename": self.rename,
            "down": self.down,
            "shutdown": self.shutdown,
        }

    def _room(self, call: Call) -> tuple[Room, dict[str, Any]]:
        params: dict[str, Any] = call.params
        return find_room(self._projects, call.principal, params), params

    async def fork(self, call: Call) -> Plain:
        """A new agent, under the caller or whom it names."""
        room, params = self._room(call)
        named = {name: params[name] for name in _FORK if params.get(name) is not None}
        if params.get("restart") is not None and params["restart"] not in ("never", "on-failure", "always"):
            raise wire.BadParams("restart", "restart is never, on-failure or always")
        request = requests.Fork(grant=calls.grant_of(params), **named)
        if params.get("queue"):
            return await self._fork_in_line(room, call, evolve(request, queue=True), params)
        await _present(room, call, request)
        answer = await ask(room, call.principal, request)
        return await self._forked(room, answer, params)

    async def _fork_in_line(self, room: Room, call: Call, request: requests.Fork, params: dict[str, Any]) -> Plain:
        async def present(again: requests.Fork) -> None:
            await _present(room, call, again)

        began, timeout = trio.current_time(), params.get("timeout")
        await present(request)
        answer = await line.until_born(room, call.principal, request, present, timeout)
        waited = round(trio.current_time() - began, 3)
        left = {} if timeout is None else {"timeout": max(0.0, timeout - waited)}
        return await self._forked(room, answer, params | left) | {"waited": waited}

    async def _forked(self, room: Room, answer: Answer, params: dict[str, Any]) -> Plain:
        born = calls.started(answer)[0]
        if params.get("wait"):
            await self._ready(room, room.project.agents[born["id"]], params)
        return {"agent": born, "seq": answer.seq}

    async def instruct(self, call: Call) -> Plain:
        """A task; with `wait` its end and the final text."""
        room, params = self._room(call)
        answer = await ask(room, call.principal, requests.Instruct(params["agent"], params["text"]))
        queued = next(fact for fact in answer.facts if isinstance(fact, facts.Queued))
        node = room.project.agents[queued.agent]
        said: Plain = {"agent": view.label(node), "input": queued.input.id, "seq": answer.seq}
        if not params.get("wait"):
            return said
        ended: list[facts.TaskEnded] = []

        def over() -> bool:
            waiting = any(item.id == queued.input.id for item in node.inbox)
            current = node.task is not None and node.task.id == queued.input.id
            return node.away or not (waiting or current)

        def see(batch: Any) -> None:
            ended.extend(fact for fact in batch.facts if isinstance(fact, facts.TaskEnded) and fact.agent == node.id)

        unfollow = room.desk.follow(see)
        try:
            await calls.within(params, f"the task of {node.name}", lambda: room.desk.until(node.id, over))
        finally:
            unfollow()
        status = ended[-1].status if ended else "left"
        return said | {"status": status, "text": node.text, "error": node.reason or None, "summary": node.summary}

    async def approve(self, call: Call) -> Plain:
        """Yes to what an agent's program asks."""
        return await self._answer(call, lambda agent, prompt, _: requests.Approve(agent, prompt))

    async def deny(self, call: Call) -> Plain:
        """No to it."""
        return await self._answer(call, requests.Deny)

    async def _answer(self, call: Call, request: Callable[[str, str, str], Request]) -> Plain:
        room, params = self._room(call)
        node = target(room, call.principal, params["agent"], call.verb)
        asked = dict(node.prompts)
        answer = await ask(room, call.principal, request(node.id, params.get("prompt", ""), params.get("text", "")))
        said = next(fact for fact in answer.facts if isinstance(fact, facts.Answered))
        prompt = {"id": said.prompt, "question": asked.get(said.prompt, "")}
        return {"agent": view.label(node), "prompt": prompt, "allowed": said.allow, "seq": answer.seq}

    async def stop(self, call: Call) -> Plain:
        """End a run and its branch; wait until it is empty."""
        return await self._end(call, requests.Stop)

    async def disband(self, call: Call) -> Plain:
        """End a branch for good; wait until it is empty."""
        return await self._end(call, requests.Disband)

    async def _end(self, call: Call, request: Callable[[str], Request]) -> Plain:
        room, params = self._room(call)
        node = target(room, call.principal, params["agent"], call.verb)
        nodes = [at for at in room.project.down(node) if not at.away or at is node]
        if params.get("plan"):
            return calls.plan(room, nodes)
        answer = room.desk.ask(call.principal, request(node.id))
        with room.desk.watch(node.id, lambda: node.away) as watch:
            await calls.told(answer)
            await calls.within(params, f"ending {node.name}", watch.wait)
        return {"agent": view.label(node), "ended": view.ended(nodes), "seq": answer.seq}

    async def start(self, call: Call) -> Plain:
        """Revive an agent; wait until it is ready."""
        room, params = self._room(call)
        answer = await ask(room, call.principal, requests.Start(params["agent"]))
        born = calls.started(answer)
        agent = born[0]["id"] if born else target(room, call.principal, params["agent"], "start").id
        node = room.project.agents[agent]
        await self._ready(room, node, params)
        return {"agent": view.label(node), "state": node.state, "seq": answer.seq}

    async def restart(self, call: Call) -> Plain:
        """End the run and start another; wait until the new one is ready."""
        room, params = self._room(call)
        node = target(room, call.principal, params["agent"], call.verb)
        branch = bool(params.get("branch"))
        nodes = [at for at in room.project.down(node) if at.live] if branch else [node]
        if params.get("plan"):
            return calls.plan(room, nodes)
        before = {at.id: at.run for at in nodes}
        answer = await ask(room, call.principal, requests.Restarting(node.id, branch))
        for at in nodes:
            await self._until(room, at, params, f"restarting {at.name}", _restarted(at, before[at.id]))
        return {"agent": view.label(node), "ended": view.ended(nodes), "state": node.state, "seq": answer.seq}

    async def grant(self, call: Call) -> Plain:
        """Hold more, or less."""
        room, params = self._room(call)
        answer = await ask(room, call.principal, requests.Hold(params["agent"], calls.grant_of(params)))
        granted = next(fact for fact in answer.facts if isinstance(fact, facts.Granted))
        node = room.project.agents[granted.agent]
        return {"agent": view.label(node), "grant": view.accounts(node), "seq": answer.seq}

    async def rename(self, call: Call) -> Plain:
        """Another name; the history keeps both."""
        room, params = self._room(call)
        node = target(room, call.principal, params["agent"], call.verb)
        was = node.name
        answer = await ask(room, call.principal, requests.Rename(node.id, params["name"]))
        return {"agent": view.label(node), "was": was, "seq": answer.seq}

    async def down(self, call: Call) -> Plain:
        """The project is no longer wanted; wait until it is empty."""
        room, params = self._room(call)
        mains = [room.project.agents[main] for main in room.project.mains]
        nodes = [at for main in mains for at in room.project.down(main) if at.state != "gone"]
        if params.get("plan"):
            return calls.plan(room, nodes)
        answer = await ask(room, call.principal, requests.Down())
        for main in mains:
            await self._until(room, main, params, "ending the project", _gone(main))
        return {"project": room.project.name, "file": room.project.file, "ended": view.ended(nodes), "seq": answer.seq}

    async def shutdown(self, call: Call) -> Plain:
        """Stop the daemon, once this is answered; what is wanted runs again at its next start."""
        if call.params.get("plan"):
            plans = [calls.plan(room, _all(room)) for room in self._projects.rooms.values()]
            agents = [agent for plan in plans for agent in plan["plan"]["agents"]]
            return {"plan": {"agents": agents, "grace": max((plan["plan"]["grace"] for plan in plans), default=0.0)}}
        self._stop()
        return {"pid": os.getpid()}

    @staticmethod
    async def _until(room: Room, node: Node, params: dict[str, Any], what: str, over: Callable[[], bool]) -> None:
        await calls.within(params, what, lambda: room.desk.until(node.id, over))

    @staticmethod
    async def _ready(room: Room, node: Node, params: dict[str, Any]) -> None:
        def over() -> bool:
            return node.state not in ("starting", "backoff")

        await calls.within(params, f"the start of {node.name}", lambda: room.desk.until(node.id, over))
        if node.away or node.state == "stopping":
            why = Refusal("state", f"{node.name} did not come up: {_why(room, node)}", field="state", held=node.state)
            raise calls.RecordedError(why)  # it was granted; what came of it is on record


async def _present(room: Room, call: Call, request: requests.Fork) -> None:
    """Refuse the birth of an agent whose program or directory is not there. What the core refuses is its to refuse."""
    decided, fleet = room.desk.plan(call.principal, request), room.project.fleet
    if isinstance(decided, Refusal) or fleet is None:
        return
    spec = fork.asked_for(room.project, call.principal, request)
    missing = await aside(lambda: programs.missing(fleet, spec, room.project.path))
    if missing is not None:
        await calls.told(room.desk.refuse(call.principal, call.verb, missing.refusal()))


_FORK = (
    "task",
    "role",
    "kind",
    "name",
    "description",
    "parent",
    "model",
    "directory",
    "max_tasks",
    "replace",
    "restart",
)


def _why(room: Room, node: Node) -> str:
    """How its run ended, with the last that the program said to that."""
    if node.reason or node.exit is None:
        return node.reason or f"it is {node.state}"
    ended = node.exit
    how = f"ended by signal {ended.signal}" if ended.signal is not None else f"exited with {ended.code}"
    said = transcript.tail(room.directory / "agents" / node.id / "stderr.log", 1)
    return f"its program {how}" + "".join(f": {fields.last_line(line)}" for line in said)


def _restarted(node: Node, run: int) -> Callable[[], bool]:
    return lambda: node.away or ((node.run > run or node.stands) and node.state not in ("starting", "backoff"))


def _gone(node: Node) -> Callable[[], bool]:
    return lambda: node.state == "gone"


def _all(room: Room) -> list[Node]:
    mains = (room.project.agents[main] for main in room.project.mains)
    return [node for main in mains for node in room.project.down(main) if not node.away]
