"""The user manager that tests of the systemd unit stand on is a real one."""

from __future__ import annotations

from pathlib import Path

from tests.house import eventually_sync
from tests.systemd import UserManager

INTO_A_LEAF = """#!/bin/bash -eu
own=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
mkdir "$own/leaf"
echo $$ >"$own/leaf/cgroup.procs"
sed -n 's/^0:://p' /proc/self/cgroup
"""


def test_a_delegated_unit_runs_and_its_cgroup_is_its_own(user_manager: UserManager, tmp_path: Path) -> None:
    program = tmp_path / "into a leaf"
    program.write_text(INTO_A_LEAF)
    program.chmod(0o755)
    options = ("--user", "--quiet", "--wait", "--pipe", "--unit=probe", "--property=Delegate=yes")
    ran = user_manager.run("systemd-run", *options, str(program))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.strip().endswith("/probe.service/leaf")


def test_a_commands_exit_code_comes_back_and_nothing_of_the_manager_is_left(user_manager: UserManager) -> None:
    ran = user_manager.run("bash", "-c", "systemd-run --user --quiet sleep 600; exit 7")
    assert ran.returncode == 7
    assert not (user_manager.group / "cgroup.procs").read_text()


def test_a_unit_file_in_the_home_is_found(user_manager: UserManager) -> None:
    units = user_manager.home / ".config/systemd/user"
    units.mkdir(parents=True)
    (units / "probe.service").write_text("[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo ran >%h/ran'\n")
    ran = user_manager.run("systemctl", "--user", "start", "probe.service")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (user_manager.home / "ran").read_text() == "ran\n"


def test_a_manager_that_is_killed_takes_all_with_it(user_manager: UserManager) -> None:
    with user_manager.start("bash", "-c", "systemd-run --user --quiet sleep 600; echo up; sleep 600") as manager:
        assert manager.stdout
        assert manager.stdout.readline() == "up\n"
        manager.kill()
    events = user_manager.group / "cgroup.events"
    eventually_sync(lambda: "populated 0" in events.read_text())
