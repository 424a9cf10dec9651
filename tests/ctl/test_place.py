"""Client and daemon find each other and the project from wherever they are started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from supervisor.ctl.outcome import BAD_CONFIG, Failure
from supervisor.ctl.place import Place
from supervisor.doors import paths

HOME = "/home/ada"


def test_a_client_looks_in_the_session_then_in_run_user_then_at_home() -> None:
    assert paths.control_sockets({"XDG_RUNTIME_DIR": "/run/x"}, 1000, HOME) == (
        "/run/x/fleet-supervisor/control.sock",
        "/run/user/1000/fleet-supervisor/control.sock",
        "/home/ada/.local/state/fleet-supervisor/run/control.sock",
    )


def test_without_an_environment_the_same_daemon_is_found() -> None:
    with_session = paths.control_sockets({"XDG_RUNTIME_DIR": "/run/user/1000"}, 1000, HOME)
    assert paths.control_sockets({}, 1000, HOME) == with_session
    assert paths.control_sockets({"XDG_RUNTIME_DIR": "relative"}, 1000, HOME) == with_session


def test_a_named_socket_is_the_only_one() -> None:
    assert paths.control_sockets({"FLEET_SOCKET": "/s", "XDG_RUNTIME_DIR": "/run/x"}, 1000, HOME) == ("/s",)
    assert paths.runtime_dir({"FLEET_SOCKET": "/d/s"}, 1000, HOME) == "/d"


def test_the_daemon_binds_where_a_client_looks_and_only_in_a_directory_of_its_own(tmp_path: Path) -> None:
    uid, home = os.geteuid(), str(tmp_path)
    session = {"XDG_RUNTIME_DIR": str(tmp_path)}
    assert paths.runtime_dir(session, uid, home) == str(tmp_path / "fleet-supervisor")
    for environ in (session, {"XDG_RUNTIME_DIR": str(tmp_path / "missing")}, {"XDG_RUNTIME_DIR": "/proc"}, {}):
        chosen = paths.runtime_dir(environ, uid, home)
        assert paths.control_socket(chosen) in paths.control_sockets(environ, uid, home)
    assert paths.runtime_dir({"XDG_RUNTIME_DIR": "/proc/self"}, uid + 1, home).startswith(str(tmp_path))


def test_a_socket_path_beyond_the_kernels_limit_says_the_limit_and_the_way_out() -> None:
    assert paths.fitting("/" + "x" * 106) == "/" + "x" * 106
    with pytest.raises(paths.PathTooLongError, match=r"108 bytes.*takes 107.*XDG_RUNTIME_DIR"):
        paths.fitting("/" + "x" * 107)
    with pytest.raises(paths.PathTooLongError):
        paths.fitting("/" + "é" * 54)


def test_a_door_fits_below_the_usual_runtime_directory_whatever_the_project_is_called() -> None:
    project = paths.project_id("x" * 300, "/p/agents.toml")
    paths.fitting(paths.door("/run/user/4294967294/fleet-supervisor", project, "a99999"))


def test_a_project_on_disk_is_its_name_and_its_files_real_path(tmp_path: Path) -> None:
    file = tmp_path / "agents.toml"
    file.touch()
    link = tmp_path / "link.toml"
    link.symlink_to(file)
    ident = paths.project_id("off grind/..", str(file))
    assert ident.startswith("off_grind_..-")
    assert len(ident.rpartition("-")[2]) == 8
    assert paths.project_id("off grind/..", str(link)) == ident
    assert paths.project_id("..", str(file)).startswith("project-")


def test_state_and_configuration_follow_xdg_and_ignore_a_relative_value() -> None:
    assert paths.state_dir({}, HOME) == "/home/ada/.local/state/fleet-supervisor"
    assert paths.state_dir({"HOME": "/h"}, HOME) == "/h/.local/state/fleet-supervisor"
    assert paths.state_dir({"XDG_STATE_HOME": "/s"}, HOME) == "/s/fleet-supervisor"
    assert paths.state_dir({"XDG_STATE_HOME": "s"}, HOME) == "/home/ada/.local/state/fleet-supervisor"
    assert paths.personal_file({"XDG_CONFIG_HOME": "/c"}, HOME) == "/c/fleet-supervisor/agents.toml"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / "deep" / "down").mkdir(parents=True)
    (tmp_path / "project" / "agents.toml").touch()
    return tmp_path / "project"


def standing(at: Path, home: Path) -> Place:
    return Place({"HOME": str(home)}, os.geteuid(), str(at), str(home))


def test_the_project_is_the_nearest_file_upwards_and_a_named_one_comes_first(project: Path, tmp_path: Path) -> None:
    deep = project / "deep" / "down"
    assert standing(deep, tmp_path).file(None) == str(project / "agents.toml")
    (deep / "agents.toml").touch()
    assert standing(deep, tmp_path).file(None) == str(deep / "agents.toml")
    assert standing(deep, tmp_path).file("../..") == str(project / "agents.toml")


def test_whoever_stands_in_no_project_has_the_personal_one(tmp_path: Path) -> None:
    personal = tmp_path / ".config" / "fleet-supervisor" / "agents.toml"
    personal.parent.mkdir(parents=True)
    personal.touch()
    assert standing(tmp_path, tmp_path).file(None) == str(personal)


def test_without_any_file_the_way_to_one_is_said(tmp_path: Path) -> None:
    for named in (None, "missing.toml"):
        with pytest.raises(Failure) as caught:
            standing(tmp_path, tmp_path).file(named)
        assert caught.value.code == BAD_CONFIG
        assert "supervisorctl init" in " ".join(caught.value.remedy)


def test_a_project_is_named_by_name_or_by_path(project: Path, tmp_path: Path) -> None:
    here = standing(project, tmp_path)
    assert here.project("offgrind-0a1b2c3d") == "offgrind-0a1b2c3d"
    assert here.project(".") == str(project / "agents.toml")
    assert here.project("deep/agents.toml") == str(project / "deep" / "agents.toml")


def test_a_directory_that_was_deleted_is_no_reason_to_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = tmp_path / "lost"
    lost.mkdir()
    monkeypatch.chdir(lost)
    lost.rmdir()
    assert Place.here({}).cwd == ""
