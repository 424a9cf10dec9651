"""Doctor: is this package installed so that every command of its name is this one? Looks at files on PATH only."""

from __future__ import annotations

import os
import platform
import sys

from supervisor.ctl.findings import BAD, OK, WARN, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from supervisor.ctl.place import Place

TOPIC = "installation"
_OLDEST = (3, 11)
#: What stands in the scripts of each.
_OURS, _THEIRS = b"supervisor.ctl.main", b"supervisor.supervisorctl"
_HEAD = 4096


def look(place: Place) -> Iterator[Finding]:
    """Version, Python, and who is meant by `supervisorctl`."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        ours = version("fleet-supervisor")
    except PackageNotFoundError:
        ours = "of a source tree that is not installed"
    yield Finding(OK, TOPIC, f"fleet-supervisor {ours}, Python {platform.python_version()} ({sys.executable})")
    if sys.version_info < _OLDEST:
        yield Finding(BAD, TOPIC, "this Python is older than 3.11", "install it with Python 3.11 or newer")
    yield from _commands(place)
    yield _daemon()


def _commands(place: Place) -> Iterator[Finding]:
    found = on_path("supervisorctl", place.environ.get("PATH", os.defpath))
    if not found:
        own = os.path.dirname(sys.executable)
        words = "no `supervisorctl` is on your PATH; agents have it on theirs all the same"
        yield Finding(WARN, TOPIC, words, f"put it there: export PATH={own}:$PATH")
        return
    first, *rest = found
    if _has(first, _OURS):
        yield Finding(OK, TOPIC, f"supervisorctl is {first}")
        for other in rest:
            if not _same(first, other):
                whose = "of PyPI's `supervisor`" if _has(other, _THEIRS) else "another one"
                yield Finding(OK, TOPIC, f"{other} is {whose}; it comes later on PATH and is not what runs")
        return
    whose = "PyPI's `supervisor`" if _has(first, _THEIRS) else "another program"
    words = f"`supervisorctl` on your PATH is {first}, which is {whose} and not ours"
    ours = next((other for other in rest if _has(other, _OURS)), "")
    do = f"put {os.path.dirname(ours)} before it on PATH" if ours else "give ours a place of its own: pipx install"
    yield Finding(BAD, TOPIC, words, do)


def on_path(name: str, path: str) -> list[str]:
    """Every program of that name on PATH, the first first."""
    places = (os.path.join(directory, name) for directory in path.split(os.pathsep) if directory)
    return list(dict.fromkeys(each for each in places if os.path.isfile(each) and os.access(each, os.X_OK)))


def _daemon() -> Finding:
    from supervisor.ctl import daemon

    argv = daemon.command()
    if len(argv) > 1:
        words = "no `supervisord` of ours lies beside this command; the daemon is started by its module"
        return Finding(WARN, TOPIC, words, "install the package again, so that its scripts are there")
    beside = os.path.dirname(os.path.realpath(argv[0])) == os.path.dirname(os.path.realpath(sys.argv[0]))
    running = sys.prefix if beside else os.path.dirname(os.path.dirname(argv[0]))
    return Finding(OK, TOPIC, f"supervisord is {argv[0]}, of the same environment ({running})")


def _has(script: str, word: bytes) -> bool:
    try:
        with open(script, "rb") as source:
            return word in source.read(_HEAD)
    except OSError:
        return False


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other) or _has(other, _OURS)
