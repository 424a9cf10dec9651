"""`about AGENT`, drawn: one agent whole, a line a thing. It invents no reason."""

from __future__ import annotations

import time

from supervisor.core.units import show_duration
from supervisor.ctl.changing import holdings
from supervisor.ctl.looking import pairs, right
from supervisor.ctl.refusal import shown
from supervisor.ctl.screen import STATE_STYLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from supervisor.ctl.errand import Errand

    Plain = Mapping[str, Any]


def tell(errand: Errand) -> int:
    """Ask, and draw."""
    answer = errand.ask()
    return errand.answer(answer, about(errand, answer))


def about(errand: Errand, answer: Plain) -> Iterable[str]:
    """The whole of it."""
    state = errand.word(answer.get("state"))
    head = errand.screen.style(errand.who(answer), "bold")
    yield f"{head}  {errand.screen.style(state, STATE_STYLE.get(state, ''))}"
    rows = [*_who(errand, answer), *_program(errand, answer), *_holds(errand, answer), *_talk(errand, answer)]
    rows += _runs(errand, answer)
    yield from pairs(errand, [row for row in rows if row[1]])


def _who(errand: Errand, answer: Plain) -> Iterable[tuple[str, str]]:
    yield from ((key, errand.word(answer.get(key))) for key in ("role", "description", "project", "directory"))
    parent = answer.get("parent")
    yield "started by", errand.who(parent) if parent else "a person"
    tasks = answer.get("tasks") or {}
    yield "tasks", f"{tasks.get('done') or 0} done" + (f" of {tasks['max']}" if tasks.get("max") else "")


def _program(errand: Errand, answer: Plain) -> Iterable[tuple[str, str]]:
    kind = answer.get("kind") or {}
    yield "kind", errand.word(kind.get("name"))
    found, named = errand.word(kind.get("path")), errand.word(kind.get("program"))
    version = f", version {errand.word(kind.get('version'))}" if kind.get("version") else ""
    yield "program", f"{found}{version}" if found else f"{named}: not found" if named else ""
    model = answer.get("model") or {}
    name, reported = errand.word(model.get("name")), errand.word(model.get("reported"))
    yield "model", _whose(errand, name, model.get("from")) if name else "its program's own choice"
    yield "model", f"it says that it uses {reported}" if reported and reported != name else ""
    yield from (("model", f"{errand.word(each)} is outside what it holds") for each in model.get("outside") or ())
    tools = answer.get("tools") or {}
    names = tools.get("names")
    listed = ", ".join(errand.word(each) for each in names or ()) or "none"
    yield "tools", "its program's own" if names is None else _whose(errand, listed, tools.get("from"))
    yield from (("not enforced", errand.word(each)) for each in answer.get("unenforced") or ())


def _whose(errand: Errand, value: str, word: object) -> str:
    return f"{value} ({errand.word(word)})" if word else value


def _holds(errand: Errand, answer: Plain) -> Iterable[tuple[str, str]]:
    yield from (("holds", line) for line in holdings(errand, answer.get("grant") or {}))
    bounds = (answer.get("bounds") or {}).items()
    yield from (("holds", f"{errand.word(key)} {shown(key, value)}") for key, value in bounds if value is not None)
    rights = (answer.get("rights") or {}).items()
    yield from (("rights", right(errand, key, value)) for key, value in rights if value is not None)


def _talk(errand: Errand, answer: Plain) -> Iterable[tuple[str, str]]:
    session = answer.get("session") or {}
    yield "session", errand.word(session.get("id"))
    yield "session", errand.word(session.get("file"))
    reopen = errand.word(session.get("reopen"))
    yield "by hand", f"{reopen}" + ("   (stop it first: one at a time)" if reopen and answer.get("pid") else "")
    yield from ((key, errand.word(answer.get(key))) for key in ("transcript", "stderr"))
    delivery = answer.get("delivery") or {}
    yield "delivery", ": ".join(errand.word(delivery.get(key)) for key in ("guarantee", "words") if delivery.get(key))


def _runs(errand: Errand, answer: Plain) -> Iterable[tuple[str, str]]:
    pid, run, until = answer.get("pid"), answer.get("run"), answer.get("until")
    yield "run", f"{run}" + (f", pid {pid}" if pid else "")
    if isinstance(until, (int, float)):
        yield "run", f"next in {show_duration(max(0.0, until - time.time()))}"
    restart = answer.get("restart") or {}
    failed = restart.get("failed")
    yield "restart", errand.word(restart.get("policy")) + (f", failed {failed} times so far" if failed else "")
    ended = answer.get("exit")
    if ended:
        signal, code = ended.get("signal"), ended.get("code")
        how = f"signal {signal}" if signal is not None else f"exit code {code}" if code is not None else "unknown"
        yield "last exit", how + (", out of memory" if ended.get("oom") else "")
    yield "trouble", errand.word(answer.get("reason"))
