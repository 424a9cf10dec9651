"""`install-unit`: has the user manager take our unit up, moves a running daemon into it, says what is left to do."""

from __future__ import annotations

import os

from supervisor.ctl import daemon, manager, unit
from supervisor.ctl.leaving import Watch
from supervisor.ctl.manager import UNIT
from supervisor.ctl.outcome import DONE, NO_DAEMON, REFUSED, USAGE, Failure
from supervisor.doors import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from supervisor.ctl.errand import Errand
    from supervisor.ctl.manager import Manager
    from supervisor.ctl.place import Place

_LINGER = "/var/lib/systemd/linger"


def install(errand: Errand) -> int:
    """Write, enable, and with `--now` start."""
    place = errand.place
    wanted = unit.text(daemon.command(), place)
    if errand.params.get("print"):
        print(wanted, end="")
        return DONE
    place.outside("install-unit")
    if place.environ.get(paths.SOCKET_VARIABLE):
        raise Failure(USAGE, f"{paths.SOCKET_VARIABLE} names another daemon than the one that a unit keeps: unset it")
    file = os.path.join(manager.directory(place), UNIT)
    written = unit.write(file, wanted, force=bool(errand.params.get("force")))
    asked = manager.find(place)
    if asked is None:
        raise _without_manager(place, file)
    asked.must("daemon-reload")
    told = asked.show()
    if os.path.realpath(told.get("FragmentPath") or "/") != os.path.realpath(file):
        raise Failure(
            REFUSED, f"the user manager takes {UNIT} from {told.get('FragmentPath') or 'nowhere'}, not from {file}",
            "its XDG_CONFIG_HOME differs from yours, or the unit is masked: systemctl --user show-environment",
        )  # fmt: skip
    asked.must("enable", UNIT)
    outside = _outside(place, told)
    left = _leave(errand, outside) if errand.params.get("now") else 0
    if errand.params.get("now"):
        asked.start(place, quiet=errand.asked.json).sock.close()
    return _answer(errand, asked, told, file, written=written, outside=0 if left else outside, left=left)


def _without_manager(place: Place, file: str) -> Failure:
    from shutil import which

    if which("systemctl", path=place.environ.get("PATH", os.defpath)) is None:
        return Failure(
            REFUSED, f"{file} is written, but there is no systemctl here to enable it with",
            "without systemd: supervisorctl up starts a daemon with a warden of its own",
        )  # fmt: skip
    user = user_name(place.uid)
    return Failure(
        REFUSED, f"{file} is written, but no user manager answers to enable it",
        f"su, sudo and cron have none: log in as {user}, or: sudo loginctl enable-linger {user}",
        f"then: export XDG_RUNTIME_DIR=/run/user/{place.uid}; supervisorctl install-unit --now",
        "until then: supervisorctl up starts a daemon with a warden of its own",
    )  # fmt: skip


def _outside(place: Place, told: dict[str, str]) -> int:
    """The pid of a daemon that runs, but not in the unit."""
    from supervisor.ctl.call import connect

    try:
        with connect(place.sockets, place.uid) as client:
            return client.pid if str(client.pid) != told.get("MainPID") else 0
    except Failure as failure:
        if failure.code != NO_DAEMON:
            raise
        return 0


def _leave(errand: Errand, pid: int) -> int:
    """Have that daemon end in order: what is wanted comes back under the unit."""
    if not pid:
        return 0
    with errand.client() as client, Watch(client) as watch:
        client.call("shutdown", {})
        watch.gone(errand, "; the unit is not started")
    return pid


# --- what is said


def _answer(
    errand: Errand, asked: Manager, before: dict[str, str], file: str, *, written: bool, outside: int, left: int
) -> int:
    told = asked.show()
    active, user = told.get("ActiveState") == "active", user_name(errand.place.uid)
    linger = os.path.exists(os.path.join(_LINGER, user))
    pid = int(told.get("MainPID") or 0)
    answer: dict[str, Any] = {"unit": file, "written": written, "enabled": True, "active": active, "linger": linger}
    answer |= {"pid": pid or None, "left": left or None}
    lines = [f"wrote {file}" if written else f"{file} is as it should be", "enabled: it starts with your user manager"]
    if left:
        lines.append(f"the daemon that ran without it (pid {left}) has left")
    if active and before.get("ActiveState") != "active":
        lines.append(f"started: pid {pid}, with what was wanted before")
    elif active and written:
        lines.append(f"it runs on as it was started; take the new unit up: systemctl --user restart {UNIT}")
    elif not active:
        runs = f"the daemon (pid {outside}) runs without it; " if outside else ""
        lines.append(f"{runs}move it into the unit now: supervisorctl install-unit --now")
    lines.append(
        "the user manager runs without a login too: lingering is on" if linger
        else f"it ends with your last session; to keep it, and to start it at boot: loginctl enable-linger {user}"
    )  # fmt: skip
    lines.append(f"its log: journalctl --user -u {UNIT}")
    return errand.answer(answer, lines)


def user_name(uid: int) -> str:
    """The account of this uid."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
