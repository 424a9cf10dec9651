"""The client on the wire: what it sends, and how each kind of answer ends."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from supervisor.ctl import call
from supervisor.ctl.outcome import NO_DAEMON, TIMED_OUT, Failure
from tests.ctl import fleets
from tests.ctl.server import MAIN, HangUpError, WireError, ctl, serve, socket_path

LEAD = {"id": "a1", "name": "lead"}


def fails(number: int, words: str, **data: object) -> Any:
    def answer(_method: str, _params: dict[str, Any]) -> Any:
        raise WireError(number, words, **data)

    return answer


BUDGET: dict[str, Any] = {
    "code": "budget",
    "field": "tokens",
    "asked": 500_000,
    "held": 2_000_000,
    "used": 1_520_000,
    "reserved": 300_000,
    "ask": "lead",
    "message": "tests has 180k tokens left, 500k were asked for",
}


def test_a_refusal_says_the_numbers_and_whom_to_ask_for_what_and_is_json_on_demand() -> None:
    with serve(fails(-32000, BUDGET["message"], **BUDGET)):
        done = ctl("fork", "go", "--kind", "pi", "--tokens", "500k")
        assert done.returncode == 1
        assert done.stdout == ""
        assert "refused: tests has 180k tokens left, 500k were asked for" in done.stderr
        assert "tokens: asked 500k, held 2M, used 1.5M, reserved 300k" in done.stderr
        assert "ask lead: supervisorctl grant AGENT --tokens 2.4M" in done.stderr
        done = ctl("fork", "go", "--kind", "pi", "--json")
        assert done.returncode == 1
        assert json.loads(done.stdout) == {"refused": BUDGET}
        assert "refused" in done.stderr


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"code": "disk", "field": "disk", "asked": 33554432, "held": 5, "ask": "operator"}, "make room there"),
        ({"code": "rights", "field": "tools", "asked": "bash, web", "ask": "a1"}, "--tool bash --tool web"),
        (
            {"code": "rights", "field": "fork", "asked": "yes", "ask": "a1", "holder": "tests"},
            "grant tests --may-fork yes",
        ),
        ({"code": "bound", "field": "children", "asked": 1, "held": 4, "used": 4, "ask": "operator"}, "--children 5"),
        ({"code": "budget", "field": "cost", "asked": 1.5, "held": 2.0, "used": 0.755, "ask": "a1"}, "--cost 2.26"),
        ({"code": "bound", "field": "wall", "asked": 5400.0, "held": 60.0, "ask": "a1"}, "--wall 1h30m"),
        ({"code": "authority", "field": "verb", "asked": "up", "ask": "operator"}, "a person can allow it\n"),
    ],
)
def test_a_remedy_is_a_command_that_would_have_let_it_pass(data: dict[str, object], words: str) -> None:
    with serve(fails(-32000, "no", **data)):
        assert words in ctl("fork", "go", "--kind", "pi").stderr


@pytest.mark.parametrize(
    ("number", "data", "code"),
    [
        (-32000, {"code": "state"}, 1),
        (-32001, {}, 4),
        (-32602, {"parameter": "x"}, 2),
        (-32601, {}, 1),
        (-32603, {}, 1),
        (-32000, {"code": "config", "problems": []}, 78),
    ],
)
def test_each_kind_of_error_has_its_exit_code(number: int, data: dict[str, object], code: int) -> None:
    with serve(fails(number, "the reason \x1b[31m", **data)):
        done = ctl("whoami", "--json")
        assert done.returncode == code
        assert "the reason \\x1b[31m" in done.stderr
        assert "\x1b" not in done.stdout + done.stderr
        json.loads(done.stdout)


def test_without_a_daemon_the_exit_code_is_69_and_the_way_to_one_is_said() -> None:
    done = ctl("tree")
    assert (done.returncode, done.stdout) == (69, "")
    assert "supervisorctl up" in done.stderr


def test_a_stale_socket_is_told_from_none() -> None:
    path = socket_path()
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    done = ctl("tree")
    assert done.returncode == 69
    assert f"{path}: stale" in done.stderr


def test_a_call_while_a_killed_daemon_is_started_again_waits_for_it(tmp_path: Path) -> None:
    path, fresh = str(tmp_path / "control.sock"), str(tmp_path / "fresh")
    with socket.socket(socket.AF_UNIX) as killed, socket.socket(socket.AF_UNIX) as daemon:
        killed.bind(path)  # nobody listens: what a killed daemon leaves behind
        found: list[int] = []

        def client() -> None:
            with call.connect([path], os.getuid()) as connected:
                found.append(connected.pid)

        waiting = threading.Thread(target=client)
        waiting.start()
        daemon.bind(fresh)
        daemon.listen()
        os.replace(fresh, path)
        waiting.join()
    assert found == [os.getpid()]


def test_a_daemon_of_another_uid_is_not_asked() -> None:
    with serve({"tree": fleets.small()}) as daemon:
        with pytest.raises(Failure, match="no daemon") as caught:
            call.connect([str(daemon.path)], os.geteuid() + 1)
        assert caught.value.code == NO_DAEMON
        assert "the uid that answers is" in " ".join(caught.value.remedy)
        assert daemon.requests == []


def test_the_process_that_answers_is_named_by_the_kernel() -> None:
    with serve({"tree": 1}) as daemon, call.connect([str(daemon.path)], os.geteuid()) as client:
        assert client.pid == os.getpid()
        assert client.call("tree", {}) == 1


def test_a_daemon_that_is_silent_is_called_that_and_not_absent() -> None:
    silence = threading.Event()

    def answer(_method: str, _params: dict[str, Any]) -> Any:
        silence.wait()

    with serve(answer) as daemon:
        with call.connect([str(daemon.path)], os.geteuid()) as client:
            with pytest.raises(Failure, match="gave no answer within") as caught:
                client.call("tree", {}, within=0.05)
            assert caught.value.code == TIMED_OUT
            assert str(os.getpid()) in caught.value.message
        silence.set()


def test_a_daemon_that_takes_no_connection_is_not_called_absent(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        stuck = stack.enter_context(socket.socket(socket.AF_UNIX))
        stuck.bind(str(tmp_path / "sock"))
        stuck.listen(0)
        stack.enter_context(call.connect([str(tmp_path / "sock")], os.geteuid()))  # now the queue is full
        with pytest.raises(Failure, match="took no connection") as caught:
            call.connect([str(tmp_path / "sock")], os.geteuid(), within=0.05)
        assert caught.value.code == TIMED_OUT


def test_a_daemon_that_dies_before_its_answer_is_no_success() -> None:
    def answer(_method: str, _params: dict[str, Any]) -> Any:
        raise HangUpError

    with serve(answer):
        done = ctl("tree")
        assert done.returncode == 69
        assert "closed the connection before it answered" in done.stderr


def test_a_line_of_many_megabytes_arrives_whole() -> None:
    text = "x" * 5_000_000
    with serve({"instruct": {"agent": LEAD, "input": "m1", "seq": 1, "status": "done", "text": text, "error": None}}):
        assert ctl("instruct", "lead", "go", "--wait").stdout == text + "\n"


def test_what_is_sent_names_where_one_stands_and_the_project_that_was_named(tmp_path: Path) -> None:
    with serve({"tree": fleets.small()}) as daemon:
        ctl("tree", cwd=tmp_path)
        ctl("tree", "--project", "sub/agents.toml", cwd=tmp_path)
        ctl("--project", "offgrind", "tree", "lead", cwd=tmp_path)
        assert [request["params"] for request in daemon.requests] == [
            {"cwd": str(tmp_path)},
            {"cwd": str(tmp_path), "project": str(tmp_path / "sub/agents.toml")},
            {"cwd": str(tmp_path), "project": "offgrind", "agent": "lead"},
        ]


def test_json_is_the_answer_itself_and_moves_no_terminal() -> None:
    fleet = fleets.small()
    fleet["agents"][0]["last"] = "\x1b]0;title\x07 日本 \u202e"
    with serve({"tree": fleet}):
        done = ctl("tree", "--json")
        assert json.loads(done.stdout) == fleet
        assert done.stdout.isascii()
        assert "\x1b" not in done.stdout


def test_a_reader_that_had_enough_is_no_error() -> None:
    with serve({"logs": {"lines": ["x" * 1000] * 2000}}):
        done = ctl("logs", "lead")
        assert done.returncode == 0
        read, write = os.pipe()
        process = subprocess.Popen([*MAIN, "logs", "lead"], stdout=write, stderr=subprocess.PIPE)
        os.close(write)
        os.read(read, 10)
        os.close(read)
        assert process.communicate(timeout=30)[1] == b""
        assert process.returncode == 141


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_answer_that_cannot_be_written_is_said_and_no_success(options: list[str]) -> None:
    with serve({"tree": fleets.small()}), open("/dev/full", "w") as full:
        done = subprocess.run([*MAIN, "tree", *options], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "supervisorctl: the answer cannot be written: No space left on device\n"


def test_words_that_cannot_be_written_change_no_exit_code() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*MAIN, "nonesuch"], stdout=subprocess.PIPE, stderr=full, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_is_no_reason_to_fail(closed: str) -> None:
    command = ["sh", "-c", f'"$@" {closed}', "sh", *MAIN, "tree"]
    with serve({"tree": fleets.small()}):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == (">&-" not in closed.replace("2>&-", ""))
