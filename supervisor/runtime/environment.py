"""The environment a run starts with: a base that every program needs, what its kind needs of the person's, and what is
given. Another program's keys and what was meant for the daemon alone are never in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import frozen

from supervisor.core.private import looks_secret
from supervisor.core.rights import covers
from supervisor.kinds.kind import Kind

#: Meant for the daemon by whoever started it; an agent that had them would speak for the daemon.
NOT_PASSED = frozenset(
    {"NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_PID", "WATCHDOG_USEC"}
    | {"INVOCATION_ID", "JOURNAL_STREAM", "FLEET_AGENT", "SUPERVISORD_READY_FD", "MAINPID", "MANAGERPID"}
    | {"SYSTEMD_EXEC_PID", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE", "FDSTORE", "CREDENTIALS_DIRECTORY"}
)
#: What a program needs to be a program and to reach the network; passed even where the grant's `env` names nothing.
BASE = (
    *("HOME", "USER", "LOGNAME", "SHELL", "PATH", "PWD", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_*"),
    *("TERM", "COLORTERM", "NO_COLOR"),
    *("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "FLEET_SOCKET"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
)
#: What work in a shell finds its tools, its keyring and its ssh agent by; passed where the right `env` is not named.
ORDINARY = (
    *("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "GPG_TTY", "EDITOR", "VISUAL", "PAGER"),
    *("GIT_AUTHOR_*", "GIT_COMMITTER_*", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL", "GIT_SSL_CAINFO"),
    *("NODE_OPTIONS", "NODE_COMPILE_CACHE", "NODE_DISABLE_COMPILE_CACHE"),
    *("JAVA_HOME", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME", "NVM_DIR", "PYENV_ROOT", "VIRTUAL_ENV", "CONDA_*"),
)
#: A kind that says that it needs this needs what a person's own script does: everything that is nobody else's.
EVERYTHING = "*"
LARGEST_FILE = 1 << 20


@frozen
class Needs:
    """What a kind is passed without anybody naming it: what matches `wanted`, less the secrets that match `others`."""

    wanted: tuple[str, ...]
    own: tuple[str, ...]
    others: tuple[str, ...]

    def passes(self, name: str) -> bool:
        """Whether this variable is among it."""
        if not matches(name, self.wanted):
            return False
        return matches(name, self.own) or not (matches(name, self.others) and looks_secret(name))


def needs(kind: Kind, kinds: Iterable[Kind]) -> Needs:
    """Of a kind that asks for everything, a person's own program, all but the secrets that other programs call their
    own; of one that knows its names, these, but not what only a pattern of it takes and another one logs in with."""
    own = (*kind.credential, *(name for name in kind.env if "*" not in name))
    if EVERYTHING in kind.env:
        others = {name for other in kinds for name in (*other.env, *other.credential)} - {EVERYTHING}
    else:
        others = {name for other in kinds for name in other.credential if "*" not in name}
    return Needs(kind.env, own, tuple(sorted(others)))


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a variable is one of these; a `*` at an end of a pattern is any rest."""
    return any(_match(name, pattern) for pattern in patterns)


def _match(name: str, pattern: str) -> bool:
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    if pattern.startswith("*"):
        return name.endswith(pattern[1:])
    return name == pattern


def build(
    inherited: Mapping[str, str],
    allowed: tuple[str, ...] | None,
    needed: Needs,
    given: Mapping[str, str],
    path: str,
    tools: str,
) -> dict[str, str]:
    """`allowed` is the grant's `env`: exactly that beside the base, or, where the right is not named (None), what the
    kind needs (`needs`). `given` wins over what is inherited; `tools` is the directory that leads PATH, so that
    `supervisorctl` is found."""
    passed = {}
    for name, value in inherited.items():
        if name in NOT_PASSED:
            continue
        if allowed is not None:
            right = any(covers("env", have, name) for have in allowed)
        else:
            right = matches(name, ORDINARY) or needed.passes(name)
        if right or matches(name, BASE):
            passed[name] = value
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
