"""The walk: for each verb, learn which moments the daemon passes, then do the verb again for each of them, die there,
come back, and examine what came back. Knows no kind: what it is told of one stands in `Subject`."""

from __future__ import annotations

import time
from collections.abc import Iterator

from attrs import define, field, frozen

from supervisor.conformance.examine import Recall, Record, all_of, journals
from supervisor.conformance.lives import Agents, KitError, Lives
from supervisor.ctl.outcome import Failure

#: How long (seconds) a moment that was passed before may take to come again.
SOON = 5.0
#: What is wrong for longer than this (seconds) is wrong.
LASTING = 3.0
#: The moment at which a task is over; of a program that does one task and ends, the one at which it is gone.
LAST = "acted TurnEnded 1"
GONE = "acted Exited 1"
#: A moment that did not come is tried so often.
TRIES = 3


@frozen
class Subject:
    """The kind under the walk: its declaration (TOML, "" where it is built in), its name, the task that its agents are
    given, and what reads its own memory of that (None: it has none that can be read). `limit` is a task in which it
    meets a limit that stops its login ("": it cannot be made to), and `last` the
    moment at which nothing of the task is left to come."""

    kind: str
    task: str
    recall: Recall | None = None
    declaration: str = ""
    limit: str = ""
    last: str = LAST

    def fleet(self) -> str:
        """What the walk begins with: a main, and under it the agent that the verbs are about."""
        return f"""{self.declaration}
[project]
name = "walk"

[agents.lead]
kind = "{self.kind}"
restart = "on-failure"
env = {{ FLEET_LOGIN = "walk" }}
grant = {{ tokens = "1G", turns = 100_000, fork = true }}

[agents.lead.agents.hand]
kind = "{self.kind}"
restart = "on-failure"
stop_grace = "5s"
env = {{ FLEET_LOGIN = "walk" }}
grant = {{ tokens = "1M", turns = 10_000, fork = true }}
"""


@define
class Walk:
    """One fleet, for as many deaths as there are moments. `wrong` says what was found, each with its moment;
    `walked` the moments at which the daemon died, `missed` those that did not come again."""

    lives: Lives
    subject: Subject
    walked: list[str] = field(factory=list)
    missed: list[str] = field(factory=list)
    wrong: list[str] = field(factory=list)
    _record: Record = field(init=False)
    _number: int = 0
    _branch: str = ""

    def begin(self) -> None:
        """Bring the fleet up."""
        self.lives.up(self.subject.fleet())
        self._record = Record(self.lives.project())

    def walk(self, verb: str) -> None:
        """Every moment of one verb."""
        for moment in self.moments(verb):
            for _ in range(TRIES):
                if self.die(verb, moment):
                    self.walked.append(moment)
                    break
            else:
                self.missed.append(moment)
        self.wrong += journals(self.lives)

    def moments(self, verb: str) -> list[str]:
        """What the daemon passes on the way, learned from doing the verb once and living."""
        before = self.prepare(verb)
        self.lives.arm("")
        self._ask(verb)
        after, wrong = self.examine(verb, before)
        passed = list(dict.fromkeys(self.lives.disarm()))
        self.wrong += [f"nobody died: {each}" for each in wrong]
        self.restore(after)
        # What follows the task's end is another turn: its parent's, which is told of it.
        last = self.subject.last
        return passed[: passed.index(last) + 1] if last in passed else passed

    def die(self, verb: str, moment: str) -> bool:
        """Do the verb, die at the moment, come back, examine. False: the moment did not come."""
        before = self.prepare(verb)
        self.lives.arm(moment)
        answer = self._ask(verb)
        died = self.lives.died(SOON)
        after, wrong = self.examine(verb, before)
        wrong += self.promised(verb, answer, after)
        self.wrong += [f"{moment}: {each}" for each in wrong]
        self.restore(after)
        return died

    def examine(self, verb: str, before: Agents) -> tuple[Agents, list[str]]:
        """The settled fleet, and what is wrong with it and does not pass: the disk is a moment behind what is shown."""
        after = self.lives.settled()
        over = time.monotonic() + LASTING
        while True:
            wrong = [*all_of(self.lives, self._record, after, self.subject.recall), *_others(verb, before, after)]
            if not wrong or time.monotonic() > over:
                return after, wrong
            time.sleep(0.01)
            after = self.lives.settled()

    # --- the verbs

    def prepare(self, verb: str) -> Agents:
        """What the verb needs to be there."""
        self._number += 1
        if verb == "disband":
            made = self.lives.call("fork", parent="hand", name=f"branch-{self._number}", kind=self.subject.kind)
            self._branch = made["agent"]["id"]
            self.lives.call("fork", parent=self._branch, name=f"leaf-{self._number}", kind=self.subject.kind)
        if verb == "wake":
            self.lives.call("instruct", agent="hand", text=self.subject.limit)
        return self.examine(verb, {})[0]

    def _ask(self, verb: str) -> object:
        if verb == "recover":
            self.lives.kill()
            return None
        task, name = self.subject.task, f"probe-{self._number}"
        asked: dict[str, dict[str, object]] = {
            "fork": {"parent": "hand", "name": name, "kind": self.subject.kind, "task": task, "tokens": 1000},
            "instruct": {"agent": "lead", "text": task},
            "stop": {"agent": "hand"},
            "restart": {"agent": "hand"},
            "disband": {"agent": self._branch},
            "park": {"agent": "hand", "text": self.subject.limit},
            "wake": {"agent": "hand"},
        }
        return self.lives.attempt(METHODS.get(verb, verb), **asked[verb])

    def promised(self, verb: str, answer: object, after: Agents) -> Iterator[str]:
        """A verb that was answered has happened, for good; one that was not has happened whole or not at all."""
        named = {agent["name"]: agent for agent in after.values() if agent["state"] != "gone"}
        hand = named.get("hand")
        if hand is None:
            yield "hand is not there any more"
            return
        probe = named.get(f"probe-{self._number}")
        if answer is not None and verb == "fork" and probe is None:
            yield "the fork was answered and is not there"
        if probe is not None and (probe["grant"]["tokens"]["held"], probe["parent"]) != (1000, hand["id"]):
            yield f"half a fork is there: {probe}"
        if answer is not None and verb == "stop" and hand["state"] != "stopped":
            yield f"the stop was answered and hand is {hand['state']}"
        if answer is not None and verb == "wake" and hand["state"] == "parked":
            yield "the start was answered and hand is still parked"
        branch = [agent for agent in named.values() if agent["name"].startswith(("branch", "leaf"))]
        if verb == "disband" and len(branch) == 1:
            yield f"half a branch is there: {branch[0]['name']}"
        if answer is not None and verb == "disband" and branch:
            yield "the disband was answered and its branch is there"

    def restore(self, after: Agents) -> None:
        """Back to what the walk begins with."""
        for agent in after.values():
            if agent["state"] == "stopped" and agent["name"] == "hand":
                self.lives.call("start", agent="hand")
            elif agent["state"] == "parked":
                self.lives.call("start", agent=agent["id"])
            elif agent["state"] != "gone" and agent["name"].startswith(("probe", "branch")):
                self.lives.call("disband", agent=agent["id"])


#: The last is none of anyone's: the daemon is killed, and dies again on the way back.
VERBS = ("fork", "instruct", "stop", "restart", "disband", "recover")
#: For a kind that can be made to meet a limit: it does, and is tried again; who shares its login waits and follows.
LIMITS = ("park", "wake")
#: What is asked for those that are no verbs of their own.
METHODS = {"park": "instruct", "wake": "start"}


def _others(verb: str, before: Agents, after: Agents) -> Iterator[str]:
    """Whom the verb was not about is as it was."""
    for agent in before.values():
        name = agent["name"]
        now = after.get(agent["id"])
        if agent["state"] == "gone" or (verb == "disband" and name.startswith(("branch", "leaf"))):
            continue
        if now is None:
            yield f"{name} is not there any more"
        elif now["state"] == "parked" and not (now["until"] and now["limit"]):
            yield f"{name} is parked, and nobody knows until when or why"
        elif now["state"] != agent["state"] and verb not in LIMITS and not (name == "hand" and verb == "stop"):
            yield f"{name} was {agent['state']} and is {now['state']}"
        elif now["crashes"] != agent["crashes"]:
            yield f"{name} had {agent['crashes']} crashes and has {now['crashes']}"


def walked(lives: Lives, subject: Subject, verb: str) -> Walk:
    """The walk over one verb, from a fleet that is fresh."""
    walk = Walk(lives, subject)
    try:
        walk.begin()
        walk.walk(verb)
    except (KitError, Failure) as error:
        walk.wrong.append(f"after {walk.walked[-1] if walk.walked else 'nothing'}: {error}")
    return walk
