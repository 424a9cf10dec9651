"""Shell completion knows every verb and option, and the agents that there are now."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from supervisor.ctl import completion
from supervisor.ctl.own import KNOWN
from tests.ctl import fleets
from tests.ctl.server import MAIN, ctl, serve


def on_path(tmp_path: Path) -> dict[str, str]:
    """An environment whose `supervisorctl` is this one."""
    script = tmp_path / "supervisorctl"
    script.write_text("#!/bin/sh\nexec " + shlex.join(MAIN) + ' "$@"\n')
    script.chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


def in_bash(tmp_path: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    program = (
        completion.bash()
        + f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}\n"
        + '_supervisorctl; printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", "--norc"],
        input=program,
        env=on_path(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_offers_verbs_and_options(tmp_path: Path) -> None:
    assert in_bash(tmp_path, "supervisorctl", "dis") == ["disband"]
    assert set(in_bash(tmp_path, "supervisorctl", "")) >= set(KNOWN)
    assert in_bash(tmp_path, "supervisorctl", "fork", "--tok") == ["--tokens"]
    assert in_bash(tmp_path, "supervisorctl", "--project", "p", "stop", "--pl") == ["--plan"]
    assert in_bash(tmp_path, "supervisorctl", "fork", "--restart", "") == ["never", "on-failure", "always"]
    assert in_bash(tmp_path, "supervisorctl", "completion", "z") == ["zsh"]
    assert in_bash(tmp_path, "disband", "--pl") == ["--plan"]


def test_bash_offers_the_agents_there_are_and_none_where_no_daemon_runs(tmp_path: Path) -> None:
    assert in_bash(tmp_path, "supervisorctl", "stop", "") == []
    with serve({"tree": fleets.small()}):
        assert in_bash(tmp_path, "supervisorctl", "stop", "le") == ["lead"]
        assert in_bash(tmp_path, "disband", "te") == ["tests"]
        assert in_bash(tmp_path, "supervisorctl", "fork", "--parent", "doc") == ["docs"]


def test_a_name_that_a_shell_would_read_as_more_is_not_offered() -> None:
    names = ["$(touch x)", "two words", "-rf", "`id`", "fine"]
    fleet = {"project": "p", "agents": [fleets.agent(f"a{at}", name) for at, name in enumerate(names)]}
    with serve({"tree": fleet}):
        assert set(ctl("completion", "--names").stdout.split()) == {"fine", "a0", "a1", "a2", "a3", "a4"}


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_each_script_is_printed_and_knows_every_verb_and_no_hidden_option(shell: str) -> None:
    done = ctl("completion", shell)
    assert done.returncode == 0
    for name, verb in KNOWN.items():
        assert name in done.stdout
        for param in completion.options(verb):
            assert param.option.lstrip("-") in done.stdout
    assert "content" not in done.stdout.replace("contents", "").split("--")


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_each_script_is_one_of_its_shell(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(ctl("completion", shell).stdout)
    done = subprocess.run([program, "-n", str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_another_shell_is_refused_with_those_there_are() -> None:
    done = ctl("completion", "tcsh")
    assert done.returncode == 2
    assert "bash, zsh, fish" in done.stderr
