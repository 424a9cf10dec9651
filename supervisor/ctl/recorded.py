"""`usage --transcript`: reads what a program printed once and prints its books. It asks no daemon, writes nothing."""

from __future__ import annotations

import os
import stat
import sys

from supervisor.core.units import show_count, show_money
from supervisor.ctl.outcome import REFUSED, USAGE, Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, BinaryIO

    from supervisor.core.facts import Fact
    from supervisor.ctl.errand import Errand
    from supervisor.kinds.kind import Kind, Reader
    from supervisor.kinds.recorded import Recorded

    #: What a transcript says, and whether its last line has no end.
    Said = tuple[list[Fact], bool]

STDIN = "-"
_CHUNK = 1 << 20
#: An earlier transcript is looked for among so many files beside it, in the first bytes of each.
_NEIGHBOURS, _LOOK = 2000, 1 << 16
#: How what is not torn ends: with a line, or with the bracket of an object over many lines, which needs none after it.
_WHOLE = (b"\n", b"\n}")
_DAEMONS = ("by", "since", "agent")


def book(errand: Errand) -> int:
    """Book the transcripts, in order, as one conversation."""
    kind = _kind(errand)
    files = [_name(text) for text in errand.own["transcript"]]
    after = [_name(text) for text in errand.own.get("after") or ()]
    if [*files, *after].count(STDIN) > 1:
        raise Failure(USAGE, "stdin can be read once")
    known = [said(kind, file) for file in after]
    heard = [said(kind, file) for file in files]
    found = [] if after else earlier(kind, files, heard[0])
    books = booked(kind, heard, [*known, *(told for _, told in found)])
    if len(files) == 1 and files[0] != STDIN:
        books.refused(_beginning(os.path.splitext(files[0])[0] + ".stderr").decode(errors="replace"))
    answer = books.plain() | {
        "kind": kind.name,
        "after": [*after, *(file for file, _ in found)],
        "cumulative": bool(books.first) and not after and not found,
    }
    return errand.answer(answer, _words(errand, answer))


def _kind(errand: Errand) -> Kind:
    from supervisor.kinds.table import KINDS

    for name in _DAEMONS:
        if errand.params.get(name):
            raise Failure(USAGE, f"{name} is asked of the daemon and goes not with --transcript")
    if errand.own.get("csv"):
        raise Failure(USAGE, "--csv goes not with --transcript: there is one row", "use --json")
    name = str(errand.own.get("kind") or "")
    if not name:
        raise Failure(USAGE, "say what printed it: --kind", f"kinds: {', '.join(sorted(KINDS))}")
    if name not in KINDS:
        from difflib import get_close_matches

        near = get_close_matches(name.lower()[:64], list(KINDS), 1, 0.6)
        hint = f"did you mean {near[0]}?" if near else ""
        raise Failure(USAGE, f"there is no kind {name[:64]!r}", hint, f"kinds: {', '.join(sorted(KINDS))}")
    return KINDS[name]


def _name(text: str) -> str:
    if text == STDIN:
        return text
    if not text:
        raise Failure(USAGE, "a path must not be empty")
    return os.path.expanduser(text)


def said(kind: Kind, file: str) -> Said:
    """What a transcript says. Raises Failure."""
    try:
        if file == STDIN:
            return read(kind, sys.stdin.buffer)
        with open(file, "rb") as stream:
            if stat.S_ISDIR(os.fstat(stream.fileno()).st_mode):
                raise Failure(REFUSED, f"{file} is a directory", "name the file that holds what the program printed")
            return read(kind, stream)
    except OSError as error:
        raise Failure(REFUSED, f"{file} cannot be read: {error.strerror}") from None


def read(kind: Kind, stream: BinaryIO) -> Said:
    """As a run's stdout is read: no line that is too long is ever held."""
    from supervisor.kinds.kind import LINE_LIMIT
    from supervisor.kinds.recorded import seat
    from supervisor.runtime.sieve import Sieve

    reader, sieve = kind.recorded(seat(kind.name)), Sieve(kind.mark, LINE_LIMIT)
    facts: list[Fact] = []
    end = b"\n"
    while chunk := stream.read(_CHUNK):
        end = (end + chunk)[-2:]
        for line in sieve.feed(chunk):
            facts += _line(reader, line)
    for line in sieve.rest():
        facts += _line(reader, line)
    return facts + reader.ended(), not end.endswith(_WHOLE)


def _line(reader: Reader, line: Any) -> list[Fact]:
    if isinstance(line, bytes):
        return reader.read(line)
    return reader.overlong(line.head, line.size) if line.head else []


def booked(kind: Kind, heard: list[Said], before: list[Said]) -> Recorded:
    """The books of what was heard, beyond what was said before."""
    from supervisor.kinds.recorded import Recorded
    from supervisor.runtime import pricing

    books = Recorded()
    books.price = pricing.estimator(kind, lambda: books.model)
    for facts, _ in before:
        books.begin()
        books.before(facts)
    for facts, torn in heard:
        books.begin()
        books.take(facts)
        books.torn = books.torn or torn
    return books


def earlier(kind: Kind, files: list[str], heard: Said) -> list[tuple[str, Said]]:
    """Transcripts of the same conversation that stand beside the first one and end before it begins, where its figures
    count from the beginning of the conversation."""
    from supervisor.kinds.recorded import follows

    one = booked(kind, [heard], [])
    if not one.first or STDIN in files:
        return []
    mark = one.session.encode()
    found = []
    for file in _beside(files[0], files) if mark else ():
        if mark not in _beginning(file):
            continue
        told = said(kind, file)
        other = booked(kind, [told], [])
        if other.session == one.session and follows(one, other):
            found.append((sum(usage.tokens for usage in other.highest.values()), file, told))
    return [(file, told) for _, file, told in sorted(found, key=lambda each: each[:2])]


def _beside(file: str, files: Iterable[str]) -> Iterator[str]:
    """Files like this one in its directory."""
    directory, ending = os.path.dirname(file) or ".", os.path.splitext(file)[1]
    known = {os.path.realpath(each) for each in files}
    try:
        names = sorted(os.listdir(directory))[:_NEIGHBOURS]
    except OSError:
        return
    for name in names:
        path = os.path.join(directory, name)
        if name.endswith(ending) and os.path.isfile(path) and os.path.realpath(path) not in known:
            yield path


def _beginning(file: str) -> bytes:
    try:
        with open(file, "rb") as stream:
            return stream.read(_LOOK)
    except OSError:
        return b""


def _words(errand: Errand, answer: dict[str, Any]) -> Iterable[str]:
    from supervisor.ctl.looking import pairs

    least = "at least " if answer["incomplete"] else ""
    rows = [(name.replace("_", " "), least + show_count(answer[name])) for name in ("input", "cache_read")]
    rows += [(name.replace("_", " "), least + show_count(answer[name])) for name in ("cache_write", "output")]
    rows += [("reasoning", f"{show_count(answer['reasoning'])}, part of output")]
    rows += [("calls", show_count(answer["calls"])), ("turns", show_count(answer["turns"])), ("cost", _cost(answer))]
    rows += [(name, errand.word(answer[name])) for name in ("session", "model") if answer[name]]
    rows += [("error", f"{each['sort']}: {errand.word(each['text'])}") for each in answer["errors"]]
    yield from pairs(errand, rows)
    if answer["interrupted"]:
        yield "a turn was interrupted"
    if answer["incomplete"]:
        yield "incomplete: it ends in the middle of a line or a turn, or the usage of a call was never told"
    if answer["unreadable"]:
        yield f"{answer['unreadable']} lines could not be read"
    for file in answer["after"]:
        yield f"without what {errand.word(file)} says was spent before"
    if answer["cumulative"]:
        yield "counted from the conversation's beginning: if that is in an earlier transcript, name it with --after"


def _cost(answer: dict[str, Any]) -> str:
    if answer["cost"] is None:
        return "not known"
    shown = show_money(round(answer["cost"] * 1_000_000_000))
    return f"~{shown}, estimated: {answer['estimated']}" if answer["estimated"] else shown
