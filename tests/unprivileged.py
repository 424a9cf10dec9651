"""What tests need that must run as an unprivileged user: a uid, and the installed project where that uid can read
it."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

#: A Python that every uid can read; the one that runs the tests may stand in a private home.
SYSTEM_PYTHON = "/usr/bin/python3"


@frozen
class Unprivileged:
    """An unprivileged user: `python` is an interpreter that has the project installed, `home` a private directory of
    the user, `identity` what subprocess.Popen takes to become it."""

    uid: int
    python: str
    home: Path
    identity: dict[str, Any]

    def directory(self) -> Path:
        """A new private directory of the user, short enough for socket paths; gone with the session."""
        path = Path(tempfile.mkdtemp(dir=self.home))
        os.chown(path, self.uid, -1)
        return path


@pytest.fixture(scope="session")
def unprivileged() -> Iterator[Unprivileged]:
    """Installs the project once a session; the tests' own user if that is not root."""
    root = os.geteuid() == 0
    nobody = pwd.getpwnam("nobody")
    uid, gid = (nobody.pw_uid, nobody.pw_gid) if root else (os.geteuid(), os.getegid())
    # Not pytest's own directory: that one is closed to other users.
    place = Path(tempfile.mkdtemp(prefix="fleet-tests-"))
    try:
        place.chmod(0o755)
        home = place / "home"
        home.mkdir(mode=0o700)
        os.chown(home, uid, gid)
        _install(place / "venv")
        identity = {"user": uid, "group": gid, "extra_groups": []} if root else {}
        yield Unprivileged(uid, str(place / "venv/bin/python"), home, identity)
    finally:
        shutil.rmtree(place)


def _install(venv: Path) -> None:
    project = Path(__file__).parents[1]
    python = venv / "bin/python"
    own: bool = importlib.util.find_spec("pip") is not None  # else the new one needs a pip of its own, which is slower
    subprocess.run([SYSTEM_PYTHON, "-m", "venv", *(["--without-pip"] if own else []), venv], check=True, umask=0o022)
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python] if own else [python, "-m", "pip"]
    pip += ["-q", "--disable-pip-version-check", "install", project]
    subprocess.run(pip, check=True, umask=0o022, stderr=subprocess.DEVNULL)
