"""How much a line of JSON holds, told before it is decoded: a megabyte of one text is quick to read, a megabyte of
empty lists takes half a second. Stdlib only, and pure."""

from __future__ import annotations

#: A shorter line (bytes) is decoded before anyone notices, whatever it holds.
LIGHT = 16 * 1024
#: What begins or parts values.
SIGNS = b",[{"
#: More escapes than this are not looked through: a text of a megabyte has them in every fifth place.
ESCAPES = 200_000


def heavy(line: bytes, most: int) -> bool:
    """Whether a line may hold more than so many values. Takes a few milliseconds for a megabyte, whatever is in it."""
    if len(line) <= LIGHT or _count(line, SIGNS) <= most:
        return False
    texts = line
    if (escapes := _count(line, b"\\")) > 0:
        if escapes > ESCAPES:
            return True
        # With these out of the way every quotation mark begins or ends a text.
        texts = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    if _count(texts, b'"') > 4 * most:
        return True
    return _count(b"".join(texts.split(b'"')[::2]), SIGNS) > most


def _count(line: bytes, signs: bytes) -> int:
    """Linear, where `bytes.count` slows down with each one it finds."""
    return len(line) - len(line.translate(None, signs))
