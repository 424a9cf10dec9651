"""Verbs that show what goes by: an agent's output, the journal's facts; once, or as they come."""

from __future__ import annotations

import json
import sys
import time

from supervisor.ctl import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from supervisor.ctl.errand import Errand

#: What stands in columns of its own; the rest of an event follows as words.
_COLUMNS = ("seq", "at", "by", "fact", "agent")


def follow(errand: Errand) -> int:
    """Print what there is, and with `--follow` what comes, line by line as it comes."""
    client = errand.client()
    params = dict(errand.params)
    with client:
        while True:
            more = None
            for part in client.stream(errand.asked.verb.name, errand.wire(params)):
                for item in _items(part):
                    _show(errand, item)
                sys.stdout.flush()
                more = part.get("next") if isinstance(part, dict) else None
            if more is None:
                return 0
            params["since"] = more  # a long answer comes in pieces, each asked for


def _items(part: object) -> Iterable[object]:
    """The lines or events of a result or of a notification."""
    if not isinstance(part, dict):
        return ()
    for key in ("lines", "events"):
        if isinstance(part.get(key), list):
            return [*part[key]]
    if "line" in part:
        return [part["line"]]
    return [part["event"]] if "event" in part else [part] if "fact" in part else ()


def _show(errand: Errand, item: object) -> None:
    if errand.asked.json:
        # One value a line: a stream has no end that an indented list could close at.
        print(json.dumps({"line": item} if errand.asked.verb.name == "logs" else item))
    elif isinstance(item, dict):
        print(event(errand, item))
    elif errand.own.get("raw"):
        print(str(item))
    else:
        print(plain.clean(str(item).rstrip("\r\n"), ascii_only=not errand.screen.utf8, lines=True))


def event(errand: Errand, fact: Mapping[str, Any]) -> str:
    """One fact on one line. On a terminal it is cut to the terminal's width, elsewhere it is whole."""
    screen = errand.screen
    at = fact.get("at")
    clock = time.strftime("%H:%M:%S", time.localtime(at)) if isinstance(at, (int, float)) else errand.word(at)
    head = f"{errand.word(fact.get('seq')):>6}  {clock}  "
    name = errand.word(fact.get("fact"))
    agent = errand.word(fact.get("agent"))
    rest = " ".join(f"{errand.word(key)}={_value(errand, value)}" for key, value in fact.items() if key not in _COLUMNS)
    by = errand.word(fact.get("by"))
    tail = "  ".join(part for part in (plain.fit(agent, 5, ""), rest, f"by {by}" if by else "") if part.strip())
    room = screen.width - plain.width(head) - 15
    if screen.tty:
        tail = plain.cut(tail, max(0, room), screen.mark)
    return screen.style(head, "dim") + screen.style(plain.fit(name, 13, screen.mark), "bold") + "  " + tail


def _value(errand: Errand, value: object) -> str:
    return errand.word(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
