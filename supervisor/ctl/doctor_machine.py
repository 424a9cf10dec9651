"""Doctor: what the kernel, its limits, the disk and the user's systemd give a fleet. Reads, and asks systemd once."""

from __future__ import annotations

import os
import platform
import re
import resource
import socket
import subprocess

from supervisor.ctl.findings import BAD, OK, WARN, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from supervisor.ctl.place import Place

TOPIC, SYSTEMD = "machine", "systemd"
_OLDEST = (5, 14)
_SO_PEERPIDFD = 77
#: An agent takes some descriptors and, in the cgroup tier, an inotify watch.
_FILES, _PROCESSES, _INSTANCES = 4096, 2048, 64
#: The daemon refuses new work below the first; the second is worth a word (bytes).
_FULL, _LOW = 32 << 20, 512 << 20
_LINGER = "/var/lib/systemd/linger"
#: How long systemd may take for one word (seconds).
_WITHIN = 1.2


def look(place: Place) -> Iterator[Finding]:
    """Kernel, containment, limits, disk."""
    release = platform.release()
    known = tuple(int(part) for part in re.findall(r"\d+", release)[:2])
    if known < _OLDEST:
        yield Finding(BAD, TOPIC, f"Linux {release} is older than 5.14", "cgroup.kill and pidfds need a newer kernel")
    else:
        yield Finding(OK, TOPIC, f"Linux {release}", notes=tuple(_lacks()))
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        words = "this kernel does not list children in /proc (CONFIG_PROC_CHILDREN)"
        yield Finding(BAD, TOPIC, words, "agents cannot be contained here: use another kernel")
    yield _tier()
    yield from _limits()
    yield _disk(place)


def _lacks() -> Iterator[str]:
    """Newer features that are used where they are, and done without where they are not."""
    if not _peer_pidfds():
        yield "no SO_PEERPIDFD (6.5): callers are named by pid and start time"


def _peer_pidfds() -> bool:
    one, other = socket.socketpair()
    try:
        os.close(one.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD))
    except OSError:
        return False
    else:
        return True
    finally:
        one.close()
        other.close()


def _tier() -> Finding:
    from supervisor.runtime.containment import cgroupfs

    try:
        base = cgroupfs.here()
    except OSError:
        base = None
    if base is not None and os.access(base.directory, os.W_OK) and os.access(f"{base.directory}/cgroup.procs", os.W_OK):
        return Finding(OK, TOPIC, f"a daemon started here contains by cgroups (in {base.name})")
    words = "a daemon started here contains by ancestry and its warden (tier warden)"
    why = "no cgroup v2 shows this process" if base is None else f"the cgroup {base.name} is not yours"
    return Finding(OK, TOPIC, words, notes=(f"{why}; with the unit it is: supervisorctl install-unit",))


def _limits() -> Iterator[Finding]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < _FILES:
        words = f"only {hard} open files are allowed, which is enough for some {max(1, hard // 8)} agents"
        yield Finding(WARN, TOPIC, words, f"raise the hard limit `nofile` of /etc/security/limits.conf to {_FILES}")
    else:
        yield Finding(OK, TOPIC, f"open files: {soft}, at most {'any number' if hard < 0 else hard}")
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft != resource.RLIM_INFINITY and soft < _PROCESSES:
        words = f"only {soft} processes of yours may run at once"
        yield Finding(WARN, TOPIC, words, f"raise the limit `nproc` of /etc/security/limits.conf to {_PROCESSES}")
    instances = _number("/proc/sys/fs/inotify/max_user_instances")
    if instances is not None and instances < _INSTANCES:
        words = f"only {instances} inotify instances are allowed (fs.inotify.max_user_instances)"
        yield Finding(WARN, TOPIC, words, f"sysctl fs.inotify.max_user_instances={2 * _INSTANCES}")


def _number(path: str) -> int | None:
    try:
        with open(path) as source:
            return int(source.read())
    except (OSError, ValueError):
        return None


def _disk(place: Place) -> Finding:
    at = place.state
    while not os.path.isdir(at):
        at = os.path.dirname(at)
    stat = os.statvfs(at)
    free = stat.f_bavail * stat.f_frsize
    words = f"{free >> 20} MiB are free where journals are kept ({at})"
    if free < _FULL:
        return Finding(BAD, TOPIC, words, "below 32 MiB no new work is taken: free some")
    if not os.access(at, os.W_OK):
        return Finding(BAD, TOPIC, f"{at} cannot be written to", "it is where journals are kept: make it yours")
    return (
        Finding(WARN, TOPIC, words, "free some: transcripts and journals need room")
        if free < _LOW
        else Finding(OK, TOPIC, words)
    )


# --- systemd


def systemd(place: Place) -> Iterator[Finding]:
    """The unit and lingering."""
    from supervisor.ctl import daemon, manager, unit

    file = os.path.join(manager.directory(place), manager.UNIT)
    if not os.path.lexists(file):
        words = "the daemon is not kept by systemd: it ends with the machine, and its warden restarts it until then"
        yield Finding(OK, SYSTEMD, words, notes=("to have it started at boot: supervisorctl install-unit --now",))
        return
    try:
        with open(file, encoding="utf-8", errors="replace") as source:
            current = source.read() == unit.text(daemon.command(), place)
    except OSError as error:
        yield Finding(BAD, SYSTEMD, f"{file} cannot be read: {error.strerror}", "supervisorctl install-unit --force")
        return
    if current:
        yield Finding(OK, SYSTEMD, f"{file} is as this installation writes it")
    else:
        yield Finding(WARN, SYSTEMD, f"{file} is of another installation, or changed", "supervisorctl install-unit")
    yield from _unit(place, manager.UNIT, on_disk=manager.orphaned(place))


def _unit(place: Place, name: str, *, on_disk: bool) -> Iterator[Finding]:
    told = _show(place, name)
    if not told:
        level, words = (WARN, "enabled, but no user manager answers here") if on_disk else (WARN, "it is not enabled")
        yield Finding(level, SYSTEMD, words, "log in in full, or: loginctl enable-linger; supervisorctl install-unit")
    elif told.get("UnitFileState") not in {"enabled", "enabled-runtime"}:
        yield Finding(
            WARN, SYSTEMD, f"{name} is {told.get('UnitFileState') or 'unknown'}", "supervisorctl install-unit"
        )
    elif told.get("ActiveState") == "failed":
        why = told.get("StatusText") or told.get("Result") or "unknown"
        yield Finding(BAD, SYSTEMD, f"{name} has failed: {why}", f"journalctl --user -u {name} -n 30")
    else:
        yield Finding(OK, SYSTEMD, f"{name} is enabled and {told.get('ActiveState')}")
    from supervisor.ctl.installing import user_name

    user = user_name(place.uid)
    if os.path.exists(os.path.join(_LINGER, user)):
        yield Finding(OK, SYSTEMD, f"lingering is on for {user}: it runs without a login")
    else:
        words = f"lingering is off: the daemon ends with the last session of {user}"
        yield Finding(WARN, SYSTEMD, words, f"to keep it, and to start it at boot: loginctl enable-linger {user}")


def _show(place: Place, name: str) -> dict[str, str]:
    """What the user's manager says of our unit, if it answers in time."""
    base = place.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{place.uid}"
    if not os.path.exists(os.path.join(base, "systemd", "private")):
        return {}
    argv = ["systemctl", "--user", "show", name, "--property=UnitFileState,ActiveState,Result,StatusText,MainPID"]
    try:
        done = subprocess.run(  # noqa: S603  systemctl of PATH
            argv, env={**place.environ, "XDG_RUNTIME_DIR": base}, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=_WITHIN, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return {}
    pairs = (line.partition("=") for line in done.stdout.splitlines() if done.returncode == 0)
    return {key: value for key, _, value in pairs}
