"""What claude used, between one result and the next. The input of each call is booked as its message begins, the rest
when the result tells it: neither twice, whatever is repeated."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, evolve, field

from supervisor.core.ledger import UNKNOWN, ZERO, Report, Usage
from supervisor.kinds import claude_lines, fields
from supervisor.kinds.claude_lines import SYNTHETIC

#: So many messages are known again, and so many results.
REMEMBERED = 512
#: Of so many models it is known how large their windows are.
WINDOWS = 64


@define
class Books:
    """One run's."""

    #: calls since the last result, by the id of their message: model and input
    _open: dict[str, tuple[str, Usage]] = field(factory=dict)
    _closed: dict[str, None] = field(factory=dict)
    #: of the conversation's last call: what it held, by whom it was answered; and how large models' windows are
    _occupied: int = 0
    _model: str = ""
    _windows: dict[str, int] = field(factory=dict)

    def message(self, message: Mapping[str, object], *, aside: bool) -> list[Report]:
        """An assistant's message, which has a line for each of its parts. `aside` is one of a subagent: it says nothing
        of how full the window is."""
        name, model = fields.words(message, "id"), fields.words(message, "model")
        if model == SYNTHETIC or not name:
            return []
        usage = claude_lines.told(claude_lines.member(message, "usage"))
        if not aside:
            self._occupied, self._model = usage.tokens, model
        if name in self._closed:
            return []
        known = self._open.get(name)
        if known is not None and usage.beyond(known[1]) == ZERO:
            return []
        self._open[name] = model, usage if known is None else known[1].highest(usage)
        report = Report("call", self._open[name][1], id=name, model=model)
        return [report if aside else evolve(report, held=usage.tokens, window=self._windows.get(model))]

    def compacted(self) -> list[Report]:
        """What the conversation holds now the next call tells."""
        self._occupied = 0
        return [UNKNOWN]

    def result(self, said: Mapping[str, object]) -> list[Report]:
        """What the end of a turn adds to what was booked of it."""
        name = f"result:{said.get('uuid')}"
        known = [*self._open.values()]
        self.close()
        by_model = said.get("model_usage_since_last_result")
        if not isinstance(by_model, dict):
            turn = claude_lines.turn(claude_lines.member(said, "usage"))
            return _rest(name, {self._model: turn}, {self._model: self._model}, known)
        told = {key: claude_lines.member(by_model, key) for key in by_model}
        whole = {key: claude_lines.spent(usage) for key, usage in told.items()}
        also = {key: fields.words(usage, "canonicalModel", key) for key, usage in told.items()}
        reports = _rest(name, whole, also, known)
        full = self._full(told, also)
        if full is None:
            return reports
        if not reports:
            return [full]
        return [*reports[:-1], evolve(reports[-1], context=full.context, window=full.window, held=full.held)]

    def close(self) -> int:
        """The turn is over; how many calls were open."""
        count = len(self._open)
        self._closed |= dict.fromkeys(self._open)
        self._open.clear()
        while len(self._closed) > REMEMBERED:
            del self._closed[next(iter(self._closed))]
        return count

    @property
    def open(self) -> int:
        """How many calls began of which no result has told the rest."""
        return len(self._open)

    def _full(self, told: Mapping[str, Mapping[str, object]], also: Mapping[str, str]) -> Report | None:
        """How full the window is: the whole input of the last call."""
        usage = next((told[key] for key in told if self._model in (key, also[key])), None)
        window = 0 if usage is None else fields.whole(usage, "contextWindow")
        if not window or not self._occupied:
            return None
        if len(self._windows) < WINDOWS:
            self._windows[self._model] = window
        context = min(100.0, 100 * self._occupied / window)
        return Report("call", ZERO, context=context, window=window, held=self._occupied)


def _rest(
    name: str, whole: Mapping[str, Usage], also: Mapping[str, str], known: list[tuple[str, Usage]]
) -> list[Report]:
    """What each model used beyond the calls that are booked already. A call under a name that the result does not know
    is still in its sum."""
    owed: dict[str, Usage] = dict.fromkeys(whole, ZERO)
    strange = ZERO
    for model, usage in known:
        key = next((key for key in whole if model in (key, also[key])), None)
        if key is None:
            strange += usage
        else:
            owed[key] += usage
    reports: list[Report] = []
    for key, usage in whole.items():
        rest = usage.beyond(owed[key])
        left = rest.beyond(strange)
        strange = strange.beyond(rest)
        # Input that no message told: claude asked a model for itself, at least once.
        calls = 1 if left.input + left.cache_read + left.cache_write else 0
        if left != ZERO:
            reports.append(Report("call", evolve(left, calls=calls), id=f"{name}:{key}", model=key))
    return reports
