"""What `doctor` sees of a machine, each trap set up for real: programs on PATH, sockets, files."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.ctl import doctor_daemon, doctor_install, doctor_machine, doctor_programs
from supervisor.ctl.findings import BAD, OK, WARN, Finding
from supervisor.ctl.place import Place
from supervisor.kinds.kind import Kind
from supervisor.kinds.programs import PROGRAMS, Program
from supervisor.kinds.table import KINDS
from tests.fleet import CTL, Fleet, running
from tests.house import PATIENCE

PI = next(program for program in PROGRAMS if program.name == "pi")
ROOT = Path(__file__).parents[2]


def place_of(environ: Mapping[str, str]) -> Place:
    return Place(environ, os.geteuid(), "/", os.environ["HOME"])


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def installed(room: Path, version: str, node: str) -> dict[str, str]:
    """An environment whose PATH has a pi of this version, as npm installs it, and this Node.js."""
    package = room / "lib" / "node_modules" / "pi"
    script(package / "dist" / "cli.js", "#!/usr/bin/env node\n")
    (package / "package.json").write_text(json.dumps({"name": PI.package, "version": version}))
    (room / "bin").mkdir()
    (room / "bin" / "pi").symlink_to(package / "dist" / "cli.js")
    script(room / "bin" / "node", f"#!/bin/sh\necho v{node}\n")
    return {"PATH": f"{room}/bin", "HOME": str(room)}


def of(findings: Iterable[Finding], word: str) -> Finding:
    """The one that speaks of this."""
    found = [each for each in findings if word in each.words]
    assert len(found) == 1, (word, found)
    return found[0]


def test_a_program_of_the_tested_version_is_well_and_its_traps_are_named(tmp_path: Path) -> None:
    found = doctor_programs.look(place_of(installed(tmp_path, PI.tested, "22.20.0")))
    pi = of(found, f"pi {PI.tested}")
    assert (pi.level, pi.notes) == (OK, PI.traps)
    assert "claude" in of(found, "not on PATH").words


def test_a_program_of_another_version_is_worth_a_word(tmp_path: Path) -> None:
    found = of(doctor_programs.look(place_of(installed(tmp_path, "9.9.9", "22.20.0"))), "pi 9.9.9")
    assert (found.level, PI.tested in found.words) == (WARN, True)
    assert f"{PI.package}@{PI.tested}" in found.do


def test_a_node_that_is_too_old_is_bad(tmp_path: Path) -> None:
    found = of(doctor_programs.look(place_of(installed(tmp_path, PI.tested, "22.4.1"))), "needs Node.js")
    assert found.level == BAD
    assert "22.19" in found.words
    assert "22.4.1" in found.words


def test_a_program_that_hangs_instead_of_telling_its_version_is_left_and_ended(tmp_path: Path) -> None:
    script(tmp_path / "claude", "#!/bin/sh\nsleep 1000 &\nwait\n")
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    found = of(doctor_programs.look(place_of(environ)), f"{tmp_path}/claude")
    assert (found.level, "does not say its version" in found.words) == (WARN, True)


def test_a_native_program_is_asked_for_its_version(tmp_path: Path) -> None:
    script(tmp_path / "claude", "#!/bin/sh\necho '2.0.1 (Claude Code)'\n")
    found = doctor_programs.look(place_of({"PATH": f"{tmp_path}", "HOME": str(tmp_path)}))
    assert of(found, "claude 2.0.1").level == WARN


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_login_is_found_by_a_key_or_by_a_file_and_by_nothing_else(program: Program, tmp_path: Path) -> None:
    bare = {"HOME": str(tmp_path)}
    assert not doctor_programs.logged_in(bare, program)
    for key in program.keys:
        assert doctor_programs.logged_in({**bare, key.replace("*", "SOME"): "x"}, program)
    variable, default = program.home
    for file in program.files:
        kept = Path(default.replace("~", str(tmp_path), 1)) / file
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.touch()
        assert doctor_programs.logged_in(bare, program)
        if variable:
            assert not doctor_programs.logged_in({**bare, variable: str(tmp_path / "elsewhere")}, program)
        kept.unlink()


def test_the_table_knows_the_kinds_that_there_are_and_the_versions_that_are_tested() -> None:
    programs = {program.name: program for program in PROGRAMS}
    for name in KINDS.keys() - {"lines", "scripted"}:
        kind: Kind = KINDS[name]
        assert name in programs
        for key in programs[name].keys:
            passes = any(key == own or own in (key, "*") or _covers(own, key) for own in kind.env)
            assert passes, f"{key} logs {name} in, and an agent would not get it"
    pins: dict[str, str] = json.loads((ROOT / "tests/agent-clis/package.json").read_text())["dependencies"]
    for program in PROGRAMS:
        assert pins.get(program.package, program.tested) == program.tested


def _covers(own: str, key: str) -> bool:
    return (own.endswith("*") and key.startswith(own[:-1])) or (own.startswith("*") and key.endswith(own[1:]))


def test_another_program_of_our_name_that_comes_first_on_path_is_bad(tmp_path: Path) -> None:
    theirs = script(tmp_path / "theirs" / "supervisorctl", "from supervisor.supervisorctl import main\n")
    ours = script(tmp_path / "ours" / "supervisorctl", "from supervisor.ctl.main import main\n")
    first = [*doctor_install.look(place_of({"PATH": f"{theirs.parent}:{ours.parent}"}))]
    clash = of(first, str(theirs))
    assert (clash.level, "PyPI's `supervisor`" in clash.words) == (BAD, True)
    assert str(ours.parent) in clash.do
    later = [*doctor_install.look(place_of({"PATH": f"{ours.parent}:{theirs.parent}"}))]
    assert of(later, str(ours)).level == OK
    assert of(later, str(theirs)).level == OK
    none = [*doctor_install.look(place_of({"PATH": str(tmp_path)}))]
    assert of(none, "no `supervisorctl`").level == WARN


def sockets(path: Path) -> list[Finding]:
    seen = doctor_daemon.Seen()
    return [*doctor_daemon.look(place_of({"FLEET_SOCKET": str(path)}), seen)]


def test_a_socket_is_stale_or_none_or_wedged_and_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    assert of(sockets(path), "no daemon runs").level == OK
    path.touch()
    assert of(sockets(path), "is no socket").level == BAD
    path.unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        found = of(sockets(path), "wedged")
        assert (found.level, str(os.getpid()) in found.words) == (BAD, True)
    stale = of(sockets(path), "is stale")
    assert (stale.level, path.exists()) == (WARN, True)


def test_what_daemons_left_is_told(tmp_path: Path) -> None:
    place = place_of({"XDG_STATE_HOME": str(tmp_path)})
    assert "nothing is kept yet" in next(doctor_daemon.state(place)).words
    kept = Path(place.state) / "old-12345678"
    kept.mkdir(parents=True)
    Path(place.state).chmod(0o700)
    (kept / "journal.jsonl").write_text('{"facts":[{"fact":"Accepted","file":"/no/\\"such\\"/agents.toml"}]}\n{"to')
    found = [*doctor_daemon.state(place)]
    assert of(found, "torn").level == WARN
    assert '/no/"such"/agents.toml' in of(found, "what is left of a project").words


def test_the_machine_is_looked_at_without_being_changed(tmp_path: Path) -> None:
    place = place_of({"XDG_STATE_HOME": f"{tmp_path}/state", "XDG_CONFIG_HOME": f"{tmp_path}/config"})
    topics = {each.topic for each in (*doctor_machine.look(place), *doctor_machine.systemd(place))}
    assert topics == {"machine", "systemd"}
    assert [*tmp_path.iterdir()] == []


async def doctor(fleet: Fleet, **environ: str) -> tuple[int, list[dict[str, Any]]]:
    """Its exit code and what it found."""
    done = await trio.run_process(
        [*CTL, "doctor", "--json"], env={**os.environ, **environ}, cwd=fleet.at, capture_stdout=True, check=False
    )
    answer = json.loads(done.stdout)
    bad = any(each["level"] == BAD for each in answer["findings"])
    assert done.returncode == (1 if bad else 0)
    assert all({"level", "topic", "words", "do"} <= each.keys() for each in answer["findings"])
    return done.returncode, answer["findings"]


async def test_a_living_daemon_is_compared_with_the_shell(tmp_path: Path) -> None:
    environ = installed(tmp_path, PI.tested, "22.20.0") | {"OPENAI_API_KEY": "only-here"}
    script(tmp_path / "bin" / "codex", "#!/bin/sh\necho codex-cli 0.1.0\n")
    path = f"{environ['PATH']}:{os.environ['PATH']}"
    with trio.fail_after(PATIENCE):
        async with running(tmp_path / "fleet", "warden") as fleet:
            await fleet.up('[project]\nname = "t"\n')
            _, found = await doctor(fleet, PATH=path, OPENAI_API_KEY="only-here")
            words = {each["words"]: each for each in found}
            assert any(f"pid {fleet.process.pid} of uid" in each for each in words)
            differs = next(each for each in words if each.startswith("t: `pi` is "))
            assert "not found for its agents" in differs
            assert "supervisorctl up" in words[differs]["do"]
            lacks = next(each for each in words if each.startswith("OPENAI_API_KEY is set"))
            assert "env_file" in words[lacks]["do"]
            (fleet.at / "agents.toml").unlink()
            _, found = await doctor(fleet)
            assert any("is gone; its agents run" in each["words"] for each in found)
