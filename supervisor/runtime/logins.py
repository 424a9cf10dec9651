"""What all projects of a daemon share about the logins of their agents. A login is told from another without saying
anything of either: by a keyed hash, whose key never leaves this machine."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from attrs import frozen

from supervisor.kinds.kind import Kind
from supervisor.runtime.breakers import Breakers
from supervisor.runtime.starts import Starts

#: The key, beside the journals. Without it what they hold tells nothing of any login, short or guessable as it may be.
KEY = "credentials.key"
_SIZE = 32


@frozen
class Logins:
    """The key, the order of starts, and what tells projects of stopped logins."""

    key: bytes
    starts: Starts
    breakers: Breakers


def key(state: Path) -> bytes:
    """The machine's key, made where there is none. Raises OSError."""
    path = state / KEY
    try:
        found = path.read_bytes()
        if len(found) == _SIZE:
            return found
    except FileNotFoundError:
        pass
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    made = secrets.token_bytes(_SIZE)
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, made)
        os.fsync(file)
    finally:
        os.close(file)
    fresh.rename(path)
    return made


def credential(key: bytes, kind: Kind, environment: Mapping[str, str]) -> str:
    """Which login a program of this kind has in this environment; "" where nothing is known of it: of a program that
    may be anything, and names none."""
    values = {
        name: value
        for name, value in sorted(environment.items())
        if value and any(fnmatchcase(name, pattern) for pattern in kind.credential)
    }
    if not kind.credential or (kind.env == ("*",) and not values):
        return ""
    told = [kind.name, environment.get("HOME", ""), *(part for pair in values.items() for part in pair)]
    data = b"".join(len(each).to_bytes(4, "big") + each for each in map(os.fsencode, told))
    return hashlib.blake2b(data, key=key, digest_size=8).hexdigest()
