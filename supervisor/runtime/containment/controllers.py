"""Limits of cgroups: controllers handed down from the cgroup that is ours, limits written, and what ran out of memory
read. It knows nothing of agents, and keeps no process from running: what cannot be kept is said."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from attrs import define, field

if TYPE_CHECKING:
    from supervisor.core.spec import Resources
    from supervisor.runtime.containment.cgroupfs import Place

#: The controller that keeps each limit.
CONTROLLER = {"memory": "memory", "cpu": "cpu", "processes": "pids"}
#: The window of a share of processors, in microseconds.
_PERIOD = 100_000
_SWAP = "memory.swap.max"


@define
class Controllers:
    """Those of one daemon's cgroup `base`. One is switched on when the first limit asks for it."""

    base: Place
    _on: dict[str, set[str]] = field(factory=dict)  # by directory: what is handed down from there
    _ours: list[tuple[str, str]] = field(factory=list)  # what was switched on by us, in that order

    def limit(self, place: Place, resources: Resources) -> str:
        """Write the limits of a cgroup below the base. Why some are not kept; "" if all are."""
        files = _files(resources)
        reasons: dict[str, None] = {}
        for name, controller in CONTROLLER.items():
            asked = getattr(resources, name) is not None
            # What was never limited needs no word: its files are not there.
            if not asked and controller not in self._on.get(os.path.dirname(place.directory), ()):
                continue
            reason = self._hand_down(place, controller) or _write_all(place, files[name])
            if asked and reason:
                reasons[f"{name}: {reason}"] = None
        return "; ".join(reasons)

    def _hand_down(self, place: Place, controller: str) -> str:
        """From the base to the cgroup, and to what is inside that. Why not, or ""."""
        inner = place.directory[len(self.base.directory) :].strip("/").split("/")
        at = self.base.directory
        for step in ["", *inner]:
            at = f"{at}/{step}".rstrip("/")
            on = self._on.setdefault(at, set())
            if controller in on:
                continue
            try:
                offered, already = (_words(f"{at}/cgroup.{file}") for file in ("controllers", "subtree_control"))
                if controller not in offered:
                    return f"the controller {controller} is not offered to the cgroup {self.base.name}"
                if controller not in already:
                    _write(f"{at}/cgroup.subtree_control", f"+{controller}")
                    self._ours.append((at, controller))
            except OSError as error:
                return _why(error, at, controller)
            on.add(controller)
        return ""

    def give_back(self) -> None:
        """Switch off again what we switched on, innermost first; what others still use stays."""
        for directory, controller in reversed(self._ours):
            with suppress(OSError):
                _write(f"{directory}/cgroup.subtree_control", f"-{controller}")
        self._ours.clear()
        self._on.clear()

    def forget(self, place: Place) -> None:
        """The cgroup is gone; one of its name may come again."""
        self._on.pop(place.directory, None)
        self._ours = [one for one in self._ours if one[0] != place.directory]


def oom(place: Place, inner: Place) -> int:
    """How many processes of `place` itself, or of what is in its part `inner`, the kernel ended for want of memory."""
    return _oom(f"{place.directory}/memory.events.local") + _oom(f"{inner.directory}/memory.events")


def _oom(file: str) -> int:
    with suppress(OSError), open(file) as events:
        return next((int(line.split()[1]) for line in events if line.startswith("oom_kill ")), 0)
    return 0


def _files(resources: Resources) -> dict[str, dict[str, str]]:
    """What is written where, by the name of the limit."""
    memory, cpu, processes = resources.memory, resources.cpu, resources.processes
    return {
        # Swap would let it go on beyond its limit, on everybody's time.
        "memory": {_SWAP: "max" if memory is None else "0", "memory.max": _or_max(memory)},
        "cpu": {"cpu.max": f"{'max' if cpu is None else max(1000, cpu * _PERIOD // 100)} {_PERIOD}"},
        "processes": {"pids.max": _or_max(processes)},
    }


def _or_max(value: int | None) -> str:
    return "max" if value is None else str(value)


def _write_all(place: Place, files: dict[str, str]) -> str:
    try:
        for name, value in files.items():
            file = f"{place.directory}/{name}"
            if name != _SWAP or os.path.exists(file):  # a kernel that counts no swap has no file for it
                _write(file, value)
    except OSError as error:
        return f"{error.filename or place.name}: {error.strerror}"
    return ""


def _why(error: OSError, at: str, controller: str) -> str:
    if error.errno == errno.EBUSY:
        return f"processes stand in {at} itself, so that it cannot hand {controller} down"
    return f"{controller} cannot be handed down in {at}: {error.strerror}"


def _words(file: str) -> set[str]:
    with open(file) as words:
        return set(words.read().split())


def _write(file: str, value: str) -> None:
    # No O_CREAT: a cgroup has the files that it has.
    fd = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)
