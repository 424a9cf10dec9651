"""Draws the tree: who started whom, what they do and what they spent. It asks nobody and prints nothing."""

from __future__ import annotations

import time

from supervisor.core.units import show_count, show_duration, show_money
from supervisor.ctl import plain
from supervisor.ctl.branches import Fold, Row, below, children, counted, grown, tokens
from supervisor.ctl.columns import Column, layout, line
from supervisor.ctl.screen import STATE_STYLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from supervisor.ctl.columns import Cell
    from supervisor.ctl.screen import Screen

#: In the order they stand; the highest `drop` is the first to go where there is no room.
COLUMNS = (
    Column("AGENT", least=18),
    Column("ID", drop=2, right=True),
    Column("KIND", drop=8, least=8),
    Column("ROLE", drop=9, least=10),
    Column("STATE", least=18),  # wide enough for `parked until 15:00`: an end is always shown
    Column("AGE", drop=1, right=True),
    Column("TASKS", drop=6, right=True),
    Column("OWN", drop=7, right=True),
    Column("BRANCH", drop=3, right=True),
    Column("LIMIT", drop=10, right=True),
    Column("CTX", drop=4, right=True),
    Column("LAST", drop=5, least=15),
)
_WARN, _FULL = 80, 95
_DAY = 86_400


def draw(
    answer: Mapping[str, Any], screen: Screen, fold: Fold, *, since: float = 0.0, now: float | None = None
) -> list[str]:
    """The lines of the whole drawing. `since`: how many seconds ago the answer was true; ages grow meanwhile."""
    agents: Sequence[Mapping[str, Any]] = answer.get("agents") or ()
    at = time.time() if now is None else now
    head = _head(answer, agents, screen) + [
        screen.style(plain.cut(login(each, screen, at), screen.width, screen.mark), "yellow")
        for each in answer.get("limits") or ()
    ]
    head += [
        screen.style(plain.cut(words, screen.width, screen.mark), "yellow")
        for words in waiting(answer.get("line") or (), screen, at)
    ]
    if not agents:
        empty = "no agents: supervisorctl fork starts one, supervisorctl up those of a file"
        return [*head, screen.style(plain.cut(empty, screen.width, screen.mark), "dim")]
    rows = grown(agents, fold, screen)
    cells = [_cells(row, screen, since, at) for row in rows]
    plan = layout(COLUMNS, [each for each in cells if each], screen.width)
    titles: list[Cell] = [(column.title, "dim") for column in COLUMNS]
    lines = [*head, line(titles, COLUMNS, plan, screen)]
    for row, cell in zip(rows, cells, strict=True):
        if cell:
            lines.append(line(cell, COLUMNS, plan, screen))
        else:
            note = plain.cut(f"{row.prefix}{screen.mark} {row.note}", screen.width, screen.mark)
            lines.append(screen.style(note, "dim"))
    if any(row.agent is None for row in rows):
        lines.append(screen.style(plain.cut("folded in part; --all shows all", screen.width, screen.mark), "dim"))
    return lines


def _head(answer: Mapping[str, Any], agents: Sequence[Mapping[str, Any]], screen: Screen) -> list[str]:
    """Project, numbers and states on one line, or on two where one is too short."""
    everyone = below(agents)
    spent = sum(tokens(agent, "branch") for agent in agents)
    cost = sum(cost_of(agent.get("branch")) for agent in agents)
    tier = plain.one_line(answer.get("tier"), ascii_only=not screen.utf8)
    parts = [f"{len(everyone)} agent{'' if len(everyone) == 1 else 's'}"]
    parts += [f"{show_count(spent)} tokens"] if spent else []
    parts += [show_money(cost)] if cost else []
    parts += [f"{tier} tier"] if tier else []
    name = plain.one_line(answer.get("project") or "no project", ascii_only=not screen.utf8)
    name = plain.cut(name, screen.width // 2, screen.mark)
    room = screen.width - plain.width(name)
    rest = screen.dot + screen.dot.join(parts)
    states = counted(everyone, screen)
    short = screen.style(name, "bold") + screen.style(plain.cut(rest, room, screen.mark), "dim")
    if plain.width(rest + screen.dot + states) <= room:
        return [short + (screen.style(screen.dot + states, "dim") if states else "")]
    return [short, screen.style(plain.cut(states, screen.width, screen.mark), "dim")]


def cost_of(usage: Mapping[str, Any] | None) -> int:
    """In nano-USD; on the wire it is in USD."""
    cost = (usage or {}).get("cost")
    return round(cost * 10**9) if isinstance(cost, (int, float)) else 0


def _cells(row: Row, screen: Screen, since: float, now: float) -> list[Cell]:
    agent = row.agent
    if agent is None:
        return []

    def text(key: str) -> str:
        return plain.one_line(agent.get(key), ascii_only=not screen.utf8)

    state = text("state")
    dim = "dim" if state in {"gone", "stopped"} else ""
    limit, limit_style = _limit(agent)
    full, full_style = context(agent)
    elapsed = agent.get("elapsed")
    age = show_duration(int(elapsed) + since) if isinstance(elapsed, (int, float)) else ""
    return [
        (row.prefix + text("name"), "bold" if not row.prefix and not dim else dim),
        (text("id"), "dim"),
        (text("kind"), dim),
        (text("role"), dim),
        (_state(agent, state, screen, now), STATE_STYLE.get(state, "")),
        (age, dim),
        (_tasks(agent), dim),
        (show_count(tokens(agent, "own")), dim),
        (show_count(tokens(agent, "branch")), limit_style or ("" if children(agent) else "dim")),
        (limit, limit_style),
        (full, full_style),
        _told(agent, state, screen, since, now, dim),
    ]


def _tasks(agent: Mapping[str, Any]) -> str:
    tasks = agent.get("tasks") or {}
    done, most = tasks.get("done") or 0, tasks.get("max")
    return f"{done}/{most}" if most else str(done)


def context(agent: Mapping[str, Any]) -> Cell:
    """How full its window is; marked where a table says how large that is."""
    percent = agent.get("context_percent")
    if not isinstance(percent, (int, float)):
        return "", ""
    about = "" if agent.get("context_window_from") in (None, "program") else "~"
    return f"{about}{percent:.0f}%", "red" if percent >= _FULL else "yellow" if percent >= _WARN else ""


def _limit(agent: Mapping[str, Any]) -> Cell:
    """How much of its tokens is spent or reserved, where it holds an account of its own."""
    held = ((agent.get("grant") or {}).get("tokens") or {}) if isinstance(agent.get("grant"), dict) else {}
    most = held.get("held")
    if not most:
        return "", ""
    used = 100 * (int(held.get("spent") or 0) + int(held.get("reserved") or 0)) // int(most)
    return f"{used}% of {show_count(int(most))}", "red" if used >= 100 else "yellow" if used >= _WARN else ""


def quiet(agent: Mapping[str, Any], since: float) -> float:
    """For how many seconds it has been silent in its turn, where that is long enough to be told; else 0. It goes on
    being so while the answer grows old."""
    silent, after = agent.get("silent"), agent.get("quiet_after")
    if not isinstance(silent, (int, float)) or not isinstance(after, (int, float)):
        return 0.0
    return silent + since if silent + since >= after else 0.0


def _told(agent: Mapping[str, Any], state: str, screen: Screen, since: float, now: float, dim: str) -> Cell:
    doing, silent = _doing(agent, state, screen, now), quiet(agent, since)
    if agent.get("wedged"):
        return f"wedged, stopped by a signal: kill -CONT {agent.get('pid')}", "red"
    if not silent:
        return doing, dim
    return f"quiet for {show_duration(silent)}" + (f": {doing}" if doing else ""), "yellow"


def _state(agent: Mapping[str, Any], state: str, screen: Screen, now: float) -> str:
    """With the end of what has one that people wait for."""
    if state != "parked" or not agent.get("until"):
        return state
    sort = plain.one_line((agent.get("limit") or {}).get("sort"), ascii_only=not screen.utf8)
    return f"{state} until {_clock(agent['until'], now, screen)}" + (f" ({sort})" if sort else "")


def _doing(agent: Mapping[str, Any], state: str, screen: Screen, now: float) -> str:
    """What a person wants to know of it next: what it waits for, until when, or its last line."""

    def text(key: str) -> str:
        return plain.one_line(agent.get(key), ascii_only=not screen.utf8)

    if state == "parked":
        return plain.one_line((agent.get("limit") or {}).get("text"), ascii_only=not screen.utf8) or text("last")
    if state == "backoff" and agent.get("until"):
        return f"until {_clock(agent['until'], now, screen)}" + (f": {text('last')}" if text("last") else "")
    prompt = agent.get("prompt")
    if prompt:
        question = plain.one_line(prompt.get("question"), ascii_only=not screen.utf8)
        return f"asks: {question} ({plain.one_line(prompt.get('id'), ascii_only=not screen.utf8)})"
    if state == "waiting" and text("waiting_on"):
        return f"on {text('waiting_on')}" + (f": {text('last')}" if text("last") else "")
    said = text("summary") if state in {"standing", "stopped", "gone"} else ""
    verdict = text("verdict") if said else ""
    return (f"{verdict}: {said}" if verdict else said) or text("last")


def waiting(line: Sequence[Mapping[str, Any]], screen: Screen, now: float) -> list[str]:
    """The forks that wait for room: one line for each limit, however many wait for it."""
    found: dict[str, list[float]] = {}
    for each in line:
        holder = each.get("holder") or {}
        name = plain.one_line(holder.get("name"), ascii_only=not screen.utf8)
        limit = plain.one_line(each.get("limit"), ascii_only=not screen.utf8)
        whose = f"{limit} of {name} ({plain.one_line(holder.get('id'))})" if holder else f"{limit} of the project"
        found.setdefault(whose, []).append(float(each.get("since") or now))
    return [
        f"{len(since)} fork{' waits' if len(since) == 1 else 's wait'} for room: {whose} are used up, "
        f"the longest for {show_duration(int(max(0.0, now - min(since))))}"
        for whose, since in found.items()
    ]


def login(stopped: Mapping[str, Any], screen: Screen, now: float | None = None) -> str:
    """A login that takes no more for now, on one line."""

    def text(value: object) -> str:
        return plain.one_line(value, ascii_only=not screen.utf8)

    kinds = ", ".join(text(kind) for kind in stopped.get("kinds") or ()) or "agents that are gone"
    until = _clock(stopped.get("until"), time.time() if now is None else now, screen)
    said = f": {text(stopped.get('text'))}" if stopped.get("text") else ""
    parked = stopped.get("parked") or 0
    return f"login of {kinds} stopped until {until} ({text(stopped.get('sort'))}), {parked} parked{said}"


def _clock(until: object, now: float, screen: Screen) -> str:
    """A time of day; with the day where it is not within one day."""
    if not isinstance(until, (int, float)):
        return plain.one_line(until, ascii_only=not screen.utf8)
    return time.strftime("%H:%M" if abs(until - now) < _DAY else "%a %d %H:%M", time.localtime(until))
