"""Where everything lies on disk, for daemon and client alike. It makes nothing and reads no file: it only
names paths. Stdlib only."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

APP = "fleet-supervisor"
#: `sun_path` holds 108 bytes, the last of them a zero.
SOCKET_LIMIT = 107
#: Names one socket and no other: for tests, the demo, and a sandbox that was given a single door.
SOCKET_VARIABLE = "FLEET_SOCKET"
#: Set for every agent, and for nobody else: its mark (`runtime.containment.marks`).
AGENT_VARIABLE = "FLEET_AGENT"
FILE = "agents.toml"
_SLUG = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_SLUG_LIMIT = 40


class PathTooLongError(ValueError):
    """A socket path that the kernel would not take; the message names the limit and the way out."""

    def __init__(self, path: str, size: int) -> None:
        super().__init__(
            f"the socket path is {size} bytes long and the kernel takes {SOCKET_LIMIT}: {path}; "
            "set XDG_RUNTIME_DIR to a shorter directory"
        )


def passwd_home(uid: int) -> str:
    """The home of the passwd file, which `env -i`, cron and su do not change; `/` where there is none."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_dir or "/"
    except KeyError:
        return "/"


def _base(environ: Mapping[str, str], variable: str, home: str, default: str) -> str:
    """An XDG base directory. A relative value is ignored, as the XDG specification asks."""
    named = environ.get(variable, "")
    if named.startswith("/"):
        return named
    own = environ.get("HOME", "")
    return os.path.join(own if own.startswith("/") else home, default)


# --- the runtime directory: sockets


def runtime_dirs(environ: Mapping[str, str], uid: int, home: str) -> tuple[str, ...]:
    """Candidates for the directory of control socket and doors, in the order daemon and client try them."""
    bases = [environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{uid}"]
    found = [os.path.join(base, APP) for base in bases if base.startswith("/")]
    return tuple(dict.fromkeys([*found, os.path.join(home, ".local/state", APP, "run")]))


def control_sockets(environ: Mapping[str, str], uid: int, home: str) -> tuple[str, ...]:
    """Where a client looks for the daemon, in order. `FLEET_SOCKET` is the only one when it is set."""
    named = environ.get(SOCKET_VARIABLE, "")
    if named:
        return (named,)
    return tuple(control_socket(runtime) for runtime in runtime_dirs(environ, uid, home))


def runtime_dir(environ: Mapping[str, str], uid: int, home: str) -> str:
    """Where the daemon puts its sockets: the first candidate in a directory of this uid, else the last."""
    named = environ.get(SOCKET_VARIABLE, "")
    if named:
        return os.path.dirname(os.path.abspath(named))
    candidates = runtime_dirs(environ, uid, home)
    for candidate in candidates[:-1]:
        try:
            seen = os.stat(os.path.dirname(candidate))
        except OSError:
            continue
        if seen.st_uid == uid and seen.st_mode & 0o700 == 0o700:
            return candidate
    return candidates[-1]


def control_socket(runtime: str) -> str:
    """The operator's socket."""
    return os.path.join(runtime, "control.sock")


def door(runtime: str, project: str, agent: str) -> str:
    """An agent's own socket. `project` is the project's id on disk."""
    return os.path.join(runtime, project, agent, "door")


def fitting(path: str) -> str:
    """The same path, if a socket can be bound there."""
    size = len(os.fsencode(path))
    if size > SOCKET_LIMIT:
        raise PathTooLongError(path, size)
    return path


# --- state and configuration


def state_dir(environ: Mapping[str, str], home: str) -> str:
    """What the daemon keeps: its own journal and log, and a directory for each project."""
    return os.path.join(_base(environ, "XDG_STATE_HOME", home, ".local/state"), APP)


def daemon_log(state: str) -> str:
    """Where the output of a daemon goes that a client started."""
    return os.path.join(state, "daemon.log")


def project_id(name: str, file: str) -> str:
    """`<name>-<8 hex of sha256 of the file's real path>`, fit for a directory's name."""
    import hashlib

    real = os.fsencode(os.path.realpath(file))
    slug = "".join(sign if sign in _SLUG else "_" for sign in name[:_SLUG_LIMIT]).lstrip(".") or "project"
    return f"{slug}-{hashlib.sha256(real).hexdigest()[:8]}"


def project_dir(state: str, project: str) -> str:
    """A project's journal and agents. `project` is its id on disk."""
    return os.path.join(state, project)


def config_dir(environ: Mapping[str, str], home: str) -> str:
    """A person's own configuration."""
    return os.path.join(_base(environ, "XDG_CONFIG_HOME", home, ".config"), APP)


def personal_file(environ: Mapping[str, str], home: str) -> str:
    """A person's own fleet and defaults: the project of whoever stands in no other."""
    return os.path.join(config_dir(environ, home), FILE)
