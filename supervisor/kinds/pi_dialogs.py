"""Questions of pi's extensions to the person: which of them `approve` and `deny` answer, and which a text.

It must never choose for the person: a list without one clear yes is answered by a text that names what is chosen."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import frozen

from supervisor.kinds import fields

_YES = re.compile(r"(?:yes|y|allow|approve|accept|ok|okay|confirm|continue|proceed)\b", re.IGNORECASE)
_NO = re.compile(r"(?:no|n|deny|block|reject|decline|cancel|abort|stop)\b", re.IGNORECASE)
METHODS = frozenset({"select", "confirm", "input", "editor"})


@frozen
class Dialog:
    """One that waits. `yes` and `no` are the answers that approving and denying it come to; an empty `yes` cannot be
    approved."""

    name: str
    method: str
    question: str
    options: tuple[str, ...] = ()
    yes: str = ""
    no: str = ""
    #: how long it is up (seconds); 0 is for ever
    lasts: float = 0.0

    @property
    def prompt(self) -> str:
        """What `approve` and `deny` name it by; "" where a text answers it."""
        return self.name if self.method == "confirm" or self.yes else ""


def asked(said: Mapping[str, object]) -> Dialog | None:
    """The dialog of a request; None where it asks nothing."""
    method = fields.words(said, "method")
    if method not in METHODS:
        return None
    listed = said.get("options")
    options = tuple(each for each in listed if isinstance(each, str)) if isinstance(listed, list) else ()
    words = [shown(said), f"({' | '.join(options)})" if options else ""]
    question = fields.clip(" ".join(filter(None, words)))
    lasts = (fields.number(said, "timeout", fields.EXACT) or 0.0) / 1000
    return Dialog(fields.words(said, "id"), method, question, options, _only(_YES, options), _only(_NO, options), lasts)


def shown(said: Mapping[str, object]) -> str:
    """What a request says to people."""
    return " ".join(filter(None, (fields.words(said, "title"), fields.words(said, "message"))))


def _only(pattern: re.Pattern[str], options: tuple[str, ...]) -> str:
    found = [option for option in options if pattern.match(option.strip())]
    return found[0] if len(found) == 1 else ""


def named(waiting: Mapping[str, Dialog], prompt: str, question: str) -> Dialog | None:
    """The dialog that is meant by its prompt, or by its question where it has none."""
    for dialog in waiting.values():
        if dialog.prompt == prompt and (prompt or dialog.question == question):
            return dialog
    return None


def decided(dialog: Dialog, *, allow: bool | None) -> dict[str, object]:
    """The answer to one that is approved or denied, or that nobody has answered in time."""
    if allow is None:
        return _answer(dialog, cancelled=True)
    if dialog.method == "confirm":
        return _answer(dialog, confirmed=allow)
    chosen = dialog.yes if allow else dialog.no
    return _answer(dialog, value=chosen) if chosen else _answer(dialog, cancelled=True)


def told(dialog: Dialog, text: str) -> dict[str, object] | None:
    """The answer that a text is; None where it is none of what can be chosen."""
    said = text.strip()
    if dialog.method == "confirm":
        yes, no = _YES.fullmatch(said), _NO.fullmatch(said)
        return _answer(dialog, confirmed=bool(yes)) if yes or no else None
    if dialog.method != "select":
        return _answer(dialog, value=text)
    chosen = next((option for option in dialog.options if option.strip().casefold() == said.casefold()), None)
    if chosen is None and said.isascii() and said.isdigit() and 0 < int(said) <= len(dialog.options):
        chosen = dialog.options[int(said) - 1]
    return _answer(dialog, value=chosen) if chosen is not None else None


def _answer(dialog: Dialog, **more: object) -> dict[str, object]:
    return {"type": "extension_ui_response", "id": dialog.name, **more}


def cancel(waiting: dict[str, Dialog], *, questions: bool) -> list[dict[str, object]]:
    """Nobody answers what waits any more: the answers that say so. Without `questions` those stay that a text answers,
    which may come after the turn."""
    taken = [dialog for dialog in waiting.values() if questions or dialog.prompt]
    return [_answer(waiting.pop(dialog.name), cancelled=True) for dialog in taken]
