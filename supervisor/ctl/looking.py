"""Verbs that only look: asks once, and draws the answer."""

from __future__ import annotations

import time

from supervisor.core.units import show_duration
from supervisor.ctl import plain
from supervisor.ctl.branches import Fold
from supervisor.ctl.changing import holdings
from supervisor.ctl.columns import Column, table
from supervisor.ctl.refusal import shown
from supervisor.ctl.tree import draw, login, waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from supervisor.ctl.columns import Cell
    from supervisor.ctl.errand import Errand


def look(errand: Errand) -> int:
    """One answer, drawn."""
    verb = errand.asked.verb.name
    if verb == "tree" and errand.own.get("watch"):
        from supervisor.ctl.watch import watch

        return watch(errand)
    result = errand.ask()
    if verb == "tree" and not errand.asked.json:
        return errand.answer(result, draw(result, errand.screen, Fold(everything=bool(errand.own.get("all")))))
    draws = {"status": status, "whoami": whoami, "config": config}
    return errand.answer(result, draws[verb](errand, result) if verb in draws else ())


def pairs(errand: Errand, rows: Sequence[tuple[str, str]]) -> Iterable[str]:
    """Words and what they are, one below the other. A word is said once for all that stands below it."""
    wide = plain.widest(word for word, _ in rows)
    said = ""
    for word, value in rows:
        shown = "" if word == said else word
        yield errand.screen.style(plain.fit(shown, wide, ""), "dim") + "  " + value
        said = word


def status(errand: Errand, answer: Mapping[str, Any]) -> Iterable[str]:
    """Is the daemon well?"""
    warden = answer.get("warden")
    kept = f"warden {warden}" if warden else "kept by systemd" if answer.get("systemd") else "no warden"
    pid = f"pid {answer.get('pid')}, {kept}"
    lag = answer.get("lag_ms")
    rows = [
        ("daemon", f"{errand.word(answer.get('version'))}, {pid}"),
        ("up", show_duration(float(answer.get("uptime") or 0))),
        ("tier", errand.word(answer.get("tier"))),
        ("socket", f"{errand.word(answer.get('socket'))}, of uid {errand.word(answer.get('uid'))}"),
        ("loop", f"at most {lag:.1f} ms late" if isinstance(lag, (int, float)) else "not measured"),
    ]
    yield from pairs(errand, rows)
    projects = answer.get("projects") or ()
    yield ""
    if projects:
        yield from table(_PROJECTS, [_project(errand, project) for project in projects], errand.screen)
    else:
        yield "no project: supervisorctl up accepts an agents.toml and runs it"
    for stopped in answer.get("limits") or ():
        yield ""
        yield errand.screen.style(
            plain.cut(login(stopped, errand.screen), errand.screen.width, errand.screen.mark), "yellow"
        )
    for project in projects:
        for words in waiting(project.get("line") or (), errand.screen, time.time()):
            yield errand.screen.style(f"{errand.word(project.get('name'))}: {words}", "yellow")
    faults = answer.get("faults") or ()
    yield ""
    yield errand.screen.style("no faults", "green") if not faults else errand.screen.style("faults", "red bold")
    yield from (f"  {_fault(errand, fault)}" for fault in faults)


_PROJECTS = (
    Column("PROJECT", least=10),
    Column("STATE"),
    Column("AGENTS", right=True),
    Column("SEQ", right=True),
    Column("FILE", least=20),
)


def _project(errand: Errand, project: Mapping[str, Any]) -> list[Cell]:
    journal = project.get("journal") or {}
    state = errand.word(project.get("state"))
    changed = project.get("changed")
    file = errand.word(project.get("file"))
    return [
        (errand.word(project.get("name")), "bold"),
        (state, "green" if state == "up" else "dim"),
        (str(project.get("agents", "")), ""),
        (str(journal.get("seq", "")), "dim"),
        (f"{file} has changed since: supervisorctl reload" if changed else file, "yellow" if changed else "dim"),
    ]


def _fault(errand: Errand, fault: object) -> str:
    if not isinstance(fault, dict):
        return errand.word(fault)
    at = fault.get("at")
    clock = time.strftime("%d %b %H:%M  ", time.localtime(at)) if isinstance(at, (int, float)) else ""
    told = [errand.word(value) for key, value in fault.items() if key != "at" and value is not None]
    return clock + ": ".join(word for word in told if word)


def whoami(errand: Errand, answer: Mapping[str, Any]) -> Iterable[str]:
    """Who the kernel says the caller is."""
    if answer.get("principal") != "agent":
        yield errand.screen.style("operator", "bold") + ": a person, or what one started outside the fleet"
        if answer.get("project"):
            yield from pairs(errand, [("project", errand.word(answer.get("project")))])
        return
    yield errand.screen.style(errand.who(answer), "bold")
    rows = [(key, errand.word(answer.get(key))) for key in ("role", "description", "kind", "model", "project")]
    parent = answer.get("parent")
    rows.append(("started by", errand.who(parent) if parent else "a person"))
    rows += [("holds", line) for line in holdings(errand, answer.get("grant") or {})]
    bounds = (answer.get("bounds") or {}).items()
    rows += [("holds", f"{errand.word(field)} {shown(field, value)}") for field, value in bounds if value is not None]
    rights = (answer.get("rights") or {}).items()
    rows += [("rights", right(errand, field, value)) for field, value in rights if value is not None]
    tasks = answer.get("tasks") or {}
    if tasks:
        rows.append(("tasks", f"{tasks.get('done') or 0} done" + (f" of {tasks['max']}" if tasks.get("max") else "")))
    rows.append(("task", errand.word(answer.get("task"))))
    yield from pairs(errand, [row for row in rows if row[1]])


def right(errand: Errand, field: str, value: object) -> str:
    """A right as people read it."""
    if isinstance(value, bool):
        return f"{errand.word(field)} {'yes' if value else 'no'}"
    if isinstance(value, (list, tuple)):
        return f"{errand.word(field)} {', '.join(errand.word(each) for each in value) or 'none'}"
    return f"{errand.word(field)} {errand.word(value)}"


def config(errand: Errand, answer: Mapping[str, Any]) -> Iterable[str]:
    """Each value in force and where it comes from."""
    columns = (Column("KEY", least=24), Column("VALUE", least=24), Column("ORIGIN", least=16))
    rows: list[list[Cell]] = []
    for value in answer.get("values") or ():
        origin = errand.word(value.get("origin"))
        style = "dim" if origin == "built-in" else ""
        rows.append([(errand.word(value.get("key")), style), (errand.word(value.get("value")), style), (origin, "dim")])
    yield from table(columns, rows, errand.screen)
