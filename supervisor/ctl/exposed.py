"""Writes the daemon's counts as OpenMetrics text, or as the older text that node-exporter's textfile collector takes.
It counts nothing itself."""

from __future__ import annotations

import os

from supervisor.ctl.outcome import DONE, REFUSED, Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from supervisor.ctl.errand import Errand

_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})


def answer(errand: Errand) -> int:
    """To stdout, or into a file that is never seen half written."""
    result = errand.ask({})
    families = result.get("families") or ()
    file = errand.own.get("textfile")
    if file:
        put(str(file), "\n".join(text(families, modern=False)) + "\n")
        return errand.answer({"file": file}, [f"wrote {file}"])
    if errand.asked.json:
        errand.json(result)
    else:
        errand.say(text(families, modern=True))
    return DONE


def text(families: Iterable[Mapping[str, Any]], *, modern: bool) -> Iterable[str]:
    """The lines. `modern` is OpenMetrics 1.0; else the text format 0.0.4, in which a counter is named as its samples
    are and nothing ends the text."""
    for family in families:
        counter = family["type"] == "counter"
        sample = family["name"] + ("_total" if counter else "")
        name = family["name"] if modern else sample
        yield f"# HELP {name} {_escaped(family['help'], quoted=modern)}"
        yield f"# TYPE {name} {family['type']}"
        if modern and family.get("unit"):
            yield f"# UNIT {name} {family['unit']}"
        for labels, value in family["samples"]:
            shown = ",".join(f'{key}="{_escaped(str(each))}"' for key, each in labels.items())
            yield f"{sample}{{{shown}}} {value!r}"
    if modern:
        yield "# EOF"


def _escaped(given: str, *, quoted: bool = True) -> str:
    """A text as both formats escape it: backslash, line end and, but in an old HELP, the quotation mark. What no UTF-8
    can hold is shown by its number."""
    whole = given.encode("utf-8", "backslashreplace").decode()
    return whole.translate(_ESCAPES) if quoted else whole.replace("\\", "\\\\").replace("\n", "\\n")


def put(file: str, content: str) -> None:
    """The whole file at once, readable by the collector, which is somebody else."""
    aside = f"{file}.{os.getpid()}"
    try:
        with open(aside, "x", encoding="utf-8") as out:
            os.fchmod(out.fileno(), 0o644)
            out.write(content)
        os.replace(aside, file)
    except OSError as error:
        if os.path.exists(aside):
            os.unlink(aside)
        raise Failure(REFUSED, f"{file} cannot be written: {error.strerror}") from None
