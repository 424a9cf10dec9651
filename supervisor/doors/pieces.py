"""A large answer as JSON in pieces, so that its encoding holds nobody up. It comes to what `wire.result` gives."""

from __future__ import annotations

from collections.abc import Iterator

from supervisor.doors import wire
from supervisor.doors.wire import ENCODER

#: A shorter list is encoded as a whole; of a longer one so many items at a time.
MANY = 64


def pieces(ident: int | str | None, value: object) -> Iterator[bytes]:
    """The line of an answer. Raises as `wire.result` does, whatever came before."""
    if not isinstance(value, dict) or not any(_long(each) for each in value.values()):
        yield wire.result(ident, value)
        return
    comma, colon = ENCODER.item_separator, ENCODER.key_separator
    before = ENCODER.encode({"jsonrpc": "2.0", "id": ident})[:-1] + f'{comma}"result"{colon}{{'
    for key, each in value.items():
        before += ENCODER.encode(str(key)) + colon
        if _long(each):
            before += "["
            for begin in range(0, len(each), MANY):
                yield _bytes(before + ENCODER.encode(each[begin : begin + MANY])[1:-1])
                before = comma
            before = "]"
        else:
            before += ENCODER.encode(each)
        yield _bytes(before)
        before = comma
    yield b"}}\n"


def _long(value: object) -> bool:
    return isinstance(value, list) and len(value) > MANY


def _bytes(text: str) -> bytes:
    # As in `wire`: a lone surrogate stands for a byte that was no UTF-8.
    return text.encode("utf-8", "replace")
