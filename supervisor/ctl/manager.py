"""The user's systemd, asked by `systemctl --user`: is our unit there, start it. It writes no unit."""

from __future__ import annotations

import os
import subprocess
import time

from supervisor.ctl.call import connect
from supervisor.ctl.errand import Progress
from supervisor.ctl.outcome import NO_DAEMON, TIMED_OUT, Failure
from supervisor.doors import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from supervisor.ctl.call import Client
    from supervisor.ctl.place import Place

UNIT = "fleet-supervisor.service"
#: A manager that takes longer for a word has other troubles. (Starting is waited for as long as the unit allows.)
PATIENCE = 30.0
STARTING = 150.0
_STEP = 0.02


class Manager:
    """One that answers."""

    def __init__(self, program: str, environ: dict[str, str]) -> None:
        self._program = program
        self._environ = environ

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`systemctl --user WORDS`, to its end."""
        try:
            return subprocess.run(  # noqa: S603  systemctl, found on PATH
                [self._program, "--user", *words],
                env=self._environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            words_said = f"the user manager did not answer `systemctl --user {words[0]}` within {PATIENCE:g} s"
            raise Failure(TIMED_OUT, words_said) from None

    def must(self, *words: str) -> None:
        """The same; a failure is one."""
        done = self.run(*words)
        if done.returncode != 0:
            raise Failure(NO_DAEMON, f"`systemctl --user {' '.join(words)}` failed", *done.stderr.splitlines()[:5])

    def show(self) -> dict[str, str]:
        """What it knows of our unit; empty where it does not answer."""
        names = "LoadState,UnitFileState,ActiveState,MainPID,FragmentPath,Result,StatusText"
        done = self.run("show", UNIT, "--property=" + names)
        pairs = (line.partition("=") for line in done.stdout.splitlines() if done.returncode == 0)
        return {name: value for name, _, value in pairs}

    def start(self, place: Place, *, quiet: bool = False) -> Client:
        """Start the unit, and connect to its daemon."""
        self.run("reset-failed", UNIT)  # it failed before, perhaps too often: a person's word begins anew
        with subprocess.Popen(  # noqa: S603  as above
            [self._program, "--user", "start", UNIT],
            env=self._environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        ) as process, Progress(f"{UNIT} to start", quiet=quiet) as progress:  # fmt: skip
            begun = time.monotonic()
            while process.poll() is None:
                if time.monotonic() - begun > STARTING:
                    process.kill()
                    raise Failure(TIMED_OUT, f"{UNIT} did not start within {STARTING:g} s", *_ADVICE)
                progress.tick(time.monotonic() - begun)
                time.sleep(_STEP)
            said = process.stderr.read() if process.stderr is not None else ""
        if process.returncode != 0:
            told = self.show()
            why = told.get("StatusText") or f"result {told.get('Result') or 'unknown'}"
            raise Failure(NO_DAEMON, f"{UNIT} did not start: {why}", *said.splitlines()[:5], *_ADVICE)
        try:
            return connect(place.sockets, place.uid)
        except Failure as failure:
            if failure.code != NO_DAEMON:
                raise
            looked = ", ".join(place.sockets)
            raise Failure(
                NO_DAEMON, f"{UNIT} runs, but its daemon does not answer at {looked}",
                "the user manager's XDG_RUNTIME_DIR differs from yours: systemctl --user show-environment", *_ADVICE,
            ) from None  # fmt: skip


_ADVICE = (f"see: systemctl --user status {UNIT}", f"and: journalctl --user -u {UNIT} -n 30")


def find(place: Place) -> Manager | None:
    """The user's manager, if one answers. A named socket is one daemon and no other: no manager keeps that."""
    from shutil import which

    program = which("systemctl", path=place.environ.get("PATH", os.defpath))
    if program is None or place.environ.get(paths.SOCKET_VARIABLE):
        return None
    # The runtime directory that was named is the one that is meant: a test's has no manager, whatever runs elsewhere.
    base = place.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{place.uid}"
    if not os.path.exists(os.path.join(base, "systemd", "private")):
        return None
    found = Manager(program, {**place.environ, "XDG_RUNTIME_DIR": base})
    return found if found.show() else None


def enabled(told: dict[str, str]) -> bool:
    """Is the daemon to live in the unit?"""
    return told.get("LoadState") != "masked" and told.get("UnitFileState") in {"enabled", "enabled-runtime"}


def directory(place: Place) -> str:
    """Where a person's units are."""
    return os.path.join(os.path.dirname(paths.config_dir(place.environ, place.home)), "systemd", "user")


def orphaned(place: Place) -> bool:
    """Is the unit enabled on disk? Worth a word where no manager answers."""
    return os.path.lexists(os.path.join(directory(place), "default.target.wants", UNIT))
