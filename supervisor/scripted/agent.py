"""The scripted agent: plays a script a turn and says in status lines what it does. No model, no network.

It must start quickly and import little, for fleets of hundreds; what a step needs, that step imports."""

from __future__ import annotations

import os
import sys

from supervisor.scripted.inbox import CutError, Inbox, StopError
from supervisor.scripted.memory import Memory
from supervisor.scripted.script import ScriptError, find, parse, sections

#: What an input without a script gets where the agent's instructions have none for it either.
HABIT = "say $text\nspend input=100 output=20\nreply echo: $text"


class AskedError(Exception):
    """It asked, and ends: who does one task and ends cannot wait for an answer."""


class Agent:
    """What steps work with: the inbox, the memory, and the values that `$name` stands for."""

    def __init__(self, environ: dict[str, str]) -> None:
        home, session = environ.get("FLEET_HOME", ""), environ.get("FLEET_SESSION", "")
        self.memory = Memory(home, session)
        #: it does what it is given and ends: the end of stdin says that there is no more
        self.once = bool(environ.get("FLEET_ONCE"))
        self.inbox = Inbox(patient=self.once)
        self.model = environ.get("FLEET_MODEL", "")
        self.start, self.habit = sections(_instructions(environ.get("FLEET_INSTRUCTIONS", "")))
        self.values = {"name": environ.get("FLEET_NAME", ""), "run": str(self.memory.run)}
        self.reply = ""
        #: the outcome of the last `supervisorctl`: `ok`, or what it was refused for
        self.outcome: tuple[str, ...] = ("ok",)
        self.calls = 0
        self.last_usage: dict[str, object] = {}
        #: ids of the inputs that this turn answers
        self.inputs: list[str] = []

    # --- saying

    def write(self, data: bytes, fd: int = 1) -> None:
        """All of it, as it is."""
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]

    def say(self, word: str, **more: object) -> None:
        """One status line."""
        import json  # noqa: PLC0415 - see inbox

        self.write(json.dumps({"fleet": word, **more}).encode() + b"\n")

    def fill(self, text: str) -> str:
        """The text with the values of `$text`, `$id` and the others in it."""
        if "$" in text:
            for name in sorted(self.values, key=len, reverse=True):
                text = text.replace(f"${name}", self.values[name])
        return text

    # --- playing

    def play(self, script: str) -> None:
        """All steps of a script."""
        from supervisor.scripted.steps import STEPS  # noqa: PLC0415 - see inbox

        for step in parse(script):
            doing = STEPS.get(step.word)
            if doing is None:
                raise ScriptError(f"no such step: {step.word}")
            doing(self, step)

    def turn(self, message: dict[str, str]) -> None:
        """One input from its start to its end."""
        name, text = message["id"], message["text"]
        self.inputs, self.reply = [name], ""
        if message.get("words"):
            self.memory.note("told", name)
        self.values |= {"id": name, "text": text, "seen": " ".join(self.memory.inputs), "answer": ""}
        self.inbox.busy = True
        self.say("turn", state="started", inputs=self.inputs)
        outcome, error = "ok", ""
        try:
            if self.memory.take(name):
                script = find(text)
                self.play(self.habit or HABIT if script is None else script)
            else:
                self.reply = f"{name} had come before"
        except AskedError:
            pass  # the answer is another run's
        except CutError:
            # What is queued is dropped with the turn, as an agent CLI's interruption does.
            outcome, self.inputs = "aborted", self.inputs + [late["id"] for late in self.inbox.drain()]
        except ScriptError as failure:
            outcome, error = "error", str(failure)
        except StopError:
            self.ended("aborted", "")
            raise
        self.ended(outcome, error)

    def ended(self, outcome: str, error: str) -> None:
        """Say that the turn is over."""
        self.inbox.busy = False
        self.say("turn", state="ended", outcome=outcome, text=self.reply, error=error, inputs=self.inputs)

    def live(self) -> None:
        """The start, then a turn an input, until stdin ends."""
        if self.start:
            self.play(self.start)
        if self.model:
            self.say("ready", session=self.memory.session, turns=True, model=self.model)
        else:  # by hand, so that an agent that is never given anything never loads json
            self.write(f'{{"fleet":"ready","session":"{self.memory.session}","turns":true}}\n'.encode())
        if self.memory.spent:  # what was said of it in earlier runs may not have been heard
            self.say("usage", scope="total", epoch=self.memory.session, **self.memory.spent)
        while True:
            self.turn(self.inbox.next())


def _instructions(given: str) -> str:
    """Instructions are a text, or the absolute path of a file that has it."""
    if given.startswith("/") and "\n" not in given:
        with open(given, encoding="utf-8") as file:
            return file.read()
    return given


def main() -> None:
    """Live; leave with 0 when stdin ends, with 66 when there is no conversation to resume."""
    agent = Agent(dict(os.environ))
    if os.environ.get("FLEET_RESUME") and not agent.memory.known:
        sys.exit(f"scripted agent: there is no session {agent.memory.session} to resume")
    try:
        agent.live()
    except StopError:
        return
    except ScriptError as failure:
        sys.exit(f"scripted agent: {failure}")
    except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        os._exit(130)
