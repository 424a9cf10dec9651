"""A command line becomes what the wire takes, and what is wrong with it is said with the way out."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from supervisor.ctl import options
from supervisor.ctl.outcome import USAGE, Failure
from supervisor.ctl.own import KNOWN, grouped
from supervisor.doors.verbs import METHODS, VERBS, Verb
from tests.ctl.server import ctl


def parsed(line: str) -> options.Asked:
    return options.parse(shlex.split(line))


def refused(line: str) -> Failure:
    with pytest.raises(Failure) as caught:
        parsed(line)
    assert caught.value.code == USAGE
    return caught.value


@pytest.mark.parametrize("verb", KNOWN.values(), ids=lambda verb: verb.name)
def test_every_verb_has_help_with_its_example_and_hides_what_the_client_fills_in(verb: Verb) -> None:
    with pytest.raises(options.Told) as told:
        options.parse([verb.name, "--help"])
    assert verb.example in told.value.text
    assert verb.summary in told.value.text
    for param in verb.params:
        if param.hidden:
            assert param.option not in told.value.text
        else:
            assert (param.name.upper() if param.positional else param.option) in told.value.text
    assert ("--timeout" in told.value.text) == verb.waits


@pytest.mark.parametrize("verb", KNOWN.values(), ids=lambda verb: verb.name)
def test_the_example_of_every_verb_is_a_command_line_of_it(verb: Verb) -> None:
    words = shlex.split(verb.example.split(" > ")[0])
    assert words[0] == "supervisorctl"
    asked = options.parse(words[1:])
    assert asked.verb is verb
    known = {param.name for param in verb.params} | {"timeout"}
    assert asked.params.keys() <= known


def test_the_overview_names_every_verb_once() -> None:
    names = [verb.name for _, verbs in grouped() for verb in verbs]
    assert sorted(names) == sorted(KNOWN)
    assert all(f"  {name} " in options.overview() for name in names)
    assert METHODS.keys() == {verb.name for verb in VERBS}


@pytest.mark.parametrize(
    ("line", "params"),
    [
        (
            """fork "Write the tests" --kind pi --parent lead --tokens 300k --cost 2.50 --wall 1h30m --tool read
            --tool bash --allow-model small-* --may-fork no --max-tasks 4 --replace --wait --timeout 10s""",
            {
                "task": "Write the tests",
                "kind": "pi",
                "parent": "lead",
                "tokens": 300_000,
                "cost": 2_500_000_000,
                "wall": 5400.0,
                "tool": ["read", "bash"],
                "allow_model": ["small-*"],
                "may_fork": "no",
                "max_tasks": 4,
                "replace": True,
                "wait": True,
                "timeout": 10.0,
            },
        ),
        ("fork --kind pi 'go on' --name x", {"kind": "pi", "task": "go on", "name": "x"}),
        ("fork --role r --tokens 0", {"role": "r", "tokens": 0}),
        ("grant tests --tokens 500k", {"agent": "tests", "tokens": 500_000}),
        ("instruct lead --wait 'Go on'", {"agent": "lead", "text": "Go on", "wait": True}),
        ("instruct lead -", {"agent": "lead", "text": "-"}),
        ("instruct lead '- a list'", {"agent": "lead", "text": "- a list"}),
        ("logs a3 -n 5 --stderr", {"agent": "a3", "lines": 5, "stderr": True}),
        ("logs a3 --lines 5", {"agent": "a3", "lines": 5}),
        ("rename SubAgent-01 tests", {"agent": "SubAgent-01", "name": "tests"}),
        ("tree", {}),
        ("events --since 12 --follow", {"since": 12, "follow": True}),
    ],
)
def test_a_line_becomes_the_parameters_of_the_wire(line: str, params: dict[str, Any]) -> None:
    assert parsed(line).params == params


def test_what_is_the_clients_own_stays_off_the_wire() -> None:
    asked = parsed("--project p tree --watch --all --json")
    assert (asked.params, asked.own) == ({}, {"watch": True, "all": True})
    assert (asked.json, asked.project) == (True, "p")


def test_paths_are_absolute_since_the_daemon_stands_elsewhere(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parsed("fork --kind pi --directory sub").params["directory"] == str(tmp_path / "sub")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tre", "did you mean tree?"),
        ("fork --kind pi --toknes 5", "did you mean --tokens?"),
        ("tree --whatever", "see: supervisorctl tree --help"),
        ("tree one two", "unknown argument 'two'"),
        ("grant a3 --tokens many", "no count"),
        ("grant a3 --tokens -5", "--tokens"),
        ("grant a3 --wall 10", "number with its unit"),
        ("grant a3 --cost 1,50", "US dollars"),
        ("stop", "agent"),
        ("stop a3 --timeout soon", "no duration"),
        ("--json", "name a verb"),
        ("tree --json=1", "json"),
        ("fork --ki pi", "--kind"),
    ],
)
def test_a_wrong_line_says_what_is_wrong_and_what_was_meant(line: str, words: str) -> None:
    failure = refused(line)
    assert words in " ".join([failure.message, *failure.remedy]).replace("AGENT", "agent")


def test_what_is_about_the_machine_or_the_daemon_offers_no_project() -> None:
    for verb in ("shutdown", "doctor", "install-unit"):
        with pytest.raises(options.Told) as told:
            options.parse([verb, "--help"])
        assert "--project" not in told.value.text
        assert "unknown option '--project'" in refused(f"{verb} --project p").message
    with pytest.raises(options.Told) as told:
        options.parse(["down", "--help"])
    assert "--project" in told.value.text


def test_no_verb_runs_anything() -> None:
    for word in ("run", "shell", "exec", "eval"):
        refused(word)


def test_help_goes_to_stdout_and_errors_go_to_stderr() -> None:
    done = ctl("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "exit codes: 0 done" in done.stdout
    done = ctl("tre", "--json")
    assert done.returncode == 2
    assert "did you mean tree?" in done.stderr
    assert '"exit": 2' in done.stdout


def test_a_word_that_is_not_utf8_is_refused_here() -> None:
    assert "not UTF-8" in refused("instruct a3 \udcff").message
