"""What a name looks like: two that a person cannot tell apart are the same name here. It knows the letters of other
alphabets that are drawn as Latin ones, and what is drawn as nothing; it is no full table of what could be mistaken."""

from __future__ import annotations

import unicodedata

#: Small letters, Cyrillic then Greek then others, and the Latin ones they are drawn as, if only as capitals.
_ALIKE = str.maketrans(
    "авекмнорстухһіјѕԁԛԝӏѵѡαβεζηικμνορτυχϲϳωıɑɡɩʋօսցհո",
    "abekmhopctyxhijsdqwlvwabezhikmvoptuxcjwiagivoughn",
)
#: Drawn as nothing, or as white space, without being called either.
_BLANK = frozenset((0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0))
_MARKS_IN_A_ROW = 2


def shape(name: str) -> str:
    """Equal for names that look the same but for case."""
    if name.isascii():
        return name.casefold()
    plain = unicodedata.normalize("NFKC", name).casefold()
    return unicodedata.normalize("NFKC", plain).translate(_ALIKE)


def hidden(name: str) -> bool:
    """Whether there is something in it that is not seen, or painted over the rest."""
    marks = 0
    for sign in name:
        category = unicodedata.category(sign)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        code = ord(sign)
        if (
            marks > _MARKS_IN_A_ROW
            or code in _BLANK
            or (category[0] == "Z" and sign != " ")
            or 0xFE00 <= code <= 0xFE0F
            or 0xE0100 <= code <= 0xE01EF
        ):
            return True
    return "  " in name
