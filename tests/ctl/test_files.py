"""`init`, `save` and `verify`: what is there is kept, what is written is whole."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from supervisor.core.facts import Downed
from supervisor.runtime.journal.chain import Batch
from supervisor.runtime.journal.journal import Journal
from tests.ctl.server import ctl, serve


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    """A PATH on which `pi` is the only agent program."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pi").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "pi").chmod(0o755)
    return {"PATH": str(tmp_path / "bin")}


def test_init_writes_a_file_for_what_is_installed_and_says_how_to_run_it(
    tmp_path: Path, programs: dict[str, str]
) -> None:
    done = ctl("init", cwd=tmp_path, env=programs)
    assert done.returncode == 0, done.stderr
    assert 'kind = "pi"' in (tmp_path / "agents.toml").read_text()
    assert done.stdout == f"wrote {tmp_path}/agents.toml for pi\nread it, then run it: supervisorctl up\n"


def test_init_never_overwrites(tmp_path: Path, programs: dict[str, str]) -> None:
    (tmp_path / "agents.toml").write_text("mine")
    done = ctl("init", cwd=tmp_path, env=programs)
    assert done.returncode == 1
    assert "exists and is kept" in done.stderr
    assert (tmp_path / "agents.toml").read_text() == "mine"


def test_init_writes_where_it_is_told(tmp_path: Path, programs: dict[str, str]) -> None:
    assert ctl("init", "--stdout", cwd=tmp_path, env=programs).stdout.startswith("#")
    assert not (tmp_path / "agents.toml").exists()
    assert ctl("init", "--personal", cwd=tmp_path, env=programs).returncode == 0
    personal = Path(os.environ["XDG_CONFIG_HOME"]) / "fleet-supervisor" / "agents.toml"
    assert personal.is_file()
    done = ctl("init", "new/fleet.toml", "--json", cwd=tmp_path, env=programs)
    assert json.loads(done.stdout)["file"] == str(tmp_path / "new" / "fleet.toml")
    assert (tmp_path / "new" / "fleet.toml").is_file()


def test_save_writes_the_live_fleet_once(tmp_path: Path) -> None:
    with serve({"save": {"content": "[project]\nname = 'été'\n"}}) as daemon:
        done = ctl("save", "fleet.toml", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "fleet.toml").read_text("utf-8") == "[project]\nname = 'été'\n"
        assert f"supervisorctl up {tmp_path}/fleet.toml" in done.stdout
        assert ctl("save", "fleet.toml", cwd=tmp_path).returncode == 1
        assert len(daemon.requests) == 1, "nothing is asked for what could not be written"
        done = ctl("save", "/proc/none/fleet.toml", cwd=tmp_path)
        assert done.returncode == 1
        assert "cannot be written" in done.stderr


def journal(name: str) -> Path:
    """A whole and closed journal of the project `name` in this user's state."""
    directory = Path(os.environ["XDG_STATE_HOME"]) / "fleet-supervisor" / name
    directory.mkdir(parents=True)
    kept, _, _ = Journal.open(directory, name)
    kept.write([kept.encode(Batch(1.0, "operator", ()))])
    kept.close(2.0)
    return directory / "journal.jsonl"


def test_verify_reads_every_journal_of_the_user_without_a_daemon() -> None:
    journal("one-0a1b2c3d"), journal("daemon")
    done = ctl("verify")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("whole and closed") == 2


def test_verify_by_replay_compares_what_the_facts_come_to_with_each_snapshot() -> None:
    directory = Path(os.environ["XDG_STATE_HOME"]) / "fleet-supervisor" / "one-0a1b2c3d"
    kept, past, _ = Journal.open(directory, directory.name)
    kept.write([kept.encode(Batch(1.0, "operator", (Downed(),)))])
    project = past.project()
    project.wanted = True  # it is not, by the facts
    kept.rotate(project, 1)
    kept.close(2.0)
    assert "whole and closed: 3 records in 2 segments" in ctl("verify").stdout
    done = ctl("verify", "--replay", "--json")
    assert done.returncode == 1
    (answer,) = json.loads(done.stdout)["journals"]
    assert (answer["state"], answer["file"], answer["line"]) == ("broken", "snapshot.000002.jsonl", None)


def test_verify_names_the_first_bad_record_and_fails() -> None:
    path = journal("one-0a1b2c3d")
    path.write_bytes(path.read_bytes().replace(b"operator", b"intruder"))
    done = ctl("verify", str(path), "--json")
    assert done.returncode == 1
    (answer,) = json.loads(done.stdout)["journals"]
    assert (answer["state"], answer["line"]) == ("broken", 2)
    assert "broken at record" in ctl("verify").stdout


def test_verify_says_where_it_found_nothing() -> None:
    done = ctl("verify")
    assert done.returncode == 1
    assert os.environ["XDG_STATE_HOME"] in done.stderr
    assert ctl("verify", "/nowhere").returncode == 1
