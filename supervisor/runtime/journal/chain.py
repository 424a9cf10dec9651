"""One record of the journal as bytes: a line of JSON bound to the one before it by hash. Sealing and checking only;
must never touch a file that it did not get opened."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from attrs import frozen

from supervisor.core.facts import Fact
from supervisor.runtime.journal import codec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

FORMAT = 1
#: Longest record in bytes: what bounds the memory of whoever reads a journal, however damaged it is.
LONGEST = 64 * 1024 * 1024
NOTHING = "0" * 64

_SEAL = re.compile(rb',"hash":"([0-9a-f]{64})"\}\Z')
_SEAL_LENGTH = len(b',"hash":""}') + 64
#: What a record gets when it is sealed takes less than this.
_SEALED = 256
encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
decode = json.JSONDecoder().decode


@frozen
class Link:
    """What the next record continues: the number and the hash of the one before it."""

    seq: int
    hash: str


@frozen
class Batch:
    """What one decision or observation came to: facts that stand or fall together. `at` is wall-clock seconds,
    `by` who asked ("world" for what happened); `closed` marks the end of an orderly life and holds no facts.
    `seq`, `prev` and `hash` are the journal's to give."""

    at: float
    by: str
    facts: tuple[Fact, ...]
    closed: bool = False
    seq: int = 0
    prev: str = ""
    hash: str = ""


@frozen
class Genesis:
    """The first record, number 0: which project the journal is of, and how it is written."""

    at: float
    project: str
    format: int = FORMAT
    hash: str = ""
    #: it begins the first segment, and is the record before the first batch
    segment: int = 1
    seq: int = 0


@frozen
class Carry:
    """The first record of segment number `segment`, which continues record `seq` of the segment before it. It is in the
    chain, without a number of its own. `snapshot` is the sha256 of the file with the state at this point, `shape`
    says which version's state that is."""

    at: float
    project: str
    segment: int
    seq: int
    snapshot: str
    shape: str
    format: int = FORMAT
    prev: str = ""
    hash: str = ""


@frozen
class Fault:
    """The first record that is not whole. `torn` says that it is the rest of a write that never ended: nothing
    follows it, so it was never durable and nothing was acted on."""

    seq: int
    line: int
    offset: int
    reason: str
    torn: bool = False


class BrokenError(Exception):
    """A complete line that is no record of this chain."""


class _MangledError(BrokenError):
    """A line that is no JSON object with a seal at its end."""


def seal(body: dict[str, Any]) -> tuple[bytes, str]:
    """The line for `body`, and its hash: sha256 over the canonical JSON of all members but the hash, which is
    put last so that a reader checks the very bytes that stand there."""
    return _seal(encode(body).encode("ascii"))


def _seal(plain: bytes) -> tuple[bytes, str]:
    digest = sha256(plain).hexdigest()
    return plain[:-1] + b',"hash":"' + digest.encode("ascii") + b'"}\n', digest


def seal_genesis(genesis: Genesis) -> tuple[bytes, str]:
    """The first line of a journal."""
    return seal({
        "at": float(genesis.at), "format": genesis.format, "prev": NOTHING, "project": genesis.project, "seq": 0,
    })  # fmt: skip


def seal_carry(carry: Carry) -> tuple[bytes, str]:
    """The first line of a later segment."""
    return seal({
        "at": float(carry.at), "format": carry.format, "prev": carry.prev, "project": carry.project,
        "segment": carry.segment, "seq": carry.seq, "shape": carry.shape, "snapshot": carry.snapshot,
    })  # fmt: skip


def draft(batch: Batch) -> bytes:
    """The beginning of the line for `batch`: all but what only its place in the chain can say."""
    body: dict[str, Any] = {
        "at": float(batch.at), "by": batch.by, "facts": [codec.dump(fact) for fact in batch.facts],
    }  # fmt: skip
    if batch.closed:
        body["closed"] = True
    begun = encode(body).encode("ascii")[:-1]
    if len(begun) > LONGEST - _SEALED:
        raise ValueError(f"a record of {len(begun)} bytes: the longest is {LONGEST}")
    return begun


def finish(begun: bytes, after: Link) -> tuple[bytes, Link]:
    """The whole line of a draft, as the record after `after`; and what the next one continues."""
    seq = after.seq + 1
    # `prev` and `seq` sort behind all members of a draft.
    line, digest = _seal(b'%b,"prev":"%b","seq":%d}' % (begun, after.hash.encode("ascii"), seq))
    return line, Link(seq, digest)


def records(file: BinaryIO, end: int, after: Link | None = None) -> Iterator[Genesis | Carry | Batch | Fault]:
    """The records in the first `end` bytes of a segment, one at a time. `after` is where the segment before it ended;
    without it, this one begins where it says. A `Fault`, if any, is the last thing given; everything before it is
    whole."""
    offset, number, link = 0, 1, after
    while offset < end or number == 1:
        line = file.readline(min(LONGEST, end - offset))
        last = offset + len(line) >= end
        record: Genesis | Carry | Batch
        try:
            record = _batch_after(line, link) if link is not None and number > 1 else _first(line, after)
        except BrokenError as error:
            # A write that did not end leaves a beginning of a line, or a line of which blocks are missing. A line
            # that reads well and is not ours is no accident of that sort, and a first record is never written in place.
            torn = last and number > 1 and (not line.endswith(b"\n") or isinstance(error, _MangledError))
            yield Fault(0 if link is None else link.seq + 1, number, offset, str(error), torn)
            return
        yield record
        number, offset, link = number + 1, offset + len(line), Link(record.seq, record.hash)


def alone(line: bytes) -> Batch:
    """The batch of this line, wherever it belongs. Raises BrokenError."""
    return _batch(*_open(line))


def _first(line: bytes, after: Link | None) -> Genesis | Carry:
    body, digest = _open(line)
    if "segment" not in body:
        _follows(body, after or Link(0, NOTHING))
        return _genesis(body, digest)
    if after is not None:
        _follows(body, after)
    return _carry(body, digest)


def _batch_after(line: bytes, link: Link) -> Batch:
    body, digest = _open(line)
    _follows(body, Link(link.seq + 1, link.hash))
    return _batch(body, digest)


def _follows(body: dict[str, Any], due: Link) -> None:
    for key, value in (("seq", due.seq), ("prev", due.hash)):
        if body.get(key) != value or type(body[key]) is not type(value):
            raise BrokenError(f"{key} is {body.get(key)!r:.80} where {value!r:.80} is due")


def _open(line: bytes) -> tuple[dict[str, Any], str]:
    if not line:
        raise _MangledError("the file ends here")
    if not line.endswith(b"\n"):
        raise _MangledError(
            f"longer than {LONGEST} bytes" if len(line) >= LONGEST else f"cut off after {len(line)} bytes"
        )
    sealed = _SEAL.search(line, max(0, len(line) - 1 - _SEAL_LENGTH), len(line) - 1)
    if sealed is None:
        raise _MangledError("no hash at the end of the line")
    plain = line[: sealed.start()] + b"}"
    try:
        body = decode(plain.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise _MangledError(f"no JSON: {error}") from error
    digest = sha256(plain).hexdigest()
    if digest.encode("ascii") != sealed[1]:
        raise BrokenError("the hash is not that of the record: it was changed after it was written")
    return body, digest


def _genesis(body: dict[str, Any], digest: str) -> Genesis:
    _format(body)
    _members(body, {"at": float, "format": int, "prev": str, "project": str, "seq": int})
    return Genesis(body["at"], body["project"], body["format"], digest)


def _carry(body: dict[str, Any], digest: str) -> Carry:
    _format(body)
    _members(body, {
        "at": float, "format": int, "prev": str, "project": str, "segment": int, "seq": int, "shape": str,
        "snapshot": str,
    })  # fmt: skip
    if body["segment"] < 2 or body["seq"] < 1:
        raise BrokenError(f"segment {body['segment']} cannot continue record {body['seq']}")
    return Carry(**body, hash=digest)


def _format(body: dict[str, Any]) -> None:
    if body.get("format") != FORMAT:
        raise BrokenError(f"written in format {body.get('format')!r:.40}; this version reads format {FORMAT}")


def _batch(body: dict[str, Any], digest: str) -> Batch:
    closed = body.pop("closed", False)
    _members(body, {"at": float, "by": str, "facts": list, "prev": str, "seq": int})
    if closed not in (True, False) or (closed and body["facts"]):
        raise BrokenError("closed and yet with facts")
    try:
        facts = tuple([codec.load(raw) for raw in body["facts"]])
    except codec.UnreadableError as error:
        raise BrokenError(str(error)) from error
    return Batch(body["at"], body["by"], facts, closed, body["seq"], body["prev"], digest)


def _members(body: dict[str, Any], kinds: dict[str, type]) -> None:
    if body.keys() != kinds.keys():
        odd = ", ".join(sorted(body.keys() ^ kinds.keys()))
        raise BrokenError(f"missing or unknown members: {odd}")
    for key, kind in kinds.items():
        if type(body[key]) is not kind:
            raise BrokenError(f"{key} is no {kind.__name__}: {body[key]!r:.60}")
