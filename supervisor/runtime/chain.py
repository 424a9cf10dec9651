"""One record of the journal as bytes: a line of JSON bound to the one before it by hash. Sealing and checking only;
must never touch a file that it did not get opened."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from attrs import frozen

from supervisor.core.facts import Fact
from supervisor.runtime import codec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

FORMAT = 1
#: Longest record in bytes: what bounds the memory of whoever reads a journal, however damaged it is.
LONGEST = 64 * 1024 * 1024
NOTHING = "0" * 64

_SEAL = re.compile(rb',"hash":"([0-9a-f]{64})"\}\Z')
_SEAL_LENGTH = len(b',"hash":""}') + 64
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_decode = json.JSONDecoder().decode


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


@frozen
class Fault:
    """The first record that is not whole. `torn` says that it is the rest of a write that never ended: nothing
    follows it, so it was never durable and nothing was acted on."""

    seq: int
    line: int
    offset: int
    reason: str
    torn: bool = False


class _BrokenError(Exception):
    """A complete line that is no record of this chain."""


class _MangledError(_BrokenError):
    """A line that is no JSON object with a seal at its end."""


def seal(body: dict[str, Any]) -> tuple[bytes, str]:
    """The line for `body`, and its hash: sha256 over the canonical JSON of all members but the hash, which is
    put last so that a reader checks the very bytes that stand there."""
    plain = _encode(body).encode("ascii")
    digest = sha256(plain).hexdigest()
    line = plain[:-1] + b',"hash":"' + digest.encode("ascii") + b'"}\n'
    if len(line) > LONGEST:
        raise ValueError(f"a record of {len(line)} bytes: the longest is {LONGEST}")
    return line, digest


def seal_genesis(genesis: Genesis) -> tuple[bytes, str]:
    """The first line of a journal."""
    return seal({
        "at": float(genesis.at), "format": genesis.format, "prev": NOTHING, "project": genesis.project, "seq": 0,
    })  # fmt: skip


def seal_batch(batch: Batch, seq: int, prev: str) -> tuple[bytes, str]:
    """The line for `batch` as record `seq` after the record with hash `prev`."""
    body = {
        "at": float(batch.at), "by": batch.by, "facts": [codec.dump(fact) for fact in batch.facts],
        "prev": prev, "seq": seq,
    }  # fmt: skip
    if batch.closed:
        body["closed"] = True
    return seal(body)


def records(file: BinaryIO, end: int) -> Iterator[Genesis | Batch | Fault]:
    """The records in the first `end` bytes of `file`, one at a time. A `Fault`, if any, is the last thing given;
    everything before it is whole."""
    seq, prev, offset = 0, NOTHING, 0
    while offset < end or seq == 0:
        line = file.readline(min(LONGEST, end - offset))
        last = offset + len(line) >= end
        try:
            record = _read(line, seq, prev)
        except _BrokenError as error:
            # A write that did not end leaves a beginning of a line, or a line of which blocks are missing. A line
            # that reads well and is not ours is no accident of that sort, and a genesis is never written in place.
            torn = last and seq > 0 and (not line.endswith(b"\n") or isinstance(error, _MangledError))
            yield Fault(seq, seq + 1, offset, str(error), torn)
            return
        yield record
        seq, prev, offset = seq + 1, record.hash, offset + len(line)


def _read(line: bytes, seq: int, prev: str) -> Genesis | Batch:
    body, digest = _open(line)
    for key, due in (("seq", seq), ("prev", prev)):
        if body.get(key) != due or type(body[key]) is not type(due):
            raise _BrokenError(f"{key} is {body.get(key)!r:.80} where {due!r:.80} is due")
    return _genesis(body, digest) if seq == 0 else _batch(body, digest)


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
        body = _decode(plain.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise _MangledError(f"no JSON: {error}") from error
    digest = sha256(plain).hexdigest()
    if digest.encode("ascii") != sealed[1]:
        raise _BrokenError("the hash is not that of the record: it was changed after it was written")
    return body, digest


def _genesis(body: dict[str, Any], digest: str) -> Genesis:
    if body.get("format") != FORMAT:
        raise _BrokenError(f"written in format {body.get('format')!r:.40}; this version reads format {FORMAT}")
    _members(body, {"at": float, "format": int, "prev": str, "project": str, "seq": int})
    return Genesis(body["at"], body["project"], body["format"], digest)


def _batch(body: dict[str, Any], digest: str) -> Batch:
    closed = body.pop("closed", False)
    _members(body, {"at": float, "by": str, "facts": list, "prev": str, "seq": int})
    if closed not in (True, False) or (closed and body["facts"]):
        raise _BrokenError("closed and yet with facts")
    try:
        facts = tuple([codec.load(raw) for raw in body["facts"]])
    except codec.UnreadableError as error:
        raise _BrokenError(str(error)) from error
    return Batch(body["at"], body["by"], facts, closed, body["seq"], body["prev"], digest)


def _members(body: dict[str, Any], kinds: dict[str, type]) -> None:
    if body.keys() != kinds.keys():
        odd = ", ".join(sorted(body.keys() ^ kinds.keys()))
        raise _BrokenError(f"missing or unknown members: {odd}")
    for key, kind in kinds.items():
        if type(body[key]) is not kind:
            raise _BrokenError(f"{key} is no {kind.__name__}: {body[key]!r:.60}")
