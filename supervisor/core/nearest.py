"""The word that was probably meant, for refusals."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

#: Among so many it is looked for: a project may have thousands of names, and comparing takes its time.
LOOKED_AT = 400
#: A longer word is none of ours.
LONGEST = 64


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is like this one, "" if none is. The first of them are looked at first, and a limited
    number."""
    if len(word) > LONGEST or not word.strip():
        return ""
    names = {name.casefold(): name for name in islice(known, LOOKED_AT)}
    found = difflib.get_close_matches(word.strip().casefold(), names, 1, 0.6)
    return names[found[0]] if found else ""


def meant(word: str, known: Iterable[str]) -> str:
    """`; did you mean lead?`, or "" where nothing is near."""
    near = nearest(word, known)
    return f"; did you mean {near}?" if near else ""
