"""Tells logins apart without saying anything of them: a keyed hash, whose key never leaves this user's state directory.
No value that goes into it is kept or shown."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import stat
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from supervisor.kinds.kind import Account, Kind
from supervisor.runtime.environment import matches

#: The key's file in the state directory, and its size (bytes).
FILE, SIZE = "credential.key", 32
#: How much of the hashes is kept (hexadecimal digits).
SHOWN, ACCOUNT = 16, 8
#: A larger file (bytes) is not looked into.
LARGEST = 16 << 20


def load(state: Path) -> bytes:
    """The key, made where there is none. A disk that takes no file costs nothing but that the logins of this daemon's
    life cannot be compared with those of the next."""
    path = state / FILE
    with contextlib.suppress(OSError):
        if (found := _read(path)) is None:
            fresh = path.with_name(f".{FILE}.{os.getpid()}")
            fresh.unlink(missing_ok=True)
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(secrets.token_bytes(SIZE))
                os.fsync(file.fileno())
            fresh.replace(path)
            found = _read(path)
        if found is not None:
            return found
    return secrets.token_bytes(SIZE)


def _read(path: Path) -> bytes | None:
    """None where there is none, or one that others may have read."""
    try:
        with path.open("rb") as file:
            mode, found = os.fstat(file.fileno()).st_mode, file.read(SIZE + 1)
    except FileNotFoundError:
        return None
    return found if len(found) == SIZE and not mode & 0o077 else None


def fingerprint(key: bytes, kind: Kind, environment: Mapping[str, str], model: str = "") -> str:
    """Equal for runs that share a login: the same program, with the same keys, in the same home, for the same provider
    where it has several; and, behind a point, with the same account, where the program says whose it uses. "" for a
    program of which it is not known what it logs in with."""
    if not kind.credential:
        return ""
    told = [(name, environment[name]) for name in sorted(environment) if matches(name, kind.credential)]
    if kind.env == ("*",) and not told:
        return ""  # a program that may be anything, and names none
    parts = [kind.name, environment.get("HOME", ""), *(part for pair in told for part in pair)]
    if kind.by_provider and "/" in model:
        parts.append(model.partition("/")[0])
    # Each part with its length: no value can look like the next one's beginning.
    said = b"".join(len(data := part.encode("utf-8", "surrogateescape")).to_bytes(8) + data for part in parts)
    place = hmac.new(key, said, hashlib.sha256).hexdigest()[:SHOWN]
    whose = _account(kind.account, environment) if kind.account is not None else b""
    return f"{place}.{hmac.new(key, whose, hashlib.sha256).hexdigest()[:ACCOUNT]}" if whose else place


def _account(account: Account, environment: Mapping[str, str]) -> bytes:
    """A digest of whose account it is; nothing where no file says it."""
    for named in account.files:
        base, _, rest = named.partition("/")
        home = environment.get("HOME" if base == "~" else base[1:], "")
        if home:
            with contextlib.suppress(OSError):
                found = os.stat(path := os.path.join(home, rest))
                return _digest(path, found.st_mtime_ns, found.st_size, found.st_ino, account.pattern)
            return b""
    return b""


@lru_cache(256)
def _digest(path: str, _changed: int, size: int, _inode: int, pattern: bytes) -> bytes:
    """Of all in the file that tells accounts apart. The file may be large and is read anew when it has changed."""
    if size > LARGEST:
        return b""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return b""
        told = re.findall(pattern, file.read(LARGEST))
    return hashlib.sha256(b"\0".join(told)).digest() if told else b""
