"""Turns the agents of `tree --json` into rows with branch lines, and folds what would drown the rest. It
draws no column."""

from __future__ import annotations

from supervisor.core.units import show_count
from supervisor.ctl import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from supervisor.ctl.screen import Screen

    Agent = Mapping[str, Any]

#: The order in which states are counted in a sentence.
STATES = ("working", "waiting", "starting", "standing", "parked", "backoff", "stopping", "stopped", "gone")
#: A tree with more rows than this is folded further, step by step, until it has no more.
ROWS = 60
_NAMED = 3
#: (levels, how many leaves of one state may stand under one parent, how many are kept where it is more)
_STEPS = ((8, 24, 12), (8, 8, 5), (8, 4, 2), (8, 1, 0), (4, 1, 0), (3, 1, 0), (2, 1, 0), (1, 0, 0))


class Fold:
    """How much may be shown: everything, or about `rows` rows."""

    __slots__ = ("everything", "rows")

    def __init__(self, *, everything: bool = False, rows: int = ROWS) -> None:
        self.everything = everything
        self.rows = rows


class Row:
    """One line of the tree: an agent, or (`agent` None) a note about what was folded here."""

    __slots__ = ("agent", "note", "prefix")

    def __init__(self, prefix: str, agent: Agent | None, note: str = "") -> None:
        self.prefix = prefix
        self.agent = agent
        self.note = note


def children(agent: Agent) -> Sequence[Agent]:
    return agent.get("children") or ()


def below(agents: Iterable[Agent]) -> list[Agent]:
    """All of them and all below them, without recursion: a tree may be as deep as it likes."""
    found: list[Agent] = []
    todo = list(agents)
    while todo:
        agent = todo.pop()
        found.append(agent)
        todo.extend(children(agent))
    return found


def tokens(agent: Agent, which: str) -> int:
    """Every token that is billed, cached ones included; `which` is `own` or `branch`."""
    usage = agent.get(which) or {}
    return sum(int(usage.get(key) or 0) for key in ("input", "cache_read", "cache_write", "output"))


def counted(agents: Iterable[Agent], screen: Screen) -> str:
    """`3 working, 2 standing`."""
    states: dict[str, int] = {}
    for agent in agents:
        state = plain.one_line(agent.get("state"), ascii_only=not screen.utf8) or "unknown"
        states[state] = states.get(state, 0) + 1
    order = {state: at for at, state in enumerate(STATES)}
    return ", ".join(f"{states[state]} {state}" for state in sorted(states, key=lambda s: order.get(s, len(order))))


def grown(agents: Sequence[Agent], fold: Fold, screen: Screen) -> list[Row]:
    """The rows of a tree. Gone agents are always folded, the rest as far as it must be."""
    if fold.everything:
        grower = _Grower(_ALL, screen)
        grower.grow(agents, "", 1)
        return grower.rows
    rows: list[Row] = []
    for step in _STEPS:
        grower = _Grower(step, screen)
        grower.grow(agents, "", 1)
        rows = grower.rows
        if len(rows) <= fold.rows:
            break
    return rows


_ALL = (1 << 30, 1 << 30, 1 << 30)


class _Grower:
    """Walks the tree once and gathers its rows."""

    def __init__(self, step: tuple[int, int, int], screen: Screen) -> None:
        self.depth, self.many, self.keep = step
        self.everything = step is _ALL
        self.screen = screen
        self.rows: list[Row] = []
        strokes = ("├─ ", "└─ ", "│  ") if screen.utf8 else ("|- ", "`- ", "|  ")
        self.tee, self.corner, self.bar = strokes

    def grow(self, siblings: Sequence[Agent], prefix: str, level: int) -> None:
        shown, notes = self._parted(siblings)
        last = len(shown) + len(notes) - 1
        for at, agent in enumerate(shown):
            stroke, under = self._strokes(level, at == last)
            self.rows.append(Row(prefix + stroke, agent))
            offspring = children(agent)
            if offspring and level >= self.depth and not self.everything:
                deeper = below(offspring)
                self._note(
                    prefix + under + self.corner, f"{len(deeper)} below: {counted(deeper, self.screen)}", offspring
                )
            elif offspring:
                self.grow(offspring, prefix + under, level + 1)
        for at, (words, folded) in enumerate(notes, len(shown)):
            stroke, _ = self._strokes(level, at == last)
            self._note(prefix + stroke, words, folded)

    def _strokes(self, level: int, last: bool) -> tuple[str, str]:
        """What stands before an agent, and before all below it."""
        if level == 1:
            return "", ""
        return (self.corner, " " * len(self.bar)) if last else (self.tee, self.bar)

    def _note(self, prefix: str, words: str, folded: Iterable[Agent]) -> None:
        spent = sum(tokens(agent, "branch") for agent in folded)
        self.rows.append(Row(prefix, None, words + (f"{self.screen.dot}{show_count(spent)} tokens" if spent else "")))

    def _parted(self, siblings: Sequence[Agent]) -> tuple[list[Agent], list[tuple[str, list[Agent]]]]:
        """Which of the siblings are shown, and the words for each group that is not."""
        if self.everything:
            return list(siblings), []
        gone = [agent for agent in siblings if all(each.get("state") == "gone" for each in below([agent]))]
        hidden = {id(agent) for agent in gone}
        leaves: dict[str, list[Agent]] = {}
        for agent in siblings:
            if id(agent) not in hidden and not children(agent):
                leaves.setdefault(self._word(agent, "state"), []).append(agent)
        rest = []
        for group in leaves.values():
            if len(group) > self.many:
                rest += group[self.keep :]
        hidden.update(id(agent) for agent in rest)
        notes = [(f"{len(rest)} more: {counted(rest, self.screen)}", rest)] if rest else []
        if gone:
            names = ", ".join(self._word(agent, "name") for agent in gone[:_NAMED])
            more = f", {self.screen.mark}" if len(gone) > _NAMED else ""
            notes.append((f"{len(below(gone))} gone: {names}{more}", gone))
        return [agent for agent in siblings if id(agent) not in hidden], notes

    def _word(self, agent: Agent, key: str) -> str:
        return plain.one_line(agent.get(key), ascii_only=not self.screen.utf8)
