"""One command on its way: what was asked, where from, onto what. It is handed to the verb that does it."""

from __future__ import annotations

import json
import sys

from supervisor.core.units import show_duration
from supervisor.ctl import call, plain
from supervisor.ctl.screen import Screen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from supervisor.ctl.options import Asked
    from supervisor.ctl.place import Place


class Progress:
    """One line on a terminal's stderr that says what is waited for and how long already; it takes itself away."""

    def __init__(self, what: str, *, quiet: bool = False) -> None:
        self.what = what
        self.shown = False
        self.said = 0
        self.quiet = quiet or not sys.stderr.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def tick(self, seconds: float) -> None:
        if not self.quiet and int(seconds) > self.said:
            self.shown, self.said = True, int(seconds)
            print(f"\r\x1b[Kwaiting: {self.what}, {show_duration(seconds)}", end="", file=sys.stderr, flush=True)


class Errand:
    """`screen` is what stdout is."""

    def __init__(self, asked: Asked, place: Place) -> None:
        self.asked = asked
        self.place = place
        self.screen = Screen.of(sys.stdout, place.environ)

    @property
    def params(self) -> dict[str, Any]:
        return self.asked.params

    @property
    def own(self) -> Mapping[str, Any]:
        return self.asked.own

    def client(self) -> call.Client:
        return call.connect(self.place.sockets, self.place.uid)

    def wire(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The params with what every method takes: where one stands, and the project where one named it."""
        full = dict(params)
        if self.asked.project:
            full["project"] = self.place.project(self.asked.project)
        if self.place.cwd and self.place.cwd.isprintable():
            full["cwd"] = self.place.cwd
        return full

    def ask(self, params: Mapping[str, Any] | None = None, client: call.Client | None = None) -> Any:
        """The answer of this errand's method, waited for as long as the person said, or as the verb needs."""
        given = self.params if params is None else params
        verb = self.asked.verb
        with client or self.client() as connection:
            if not verb.waits:
                return connection.call(verb.name, self.wire(given))
            within = given["timeout"] + call.SLACK if "timeout" in given else None
            with Progress(verb.name, quiet=self.asked.json) as progress:
                return connection.call(verb.name, self.wire(given), within, progress.tick)

    def answer(self, result: object, lines: Iterable[str]) -> int:
        """Print the answer: whole as JSON, or in words."""
        if self.asked.json:
            self.json(result)
        else:
            self.say(lines)
        return 0

    def json(self, value: object) -> None:
        """One value in ASCII, so that no terminal is moved by what it holds; indented where a person reads it."""
        print(json.dumps(value, indent=2 if self.screen.tty else None))

    def say(self, lines: Iterable[str]) -> None:
        for line in lines:
            print(line)

    def word(self, value: object) -> str:
        """Anything from an agent, fit for a line of this screen."""
        return plain.one_line(value, ascii_only=not self.screen.utf8)

    def who(self, agent: object) -> str:
        """`lead (a1)`."""
        if not isinstance(agent, dict):
            return self.word(agent)
        name, ident = self.word(agent.get("name")), self.word(agent.get("id"))
        return f"{name} ({ident})" if name and ident else name or ident
