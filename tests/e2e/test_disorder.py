"""Whatever people ask for and whatever dies meanwhile: afterwards the tree says what lives, and nothing else lives."""

from __future__ import annotations

import os
import random
import signal
from contextlib import suppress
from typing import Any

import trio

from tests.e2e.stage import Stage, project
from tests.fleet import RefusedError
from tests.house import PATIENCE, eventually, seen

#: How many things happen, and how many at once.
EVENTS, HANDS = 120, 6
ESCAPES = "(setsid sleep 1000 &)\n(env -i setsid sh -c 'sleep 1000 & exit' &)\ntrap '' TERM\nsleep 1000\n"
PROGRAMS = {
    "escapes": ESCAPES,
    "deaf": "trap '' TERM\nwhile :; do sleep 1000; done\n",
    "brief": "exit $(($$ % 2))\n",
    "slow": "trap 'sleep 0.2; exit' TERM\nsleep 1000 & wait\n",
}
TREE = """[agents.one]
[agents.two]
restart = "always"
[agents.two.agents.kid]
kind = "slow"
restart = "always"
[agents.two.agents.kid.agents.grandkid]
[agents.three]
kind = "escapes"
restart = "on-failure"
"""
#: Verbs that can be refused for what they find.
FINE = {"state", "unknown", "name"}


class Disorder:
    """People who ask for things in no order, and processes that die."""

    def __init__(self, stage: Stage, content: str) -> None:
        self.stage = stage
        self.content = content
        self.chance = random.Random(stage.fleet.tier)  # noqa: S311  # the same disorder each time
        self.left = EVENTS
        self.refused: list[RefusedError] = []

    async def hand(self) -> None:
        """One of them."""
        while self.left > 0:
            self.left -= 1
            agents = [agent for agent in (await self.stage.fleet.tree()).values() if agent["state"] != "gone"]
            try:
                with trio.fail_after(PATIENCE):
                    await self.happen(self.chance.choice(agents) if agents else None)
            except RefusedError as no:
                self.refused.append(no)

    async def happen(self, agent: dict[str, Any] | None) -> None:
        """One thing, to this agent."""
        call = self.stage.fleet.call
        what = self.chance.choice(
            ["stop", "start", "restart", "disband", "branch", "fork", "fork", "kill", "kill", "up", "back"]
        )
        if what == "up":
            await self.stage.fleet.up(self.content.replace("300ms", f"{self.chance.randint(200, 500)}ms"))
        elif what == "back":
            await call("start", agent=self.chance.choice(["one", "two", "three", "kid", "grandkid"]))
        elif what == "fork":
            kind, restart = (
                self.chance.choice([*PROGRAMS, "sleep"]),
                self.chance.choice(["never", "on-failure", "always"]),
            )
            await call(
                "fork", kind=kind, restart=restart, parent=agent["id"] if agent else "", wait=self.chance.random() < 0.3
            )
        elif agent is not None and what == "kill":
            with suppress(ProcessLookupError):
                os.kill(agent["pid"] or 2**22, self.chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP]))
        elif agent is not None and what == "branch":
            await call("restart", agent=agent["id"], branch=True)
        elif agent is not None:
            await call(what, agent=agent["id"])


def untrue(tree: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Agents that cannot be as they are shown, or are on their way still."""
    states = {agent["id"]: agent["state"] for agent in tree.values()}
    return [
        agent
        for agent in tree.values()
        if agent["state"] in ("stopping", "starting")
        or (agent["pid"] is not None and seen(agent["pid"]) is None)
        or (agent["state"] in ("standing", "working") and agent["pid"] is None)
        or (states.get(agent["parent"]) in ("gone", "stopped") and agent["state"] not in ("gone", "stopped"))
    ]


async def test_after_any_disorder_the_tree_is_what_lives(alone: Stage) -> None:
    kinds = [alone.sh(name, text) for name, text in PROGRAMS.items()]
    content = project(*kinds, TREE, grace="300ms")
    await alone.fleet.up(content)
    disorder = Disorder(alone, content)
    async with trio.open_nursery() as nursery:
        for _ in range(HANDS):
            nursery.start_soon(disorder.hand)

    async def true() -> bool:
        return not untrue(await alone.fleet.tree())

    assert [no for no in disorder.refused if no.data["code"] not in FINE] == []
    await eventually(true, PATIENCE)
    assert (await alone.fleet.call("status"))["faults"] == []
    await alone.fleet.call("down")
    assert alone.below() == []
    assert await alone.fleet.ctl("verify")
