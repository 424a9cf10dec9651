"""A real systemd user manager for a test, in namespaces and a cgroup of its own, which are gone with the test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house import cgroup_roots, end_group

SCRIPT = Path(__file__).with_name("user_manager.sh")
NEEDED = ("systemctl", "systemd-run", "unshare", "runuser", "mount", "bash")


def missing() -> str:
    """What this machine lacks for it; empty if nothing."""
    if os.geteuid() != 0:
        return "namespaces for a user manager need root"
    if not Path("/lib/systemd/systemd").exists():
        return "systemd is not installed"
    if lacking := [name for name in NEEDED if not shutil.which(name)]:
        return f"not installed: {', '.join(lacking)}"
    if not any(os.access(root / "cgroup.procs", os.W_OK) for root in cgroup_roots()):
        return "no cgroup v2 hierarchy that may be written to"
    return ""


class UserManager:
    """Boots a manager for `user` around each command. Units are looked for in `home`/.config/systemd/user."""

    def __init__(self, group: Path, home: Path, user: str = "root") -> None:
        self.group = group
        self.home = home
        self.user = user

    def start(self, *command: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        """Run `command` under a manager; it ends with the command, and its exit code is the command's."""
        return subprocess.Popen(
            [SCRIPT, self.group, self.user, *command],
            env={"HOME": str(self.home), "PATH": os.environ["PATH"]},
            stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, *command: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """The same to its end."""
        with self.start(*command) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            finally:
                process.kill()
        return subprocess.CompletedProcess(command, process.returncode, out, err)


@pytest.fixture
def user_manager(place: Path) -> Iterator[UserManager]:
    """A manager for the test; skips with the reason where there can be none."""
    if reason := missing():
        pytest.skip(reason)
    root = next(root for root in cgroup_roots() if os.access(root / "cgroup.procs", os.W_OK))
    group = root / f"fleet-tests-{place.name}"
    group.mkdir()
    try:
        yield UserManager(group, place / "home")
    finally:
        end_group(group)
