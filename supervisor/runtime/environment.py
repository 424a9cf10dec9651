"""The environment a run starts with: the daemon's own, less what was meant for the daemon alone, plus what is given."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from supervisor.core.rights import covers

#: Meant for the daemon by whoever started it; an agent that had them would speak for the daemon.
NOT_PASSED = frozenset(
    {"NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_PID", "WATCHDOG_USEC"}
    | {"INVOCATION_ID", "JOURNAL_STREAM", "FLEET_AGENT", "SUPERVISORD_READY_FD", "MAINPID", "MANAGERPID"}
    | {"SYSTEMD_EXEC_PID", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE", "FDSTORE", "CREDENTIALS_DIRECTORY"}
)
#: What a program needs to be a program; passed even where the grant's `env` names nothing.
BASE = frozenset(
    {"HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "PATH", "PWD"}
    | {"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"}
)
LARGEST_FILE = 1 << 20


def build(
    inherited: Mapping[str, str], allowed: tuple[str, ...] | None, given: Mapping[str, str], path: str, tools: str
) -> dict[str, str]:
    """`allowed` is the grant's `env` (None: everything); `given` wins over what is inherited; `tools` is the
    directory that leads PATH, so that `supervisorctl` is found."""
    passed = {
        name: value
        for name, value in inherited.items()
        if name not in NOT_PASSED
        and (
            allowed is None
            or name in BASE
            or name.startswith("LC_")
            or any(covers("env", have, name) for have in allowed)
        )
    }
    passed.update(given)
    passed["PATH"] = os.pathsep.join([tools, given.get("PATH") or path or inherited.get("PATH") or os.defpath])
    return passed


def read_file(path: str) -> dict[str, str]:
    """An `env_file`: NAME=VALUE lines, `#` comments, optional single or double quotes around the value.
    Raises OSError naming the file where it cannot be read, is open to others, or a line is none of these."""
    with Path(path).open("rb") as file:
        mode = os.fstat(file.fileno())
        if stat.S_IMODE(mode.st_mode) & 0o077:
            raise PermissionError(f"{path} holds secrets and is open to others: chmod 600 {path}")
        text = file.read(LARGEST_FILE + 1)
    if len(text) > LARGEST_FILE:
        raise OSError(f"{path} is larger than {LARGEST_FILE} bytes")
    found: dict[str, str] = {}
    for number, raw in enumerate(text.decode("utf-8", "surrogateescape").splitlines(), 1):
        line = raw.strip().removeprefix("export ").strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        name, value = name.strip(), value.strip()
        if not equals or not name or "\0" in line:
            raise OSError(f"{path}:{number}: write NAME=VALUE")
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        found[name] = value
    return found
