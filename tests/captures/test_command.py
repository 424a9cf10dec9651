"""`supervisorctl usage --transcript`: its JSON, words and exit codes, and transcripts that go on from one another."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from supervisor.kinds.table import KINDS
from tests.captures.expected import HERE, NUMBERS, bill, data
from tests.ctl.server import MAIN

KEYS = {*NUMBERS, "calls", "turns", "cost", "session", "errors", "incomplete"}
OK = str(HERE / "pi" / "json_tool.jsonl")


def ctl(*args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*MAIN, "usage", *args], input=stdin, capture_output=True, check=False)


def told(*args: str, stdin: bytes = b"") -> dict[str, Any]:
    done = ctl(*args, "--json", stdin=stdin)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_transcript_is_booked_without_a_daemon() -> None:
    answer = told("--transcript", OK, "--kind", "pi")
    assert answer.keys() >= KEYS
    assert {key: answer[key] for key in NUMBERS} == bill("pi/json_tool")
    assert (answer["calls"], answer["turns"], answer["cost"]) == (2, 1, pytest.approx(0.002303))
    assert (answer["errors"], answer["interrupted"], answer["incomplete"]) == ([], False, False)


def test_a_dash_is_stdin() -> None:
    assert told("--transcript", "-", "--kind", "pi", stdin=data("pi/json_tool")) == told(
        "--transcript", OK, "--kind", "pi"
    )


def test_words_say_what_is_missing() -> None:
    done = ctl("--transcript", str(HERE / "pi" / "json_sigkill_midtool.jsonl"), "--kind", "pi")
    assert b"input        at least 1k\n" in done.stdout
    assert b"incomplete: " in done.stdout
    failed = ctl("--transcript", str(HERE / "pi" / "json_err500.jsonl"), "--kind", "pi").stdout
    assert b"scripted failure 500" in failed


def test_several_transcripts_are_one_conversation() -> None:
    two = str(HERE / "pi" / "json_ok.jsonl")
    answer = told("--transcript", OK, "--transcript", two, "--kind", "pi")
    assert answer["input"] == bill("pi/json_tool")["input"] + bill("pi/json_ok")["input"]
    assert answer["turns"] == 2


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--transcript", OK), 2, "--kind"),
        (("--transcript", OK, "--kind", "pie"), 2, "did you mean pi?"),
        (("--kind", "pi"), 2, "--transcript"),
        (("--transcript", "", "--kind", "pi"), 2, "empty"),
        (("--transcript", "-", "--after", "-", "--kind", "pi"), 2, "once"),
        (("--transcript", OK, "--kind", "pi", "--csv"), 2, "--json"),
        (("--transcript", OK, "--kind", "pi", "--by", "day"), 2, "daemon"),
        (("--transcript", "/nowhere/x.jsonl", "--kind", "pi"), 1, "No such file"),
        (("--transcript", "/", "--kind", "pi"), 1, "directory"),
    ],
)
def test_what_cannot_be_booked_is_said_with_a_remedy(args: tuple[str, ...], code: int, words: str) -> None:
    done = ctl(*args)
    assert (done.returncode, done.stdout) == (code, b"")
    assert words in done.stderr.decode()
    shape = json.loads(ctl(*args, "--json").stdout)
    assert shape["error"]["exit"] == code


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_file_of_anything_books_nothing(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "noise"
    file.write_bytes(b"\xff\x00{nonsense\n[1]\n" + b"x" * (2 << 20) + b"\n")
    answer = told("--transcript", str(file), "--kind", kind)
    assert [answer[key] for key in NUMBERS] == [0] * len(NUMBERS)
    assert answer["cost"] == 0


def test_a_program_that_refused_to_start_said_why_beside_it(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_bytes(b"")
    (tmp_path / "run.stderr").write_text("WARNING: no matter\n\x1b[91mNo API key found for x.\x1b[0m\n")
    answer = told("--transcript", str(tmp_path / "run.jsonl"), "--kind", "pi")
    assert answer["errors"] == [{"sort": "auth", "text": "No API key found for x."}]


CODEX = pytest.mark.skipif("codex" not in KINDS, reason="there is no kind codex yet")


@CODEX
def test_a_total_goes_on_from_the_earlier_transcript_beside_it() -> None:
    later, earlier = str(HERE / "codex" / "exec_resume_1.jsonl"), str(HERE / "codex" / "exec_tool.jsonl")
    answer = told("--transcript", later, "--kind", "codex")
    assert {key: answer[key] for key in NUMBERS} == bill("codex/exec_resume_1")
    assert (answer["after"], answer["cumulative"]) == ([earlier], False)


@CODEX
def test_a_total_without_its_beginning_is_called_one(tmp_path: Path) -> None:
    """It is never made smaller by a guess; whoever has the beginning can say so."""
    later, earlier = tmp_path / "later.jsonl", tmp_path / "earlier.txt"
    later.write_bytes(data("codex/exec_resume_1"))
    earlier.write_bytes(data("codex/exec_tool"))
    alone = told("--transcript", str(later), "--kind", "codex")
    assert (alone["input"], alone["output"], alone["after"], alone["cumulative"]) == (4150 - 650, 125, [], True)
    answer = told("--transcript", str(later), "--after", str(earlier), "--kind", "codex")
    assert {key: answer[key] for key in NUMBERS} == bill("codex/exec_resume_1")
    assert (answer["after"], answer["cumulative"]) == ([str(earlier)], False)


@CODEX
def test_a_piece_of_the_same_transcript_is_no_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "whole.jsonl").write_bytes(data("codex/exec_tool"))
    (tmp_path / "copy.jsonl").write_bytes(data("codex/exec_tool"))
    (tmp_path / "piece.jsonl").write_bytes(data("codex/exec_tool")[:-40])
    answer = told("--transcript", str(tmp_path / "whole.jsonl"), "--kind", "codex")
    assert {key: answer[key] for key in NUMBERS} == bill("codex/exec_tool")
    assert answer["after"] == []
