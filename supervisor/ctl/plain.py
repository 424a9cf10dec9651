"""Text from agents made safe for a terminal, and measured in its columns. What it lets through can neither
move the cursor nor hide."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: Categories that never reach a terminal: controls, format signs (bidi, zero width, tags), halves of pairs,
#: private and unassigned signs (their width is unknown), line and paragraph separators.
_BARRED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Letters and marks that are drawn as nothing, and so could hide or could break a column.
_INVISIBLE = frozenset((0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x3164, 0xFFA0))
_MARK = frozenset({"Mn", "Me"})
_TEXT_OR_EMOJI = ("\ufe0e", "\ufe0f")
#: More marks on one letter than this are no language but a way to paint over other lines.
_MARKS = 2
#: What we draw with ourselves takes one column each: known without the table of all signs, which is slow to load.
_STROKES = dict.fromkeys(map(ord, "│├└─…·"), "-")
_NAMES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape(sign: str) -> str:
    code = ord(sign)
    if sign in _NAMES:
        return _NAMES[sign]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _hidden(code: int) -> bool:
    """Jamo that join what stands before them, variation selectors, and the fillers."""
    return (
        code in _INVISIBLE
        or 0x1161 <= code <= 0x11FF
        or 0xD7B0 <= code <= 0xD7FF
        or 0xFE00 <= code <= 0xFE0D
        or 0xE0100 <= code <= 0xE01EF
    )


def clean(text: object, *, ascii_only: bool = False, lines: bool = False) -> str:
    """The text with every sign visible. `lines` keeps line ends and tabs: for a text, not for a column."""
    given = text if isinstance(text, str) else "" if text is None else str(text)
    if lines and ("\n" in given or "\t" in given):
        return _by_parts(given, ascii_only)
    if given.isascii() and given.isprintable():
        return given
    return _signs(given, ascii_only)


def _by_parts(given: str, ascii_only: bool) -> str:
    def row(text: str) -> str:
        return "\t".join(clean(part, ascii_only=ascii_only) for part in text.split("\t"))

    return "\n".join(row(text) for text in given.replace("\r\n", "\n").split("\n"))


def _signs(given: str, ascii_only: bool) -> str:
    import unicodedata

    shown: list[str] = []
    marks = _MARKS  # a mark at the beginning has no letter to stand on
    for sign in unicodedata.normalize("NFC", given):
        category = unicodedata.category(sign)
        marks = marks + 1 if category in _MARK else 0
        if sign in _TEXT_OR_EMOJI:
            continue
        if category == "Zs":
            shown.append(" ")
        elif category in _BARRED or marks > _MARKS or _hidden(ord(sign)) or (ascii_only and not sign.isascii()):
            shown.append(_escape(sign))
            marks = 0 if category not in _MARK else _MARKS
        else:
            shown.append(sign)
    return "".join(shown)


def one_line(text: object, *, ascii_only: bool = False) -> str:
    """A text for a column: its line ends and runs of white space are single spaces."""
    given = text if isinstance(text, str) else "" if text is None else str(text)
    return clean(" ".join(given.split()), ascii_only=ascii_only)


def width(text: str) -> int:
    """How many columns a clean text takes."""
    if text.isascii() or text.translate(_STROKES).isascii():
        return len(text)
    import unicodedata

    taken = 0
    for sign in text:
        if unicodedata.category(sign) not in _MARK:
            taken += 2 if unicodedata.east_asian_width(sign) in {"W", "F"} else 1
    return taken


def cut(text: str, columns: int, mark: str) -> str:
    """The clean text in at most so many columns; `mark` says that something is missing."""
    if columns <= 0:
        return ""
    if width(text) <= columns:
        return text
    room = columns - width(mark)
    if room < 0:
        return mark[:columns]
    kept, taken = [], 0
    for sign in text:
        wide = width(sign)
        if taken + wide > room:
            break
        kept.append(sign)
        taken += wide
    return "".join(kept) + mark


def fit(text: str, columns: int, mark: str, *, right: bool = False) -> str:
    """The clean text in exactly so many columns."""
    short = cut(text, columns, mark)
    space = " " * (columns - width(short))
    return space + short if right else short + space


def widest(texts: Iterable[str]) -> int:
    return max((width(text) for text in texts), default=0)
