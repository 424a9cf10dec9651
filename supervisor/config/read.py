"""The bytes of an agents.toml as a `Source`: a plain file within its size, UTF-8, TOML, and then its tables.
What the tables come to is not known here."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tomllib
from typing import Any, Final, Literal

from supervisor.config.layers import Source
from supervisor.config.lines import Lines, lines
from supervisor.config.problems import TOLD, Problem, Report, quoted
from supervisor.config.schema import document

#: A file is not read beyond this many bytes; a fleet of thousands of agents is far below it.
LARGEST: Final = 1024 * 1024
_PLACE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
#: A key of so many parts that reading it would take minutes, as each part is looked up from the top.
_CHAIN: Final = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){200}""",
)
#: What tomllib says shortly, said for people.
_REMEDIES: Final = {
    "Invalid value": "Text needs quotes, and every key a value",
    "Cannot overwrite a value": "It is set twice",
    "Unterminated string": "A quote is missing",
    "Illegal character '\\n'": "A quote is missing at the end of the line",
    "Invalid statement": "A line is KEY = VALUE, or [TABLE]",
    "Expected newline or end of document after a statement": "One key a line, and text needs quotes",
    "Expected '=' after a key in a key/value pair": "A line is KEY = VALUE; a key with spaces in it needs quotes",
    "Unescaped '\\' in a string": "Write \\\\ for one backslash, or put the text into 'single quotes'",
}


class _UnreadableError(Exception):
    """Why the bytes are no TOML, at which line (0: no line in particular)."""

    def __init__(self, message: str, line: int = 0, remedy: str = "") -> None:
        super().__init__(message)
        self.message, self.line, self.remedy = message, line, remedy


def source(layer: Literal["personal", "project"], file: str, data: bytes | None, report: Report) -> Source | None:
    """The file's tables, with all that is wrong in them reported; None where nothing can be read at all. `data` is
    its content where that is known already."""
    try:
        content = _bytes(file) if data is None else data
        raw, places = _toml(content)
    except _UnreadableError as error:
        report.problems.append(Problem(file, error.line, "", error.message, error.remedy))
        return None
    tables, faults = document(raw)
    for number, fault in enumerate(faults):
        report.add(file, places, fault.path, fault.message, fault.advice() if number < TOLD else fault.remedy)
    sha256 = hashlib.sha256(content).hexdigest()
    return Source(layer, file, places, tables, sha256, frozenset(fault.path for fault in faults))


def _bytes(file: str) -> bytes:
    try:
        # A FIFO or a device is opened without waiting for anybody, and refused.
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise _UnreadableError(f"it cannot be read: {os.strerror(error.errno or 0)}") from None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise _UnreadableError("it is no plain file")
        parts: list[bytes] = []
        while sum(map(len, parts)) <= LARGEST and (part := os.read(fd, LARGEST + 1)):
            parts.append(part)
    except OSError as error:
        raise _UnreadableError(f"it cannot be read: {os.strerror(error.errno or 0)}") from None
    finally:
        os.close(fd)
    return b"".join(parts)


def _toml(content: bytes) -> tuple[dict[str, Any], Lines]:
    if len(content) > LARGEST:
        raise _UnreadableError(f"it is larger than {LARGEST} bytes")
    if content.startswith(b"\xef\xbb\xbf"):
        raise _UnreadableError("it starts with a byte order mark", 1, "Save it as plain UTF-8")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _UnreadableError(f"byte 0x{content[error.start]:02x} is not UTF-8", line, "Save it as UTF-8") from None
    if "\0" in text:
        raise _UnreadableError("it holds a NUL character", text.count("\n", 0, text.index("\0")) + 1)
    chain = _CHAIN.search(text)
    if chain is not None:
        line = text.count("\n", 0, chain.start()) + 1
        raise _UnreadableError("this has too many parts between dots", line, "An agent is at most 64 levels deep")
    try:
        return tomllib.loads(text), lines(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax(str(error), text) from None
    except RecursionError:
        raise _UnreadableError("its lists or tables are nested too deeply") from None
    except ValueError:
        # The one that is left: Python reads no number of so many digits.
        raise _UnreadableError("a number in it is too long") from None


def _syntax(said: str, text: str) -> _UnreadableError:
    """What tomllib says, with the line it is about."""
    place = _PLACE.search(said)
    words = said[: place.start()] if place else said
    rows = text.replace("\r\n", "\n").split("\n")
    line = int(place[1]) if place and place[1] else len(text.rstrip().split("\n"))
    remedy = _REMEDIES.get(words, "")
    shown = f": {quoted(rows[line - 1].strip())}" if line <= len(rows) and rows[line - 1].strip() else ""
    return _UnreadableError(f"this is not TOML: {words}{shown}", line, remedy)
