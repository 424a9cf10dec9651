"""Joining a cgroup before the program runs: a shell line that moves itself and then execs. Starts nothing itself.

The parent could move the child too, but only after it ran for a while and may have forked, and each move waits for the
kernel's grace period (7 to 20 ms), which would be the loop's. The shell is replaced by exec, so pid, session, argv and
stdio are the program's own."""

from __future__ import annotations

import errno
import os
import re
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: What the shell calls itself until it is replaced: an exit under this name is an exit before the program ran.
NAME = ":spawn"
#: Exit statuses of a shell that could not join, could not execute, did not find.
UNJOINED, UNEXECUTABLE, UNFOUND = 125, 126, 127

_SHELL_SETS = ("PWD", "OLDPWD", "SHLVL")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def command(argv: Sequence[str], env: Mapping[str, str], procs: str) -> list[str]:
    """argv for /bin/sh that joins the cgroup whose `cgroup.procs` this is, then becomes `argv` in this environment."""
    unset = " ".join(name for name in _SHELL_SETS if name not in env)
    # A shell drops variables that it could not name itself (functions that bash exports, for one); env(1) keeps them.
    odd = [f"{name}={value}" for name, value in env.items() if not _IDENTIFIER.fullmatch(name)]
    if odd and "=" in argv[0]:
        raise OSError(errno.EINVAL, "a program's name with = cannot be started beside such variables", argv[0])
    script = f'printf %s {NAME} >/proc/$$/comm; echo 0 >"$1" || exit {UNJOINED}; shift; unset {unset or "_"}; exec "$@"'
    return ["sh", "-c", script, "sh", procs, *(("/usr/bin/env", *odd) if odd else ()), *argv]


def failure(status: int, program: str) -> OSError:
    """What a shell's exit before the program ran means. The shell said more on stderr."""
    if status == UNFOUND:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
    if status == UNEXECUTABLE:
        return PermissionError(errno.EACCES, "it cannot be executed now", program)
    return OSError(errno.EIO, f"its start failed with status {status}", program)


def check(program: str, cwd: str, env: Mapping[str, str]) -> None:
    """Raise what exec would raise for this program, because a shell only says it later and in words."""
    if not stat.S_ISDIR(os.stat(cwd).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), cwd)
    if not os.access(cwd, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), cwd)
    places = [""] if "/" in program else os.get_exec_path(env)
    refusal: OSError | None = None
    for place in places:
        path = os.path.join(cwd, place, program)
        try:
            mode = os.stat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            refusal = refusal or error
            continue
        wrong = _refusal(path, mode)
        if wrong is None:
            return
        refusal = refusal or wrong
    raise refusal or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)


def _refusal(path: str, mode: int) -> OSError | None:
    if not stat.S_ISREG(mode) or not os.access(path, os.X_OK):
        return PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    try:
        with open(path, "rb") as file:
            head = file.read(256)
    except PermissionError:
        return None  # may be executed, may not be read
    if head.startswith(b"#!"):
        words = head[2:].split(b"\n")[0].split()
        if words and not os.path.exists(words[0]):
            return FileNotFoundError(errno.ENOENT, "its interpreter is missing", os.fsdecode(words[0]))
    elif b"\0" not in head:
        # A shell would run it as a shell script, exec would not: the same program, the same answer in every tier.
        return OSError(errno.ENOEXEC, os.strerror(errno.ENOEXEC), path)
    return None
