"""Draws who spent what: a table, or CSV for other programs. It adds nothing up: every number is the daemon's."""

from __future__ import annotations

from supervisor.core.units import show_count, show_duration, show_money
from supervisor.ctl.columns import Column, table
from supervisor.ctl.outcome import USAGE, Failure
from supervisor.ctl.screen import STATE_STYLE
from supervisor.ctl.tree import context, cost_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from supervisor.ctl.columns import Cell
    from supervisor.ctl.errand import Errand

#: What is counted, in the order of `--json` and `--csv`.
NUMBERS = (
    "input", "cache_read", "cache_write", "output", "reasoning", "calls", "turns", "cost", "incomplete", "estimated",
)  # fmt: skip
_NAMED = ("id", "name", "parent", "role", "kind", "model", "state")
_CONTEXT = ("context_percent", "context_tokens", "context_window", "context_window_from")
#: What comes of calls that were cut: what is booked of them is less than the bill.
_AT_LEAST = "≥"
_ABOUT = "~"

_AGENT = (
    Column("AGENT", least=16),
    Column("ID", drop=6, right=True),
    Column("ROLE", drop=12, least=8),
    Column("MODEL", drop=8, least=10),
    Column("STATE", drop=7),
)
_COUNTS = (
    Column("TOTAL", right=True),
    Column("INPUT", drop=4, right=True),
    Column("CACHED", drop=3, right=True),
    Column("OUTPUT", drop=2, right=True),
    Column("CALLS", drop=9, right=True),
    Column("TURNS", drop=10, right=True),
    Column("COST", drop=1, right=True),
)
_BRANCH = (
    Column("BRANCH", drop=5, right=True),
    Column("CONTEXT", drop=6, right=True),
    Column("TIME", drop=11, right=True),
)


def answer(errand: Errand) -> int:
    """Of the daemon, or of files that were recorded."""
    own = errand.own
    if own.get("transcript"):
        from supervisor.ctl import recorded

        return recorded.book(errand)
    alone = [f"--{name}" for name in ("kind", "after") if own.get(name)]
    if alone:
        raise Failure(USAGE, f"{alone[0]} goes with --transcript", "see: supervisorctl usage --help")
    if own.get("csv") and errand.asked.json:
        raise Failure(USAGE, "--csv or --json, not both")
    result = errand.ask()
    if own.get("csv"):
        errand.say(csv(result))
        return 0
    return errand.answer(result, draw(errand, result))


def draw(errand: Errand, given: Mapping[str, Any]) -> Iterable[str]:
    """Who spent the tokens, as the daemon sorts them, and what the numbers do not say."""
    by = str(given.get("by") or "agent")
    agents = "agents" in given or by in ("agent", "branch")
    head = _AGENT if agents else (Column(by.upper(), least=16),)
    columns = (*head, *_COUNTS, *(_BRANCH if agents else ()))
    rows = [_row(errand, row, by, agents=agents) for row in given.get("agents") or given.get("rows") or ()]
    total: list[Cell] = [("total", "bold"), *[("", "")] * (len(head) - 1)]
    total += [(text, "bold") for text, _ in counts(errand, given.get("total") or {})]
    rows.append(total + [("", "")] * (len(columns) - len(total)))
    yield errand.screen.style(f"{errand.word(given.get('project'))}, {_since(errand, given)}", "bold")
    yield from table(columns, rows, errand.screen)
    yield from notes(errand, given)


def _since(errand: Errand, given: Mapping[str, Any]) -> str:
    since = errand.word(given.get("since") or "all")
    if since == "all":
        return "all that was ever spent"
    return f"spent since {since}"


def _row(errand: Errand, row: Mapping[str, Any], by: str, *, agents: bool) -> list[Cell]:
    own = row.get("own") or {}
    # A branch is its agent and all below: one number a row adds up to the total.
    numbers = counts(errand, row.get("branch") or {}) if by == "branch" else counts(errand, own)
    if not agents:
        return [(errand.word(row.get(by)) or "(not known)", ""), *numbers]
    state, elapsed, branch = errand.word(row.get("state")), row.get("elapsed"), billed(row.get("branch") or {})
    return [
        (errand.word(row.get("name")) or "(no longer known)", ""),
        (errand.word(row.get("id")), "dim"),
        (errand.word(row.get("role")), "dim"),
        (errand.word(row.get("model")), "dim"),
        (state, STATE_STYLE.get(state, "")),
        *numbers,
        (show_count(branch) if branch != billed(own) and by != "branch" else "", "dim"),
        _window(row),
        (show_duration(float(elapsed)) if isinstance(elapsed, (int, float)) else "", "dim"),
    ]


def _window(row: Mapping[str, Any]) -> Cell:
    """How full its window is, and how large that."""
    full, style = context(row)
    held, size = row.get("context_tokens"), row.get("context_window")
    if not full:
        return (show_count(held) if isinstance(held, int) else ""), ""
    return f"{full} of {show_count(size)}" if isinstance(size, int) else full, style


def billed(own: Mapping[str, Any]) -> int:
    """Every token that is billed, cached ones included."""
    return sum(int(own.get(key) or 0) for key in ("input", "cache_read", "cache_write", "output"))


def counts(errand: Errand, own: Mapping[str, Any]) -> list[Cell]:
    """The numbers of a row, marked where they are less than was spent, or estimated."""
    utf8 = errand.screen.utf8
    least = (_AT_LEAST if utf8 else ">=") if own.get("incomplete") else ""

    def number(*keys: str) -> Cell:
        return show_count(sum(int(own.get(key) or 0) for key in keys)), ""

    cost = cost_of(own)
    about = _ABOUT if own.get("estimated") else ""
    return [
        (least + show_count(billed(own)), ""),
        number("input"),
        number("cache_read", "cache_write"),
        number("output"),
        number("calls"),
        number("turns"),
        (least + about + show_money(cost) if cost else "", ""),
    ]


def notes(errand: Errand, given: Mapping[str, Any]) -> Iterable[str]:
    """What the marks mean, where there are any."""
    total = given.get("total") or {}
    told = []
    if cut := int(total.get("incomplete") or 0):
        mark = _AT_LEAST if errand.screen.utf8 else ">="
        calls = "1 call" if cut == 1 else f"{cut} calls"
        told.append(f"{mark} at least: {calls} ended before the whole usage was told")
    if total.get("estimated"):
        told.append(f"{_ABOUT} estimated where the program says no cost: {errand.word(given.get('prices'))}")
    unpriced = [errand.word(model) or "a model that is not named" for model in given.get("unpriced") or ()]
    if unpriced:
        others = f" and {len(unpriced) - 5} more" if len(unpriced) > 5 else ""
        told.append(f"without a known price: {', '.join(unpriced[:5])}{others}")
    yield from (errand.screen.style(line, "dim") for line in told)


def csv(given: Mapping[str, Any]) -> Iterable[str]:
    """A line a row, with a head; costs are in US dollars. Only what a row itself spent, so that lines add up: with
    `--by branch`, what its branch did."""
    import csv as writer
    import io

    by = str(given.get("by") or "agent")
    rows = given.get("agents") if by in ("agent", "branch") else given.get("rows")
    keys = _NAMED if by in ("agent", "branch") else (by,)
    out = io.StringIO()
    lines = writer.writer(out, lineterminator="\n")
    more = _CONTEXT if keys is _NAMED else ()
    lines.writerow([*keys, *NUMBERS, *more])
    for row in rows or ():
        spent = row.get("branch" if by == "branch" else "own") or {}
        named = ["" if row.get(key) is None else _cell(str(row[key])) for key in keys]
        full = ["" if row.get(key) is None else _cell(str(row[key])) for key in more]
        lines.writerow([*named, *(_number(spent.get(key)) for key in NUMBERS), *full])
    yield from out.getvalue().splitlines()


def _cell(text: str) -> str:
    """A name as it is, without what would move a terminal, and without what a spreadsheet takes for a formula."""
    from supervisor.ctl import plain

    shown = plain.one_line(text)
    return f"'{shown}" if shown[:1] in ("=", "+", "-", "@") else shown


def _number(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.9f}".rstrip("0").rstrip(".")
    return str(value if value is not None else 0)
