"""`install-unit` and `up` under a real user manager: one place where the daemon lives."""

from __future__ import annotations

import json
from pathlib import Path

import trio

from tests.house import PATIENCE, eventually
from tests.service.inside import UNIT, Inside, Service

TREE = '[agents.lead]\nkind = "scripted"\n'


async def test_the_unit_is_enabled_and_what_is_left_to_do_is_said(inside: Inside) -> None:
    with trio.fail_after(PATIENCE):
        said = await inside.install()
        assert "loginctl enable-linger root" in said
        assert "install-unit --now" in said
        assert (await inside.systemctl("is-enabled", UNIT)).strip() == "enabled"
        assert await inside.show("ActiveState") == {"ActiveState": "inactive"}
        again = json.loads(await inside.ctl("install-unit", "--now", "--json"))
        assert (again["written"], again["enabled"], again["active"]) == (False, True, True)
        assert again["pid"] == await Service(inside).main_pid()
        # A further one leaves what runs alone.
        assert json.loads(await inside.ctl("install-unit", "--now", "--json"))["pid"] == again["pid"]


async def test_a_running_daemon_moves_into_the_unit_with_what_was_wanted(inside: Inside) -> None:
    with trio.fail_after(PATIENCE):
        service = Service(inside)
        (service.at / "agents.toml").write_text(TREE)
        assert "started the daemon" in await service.ctl("up")
        await service.alive("lead")
        before = (await service.answers())["pid"]
        assert f"(pid {before}) runs without it" in await inside.install()
        assert (await service.answers())["pid"] == before
        assert f"(pid {before}) has left" in await inside.ctl("install-unit", "--now")
        assert (await service.answers())["pid"] == await service.main_pid() != before
        assert (await service.alive("lead"))["lead"]["run"] == 2
        assert service.runs("a1") == ["run 1", "run 2"]
        assert all(UNIT in agent.cgroup for agent in service.agents())


async def test_up_starts_the_unit_where_it_is_enabled_and_records_the_callers_path(inside: Inside) -> None:
    with trio.fail_after(PATIENCE):
        await inside.install()
        service = Service(inside)
        (service.at / "agents.toml").write_text(TREE)
        client = Path(inside.python).with_name("supervisorctl")
        said = await inside.run("env", "PATH=/opt/mine:/usr/bin:/bin", str(client), "up", cwd=service.at)
        assert f"started {UNIT}" in said
        pid = await service.main_pid()
        assert (await service.answers())["pid"] == pid
        await service.alive("lead")
        (agent,) = service.agents()
        path = next(one for one in agent.environ.split(b"\0") if one.startswith(b"PATH=")).decode()
        assert path.endswith(":/opt/mine:/usr/bin:/bin")
        # Recorded: it is the same after a restart, which no shell of the person's has a part in.
        await inside.systemctl("restart", UNIT)
        await service.another(pid)
        await service.alive("lead")
        (agent,) = service.agents()
        assert path.encode() in agent.environ.split(b"\0")


async def test_a_unit_that_does_not_start_says_why_and_no_other_daemon_takes_its_place(inside: Inside) -> None:
    with trio.fail_after(PATIENCE):
        await inside.install(drop_in="Environment=XDG_STATE_HOME=/dev/null\n")
        service = Service(inside)
        (service.at / "agents.toml").write_text(TREE)
        done = await inside.attempt_ctl("up", cwd=service.at)
        assert done.code == 69
        assert "/dev/null/fleet-supervisor cannot be made" in done.err
        assert f"journalctl --user -u {UNIT}" in done.err
        assert not [each for each in inside.processes() if "supervisord" in each.argv]


async def test_where_no_manager_answers_up_starts_a_daemon_and_says_that_it_is_outside(inside: Inside) -> None:
    with trio.fail_after(PATIENCE):
        await inside.install()
        service = Service(inside)
        (service.at / "agents.toml").write_text(TREE)
        client = Path(inside.python).with_name("supervisorctl")
        # As after `su`: the runtime directory is there, the manager's socket in it is not.
        private = "/run/user/0/systemd/private"
        said = await inside.run(
            "sh", "-c", f"mv {private} {private}.away; {client} up; mv {private}.away {private}", cwd=service.at
        )
        assert "no user manager answers here" in said
        await service.alive("lead")
        await service.ctl("shutdown")
        await eventually(lambda: not service.agents(), PATIENCE)
