"""Our systemd user unit as a file: what it says for this installation, and writing it. What a person changed is never
overwritten unasked. It starts nothing."""

from __future__ import annotations

import hashlib
import os
import re

from supervisor.ctl.manager import UNIT
from supervisor.ctl.outcome import REFUSED, Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from supervisor.ctl.place import Place

TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), UNIT)
#: The last line of what we write: a unit whose sum is right was changed by nobody since.
_SUM = "# as install-unit wrote it: "
#: Where our files lie is the caller's word; the user manager may have been started without it.
_PLACES = {"XDG_STATE_HOME": ".local/state", "XDG_CONFIG_HOME": ".config"}
_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")


def text(command: Sequence[str], place: Place) -> str:
    """The unit that starts this command."""
    with open(TEMPLATE, encoding="utf-8") as source:
        lines = source.read().splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("ExecStart="))
    lines[at] = "ExecStart=" + " ".join([_program(command[0]), *map(_word, [*command[1:], "--no-warden"])])
    lines[at + 1 : at + 1] = _environment(place)
    body = "\n".join(lines) + "\n"
    return body + _SUM + _sum(body) + "\n"


def _environment(place: Place) -> Iterator[str]:
    for name, default in _PLACES.items():
        value = place.environ.get(name, "")
        if value.startswith("/") and value != os.path.join(place.home, default):
            yield "Environment=" + _word(f"{name}={value}", dollar="$")


def _program(path: str) -> str:
    if not path.isprintable() or set(path) & set("\"'\\"):
        raise Failure(REFUSED, f"systemd starts no program whose path has quotes or backslashes in it: {path!r}")
    return _word(path, dollar="$")


def _word(word: str, dollar: str = "$$") -> str:
    """As systemd reads a word of a command line; in a program's path and in Environment= a `$` is one."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", dollar)
    return escaped if _PLAIN.fullmatch(word) else f'"{escaped}"'


def _sum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:32]


def _body(whole: str) -> str:
    """Without the line of the sum."""
    return "".join(line for line in whole.splitlines(keepends=True) if not line.startswith(_SUM))


def write(file: str, wanted: str, *, force: bool) -> bool:
    """The unit's file, whole or not at all; False where it said so already. What is not as we wrote it is kept."""
    try:
        found = _read(file)
        if found == wanted:
            return False
        if found is not None and not force and found != _body(found) + _SUM + _sum(_body(found)) + "\n":
            raise _changed(file, found, wanted)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        beside = f"{file}.{os.getpid()}"
        try:
            with open(beside, "x", encoding="utf-8") as target:
                target.write(wanted)
            os.replace(beside, file)
        finally:
            if os.path.lexists(beside):
                os.unlink(beside)
    except OSError as error:
        raise Failure(REFUSED, f"{error.filename or file} cannot be written: {error.strerror}") from None
    return True


def _read(file: str) -> str | None:
    if os.path.islink(file):
        return f"# a link to {os.readlink(file)}\n"
    try:
        with open(file, encoding="utf-8", errors="replace") as source:
            return source.read()
    except FileNotFoundError:
        return None


def _changed(file: str, found: str, wanted: str) -> Failure:
    from difflib import unified_diff

    lines = unified_diff(_body(found).splitlines(), _body(wanted).splitlines(), file, "install-unit", lineterm="")
    return Failure(
        REFUSED, f"{file} is not as install-unit wrote it, and is kept", *(f"| {line}" for line in lines),
        f"what should differ belongs beside it: systemctl --user edit {UNIT}",
        "overwrite it: supervisorctl install-unit --force",
    )  # fmt: skip
