"""Files and names that are on disk when a call returns. It must never leave out a sync because it is slow."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def append(file: int, content: bytes) -> None:
    """Write all of it, in one go; a disk that takes a part only is full."""
    written = os.write(file, content)
    if written < len(content):
        raise OSError(errno.ENOSPC, f"no room: {written} of {len(content)} bytes were written")


def is_away(file: int, path: Path) -> bool:
    """Whether this open file is no longer the one of this name: removed, moved, or another in its place."""
    try:
        return not os.path.samestat(os.fstat(file), os.stat(path))
    except OSError as error:
        return isinstance(error, FileNotFoundError | NotADirectoryError)


def write_file(path: Path, flag: int, content: bytes) -> None:
    """A file of its owner's with this content; `flag` says what becomes of what it held."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flag, 0o600)
    try:
        append(file, content)
        os.fsync(file)
    finally:
        os.close(file)


def make_directory(directory: Path) -> None:
    """A directory of its owner's, with those above it."""
    if not directory.is_dir():
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_directory(directory.parent)
    directory.chmod(0o700)


def sync_directory(directory: Path) -> None:
    """Make names durable."""
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
