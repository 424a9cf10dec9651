"""Lays rows out in columns within a width: what is empty or least needed goes first. It knows no agents."""

from __future__ import annotations

from supervisor.ctl import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from supervisor.ctl.screen import Screen

    #: One cell: clean text and its styles.
    Cell = tuple[str, str]

_GAP = 2


class Column:
    """`drop`: the highest goes first when there is no room (0: stays); `least`: how far a flexible one may
    shrink (0: it is rigid)."""

    __slots__ = ("drop", "least", "right", "title")

    def __init__(self, title: str, *, drop: int = 0, least: int = 0, right: bool = False) -> None:
        self.title = title
        self.drop = drop
        self.least = least
        self.right = right


def layout(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int) -> list[tuple[int, int]]:
    """Which columns are shown, each with its width."""
    natural = [
        max(plain.width(column.title), plain.widest(row[at][0] for row in rows)) for at, column in enumerate(columns)
    ]
    shown = [at for at, column in enumerate(columns) if not column.drop or any(row[at][0] for row in rows)]

    def least(at: int) -> int:
        return min(natural[at], columns[at].least) if columns[at].least else natural[at]

    def needed() -> int:
        return sum(least(at) for at in shown) + _GAP * (len(shown) - 1)

    while needed() > width:
        droppable = [at for at in shown if columns[at].drop]
        if not droppable:
            break
        shown.remove(max(droppable, key=lambda at: columns[at].drop))
    return _shared(columns, natural, {at: least(at) for at in shown}, width)


def _shared(
    columns: Sequence[Column], natural: Sequence[int], widths: dict[int, int], width: int
) -> list[tuple[int, int]]:
    """Gives flexible columns what is left, the first no more than its part before the others had theirs.
    Where even the least was too much, the first gives way, then the others."""
    flexible = [at for at in widths if columns[at].least]
    spare = width - sum(widths.values()) - _GAP * (len(widths) - 1)
    for at in flexible:
        less = min(max(0, -spare), widths[at] - 1)
        widths[at] -= less
        spare += less
    first, others = flexible[:1], sorted(flexible[1:], key=lambda at: natural[at])
    part = [(at, min(natural[at], width * 2 // 5)) for at in first]
    for at, most in [*part, *((at, natural[at]) for at in [*others, *first])]:
        more = max(0, min(spare, most - widths[at]))
        widths[at] += more
        spare -= more
    return list(widths.items())


def line(cells: Sequence[Cell], columns: Sequence[Column], plan: Sequence[tuple[int, int]], screen: Screen) -> str:
    """One row. Styles go around the cut text, so they never count as width."""
    parts = []
    for at, columns_wide in plan:
        text, style = cells[at]
        fitted = plain.fit(text, columns_wide, screen.mark, right=columns[at].right)
        bare = fitted.strip()
        parts.append(fitted.replace(bare, screen.style(bare, style), 1) if bare else fitted)
    return (" " * _GAP).join(parts).rstrip()


def table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], screen: Screen) -> list[str]:
    """Titles and rows, ready to print."""
    plan = layout(columns, rows, screen.width)
    titles = line([(column.title, "dim") for column in columns], columns, plan, screen)
    return [titles, *(line(row, columns, plan, screen) for row in rows)]
