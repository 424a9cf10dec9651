"""Each verb's answer in words: receipts, plans, tables and texts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.ctl import fleets
from tests.ctl.server import ctl, serve

LEAD = {"id": "a1", "name": "lead"}
TESTS = {"id": "a3", "name": "tests"}


def said(method: str, result: object, *args: str, code: int = 0, **more: Any) -> str:
    with serve({method: result}):
        done = ctl(*args, **more)
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.mark.parametrize("verb", ["start", "stop", "restart", "disband"])
def test_a_receipt_names_who_it_was_by_name_and_id(verb: str) -> None:
    result = {"agent": TESTS, "ended": [{**TESTS, "killed": [], "unkillable": []}], "seq": 7}
    assert said(verb, result, verb, "a3").startswith("tests (a3) ")


def test_disband_is_a_command_of_its_own() -> None:
    import os
    import subprocess
    import sys

    with serve({"disband": {"agent": TESTS, "ended": [], "seq": 7}}) as daemon:
        program = "import sys; from supervisor.ctl.main import disband; sys.exit(disband())"
        done = subprocess.run(
            [sys.executable, "-c", program, "tests", "--timeout", "3s"],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ,
        )
        assert done.stdout == "tests (a3) disbanded\n"
        assert daemon.params("disband") == {"agent": "tests", "timeout": 3.0}


def test_what_had_to_be_killed_is_named() -> None:
    killed = {"pid": 4019, "argv0": "sleep\x1b[2J", "how": "KILL", "escaped": True}
    result = {"agent": TESTS, "ended": [{"id": "a7", "name": "kid", "killed": [killed], "unkillable": []}], "seq": 7}
    text = said("stop", result, "stop", "a3")
    assert "kid (a7): ended what it left: 4019 sleep\\x1b[2J (KILL, it had left containment)" in text


def test_what_the_kernel_does_not_end_is_no_success() -> None:
    result = {"agent": TESTS, "ended": [{**TESTS, "killed": [], "unkillable": [4444]}], "seq": 7}
    with serve({"stop": result}):
        done = ctl("stop", "a3")
        assert done.returncode == 1
        assert "the kernel does not end 4444" in done.stderr


def test_a_plan_shows_who_which_processes_and_what_is_unsettled() -> None:
    plan = {
        "agents": [
            {**TESTS, "state": "waiting", "depth": 2, "processes": [{"pid": 41, "argv0": "pi", "stray": False}],
             "unsettled": {"tasks": 1, "inputs": 2, "turn": False}},
            {"id": "a7", "name": "kid", "state": "working", "depth": 3,
             "processes": [{"pid": 42, "argv0": "sleep", "stray": True}],
             "unsettled": {"tasks": 0, "inputs": 0, "turn": True}},
        ],
        "grace": 10.0,
    }  # fmt: skip
    assert said("disband", {"plan": plan}, "disband", "a3", "--plan") == (
        "disband would end 2 agents and 2 processes, within 10s:\n"
        "  tests (a3)  waiting  unsettled: 1 task, 2 inputs\n"
        "    41 pi\n"
        "    kid (a7)  working  unsettled: a running turn\n"
        "      42 sleep  stray: outside its own ancestry\n"
        "nothing was ended\n"
    )
    assert "would end nothing" in said("down", {"plan": {"agents": [], "grace": 0.0}}, "down", "--plan")


def test_instruct_prints_the_final_text_alone_so_that_it_can_be_piped_on() -> None:
    result = {
        "agent": LEAD,
        "input": "m1",
        "seq": 1,
        "status": "done",
        "text": "All \x1b[1mgreen\n\tkept\n",
        "error": None,
    }
    assert said("instruct", result, "instruct", "lead", "go", "--wait") == "All \\x1b[1mgreen\n\tkept\n"
    assert said("instruct", result, "instruct", "lead", "go", "--wait", "--raw") == "All \x1b[1mgreen\n\tkept\n"
    short = {"agent": LEAD, "input": "m1", "seq": 1}
    assert said("instruct", short, "instruct", "lead", "go") == "lead (a1) has it as m1\n"


def test_a_task_that_failed_is_no_success() -> None:
    result = {"agent": LEAD, "input": "m1", "seq": 1, "status": "error", "text": "", "error": "the model hung up"}
    with serve({"instruct": result}):
        done = ctl("instruct", "lead", "go", "--wait")
        assert (done.returncode, done.stdout) == (1, "")
        assert "lead (a1): error: the model hung up" in done.stderr
        done = ctl("instruct", "lead", "go", "--wait", "--json")
        assert done.returncode == 1
        assert json.loads(done.stdout) == result


def test_a_text_is_read_from_stdin_for_a_dash_as_it_is() -> None:
    with serve({"instruct": {"agent": LEAD, "input": "m1", "seq": 1}}) as daemon:
        assert ctl("instruct", "lead", "-", stdin="line one\nlíne two\n").returncode == 0
        assert daemon.params("instruct")["text"] == "line one\nlíne two\n"


@pytest.mark.parametrize(
    "args",
    [
        ("instruct", "lead", " \n"),
        ("instruct", "lead", "-"),
        ("fork", "", "--kind", "pi"),
        ("grant", "a3"),
    ],
)
def test_what_would_ask_for_nothing_is_not_sent(args: tuple[str, ...]) -> None:
    with serve({}) as daemon:
        assert ctl(*args, stdin=" ").returncode == 2
        assert daemon.requests == []


def test_rename_says_both_names_and_the_record() -> None:
    result = {"agent": TESTS, "was": "SubAgent-01", "seq": 91}
    assert said("rename", result, "rename", "a3", "tests") == "SubAgent-01 is now tests (a3), record 91\n"


def test_a_grant_says_what_is_held_and_left() -> None:
    account = {"held": 500_000, "spent": 220_345, "reserved": 30_000, "free": 249_655, "over": 0}
    text = said("grant", {"agent": TESTS, "grant": {"tokens": account}, "seq": 3}, "grant", "a3", "--tokens", "500k")
    assert text == "tests (a3) now holds\n  tokens 500k: 220k spent, 30k reserved, 250k free\n"


def test_events_are_one_line_each_and_one_value_each_as_json() -> None:
    events = [
        {"seq": 7, "at": 1_700_000_000.5, "by": "a3", "fact": "Spoke", "agent": "a3", "last": "one\ntwo\x1b[2J"},
        {"seq": 8, "at": 1_700_000_001.5, "by": "operator", "fact": "Downed"},
    ]
    text = said("events", {"events": events}, "events")
    assert text.splitlines() == [
        "     7  22:13:20  Spoke          a3     last=one two\\x1b[2J  by a3",
        "     8  22:13:21  Downed         by operator",
    ]
    lines = said("events", {"events": events}, "events", "--json").splitlines()
    assert [json.loads(line) for line in lines] == events


def test_logs_are_shown_without_what_would_move_the_terminal_unless_asked_for_raw() -> None:
    lines = ["plain", "\x1b[2Jcleared\r", "\ttab"]
    assert said("logs", {"lines": lines}, "logs", "lead") == "plain\n\\x1b[2Jcleared\n\ttab\n"
    assert "\x1b[2J" in said("logs", {"lines": lines}, "logs", "lead", "--raw")
    first = said("logs", {"lines": lines}, "logs", "lead", "--json").splitlines()[1]
    assert json.loads(first) == {"line": lines[1]}


def test_what_follows_is_printed_as_it_comes_until_the_daemon_ends_it() -> None:
    def answer(_method: str, _params: dict[str, Any]) -> Any:
        def notes() -> Any:
            yield {"line": "one"}
            yield {"line": "two"}
            return {"lines": []}

        return notes()

    with serve(answer) as daemon:
        done = ctl("logs", "lead", "--follow")
        assert (done.returncode, done.stdout) == (0, "one\ntwo\n")
        assert daemon.params("logs") == {"agent": "lead", "follow": True}


STATUS = {
    "pid": 42, "warden": 41, "version": "0.1.0", "tier": "cgroup", "uptime": 7501.0, "lag_ms": 0.41, "socket": "/s",
    "uid": 1000,
    "projects": [
        {"name": "offgrind", "file": "/v/agents.toml", "state": "up", "agents": 6,
         "journal": {"seq": 120, "head": "ab"}, "changed": True},
    ],
    "faults": [{"at": 1_700_000_000.0, "where": "tests (a3)", "what": "12 unreadable lines\x07"}],
}  # fmt: skip


def test_status_shows_daemon_projects_and_faults() -> None:
    text = said("status", STATUS, "status")
    for words in (
        "pid 42, warden 41",
        "/s, of uid 1000",
        "cgroup",
        "2h5m",
        "offgrind",
        "has changed since: supervisorctl reload",
    ):
        assert words in text
    assert "14 Nov 22:13  tests (a3): 12 unreadable lines\\x07" in text
    assert "no faults" in said("status", {**STATUS, "faults": []}, "status")


def test_whoami_tells_an_agent_who_it_is_and_what_it_holds() -> None:
    answer = {
        "principal": "agent", **TESTS, "role": "tester", "kind": "pi", "description": "", "project": "offgrind",
        "parent": LEAD, "grant": {"tokens": {"held": 300_000, "spent": 0, "reserved": 0, "free": 300_000, "over": 0}},
        "bounds": {"children": 4, "depth": None, "wall": 3600.0},
        "rights": {"tools": ["read", "bash"], "models": None, "fork": False}, "task": None,
    }  # fmt: skip
    text = said("whoami", answer, "whoami")
    assert text.splitlines() == [
        "tests (a3)",
        "role        tester",
        "kind        pi",
        "project     offgrind",
        "started by  lead (a1)",
        "holds       tokens 300k",
        "            children 4",
        "            wall 1h",
        "rights      tools read, bash",
        "            fork no",
    ]
    assert "operator" in said("whoami", {"principal": "operator", "project": None}, "whoami")


def test_usage_has_own_and_branch_and_a_total() -> None:
    rows = [
        {**LEAD, "parent": None, "state": "working", "model": "small", "own": fleets.usage(1000, 500, 20, 1.25),
         "branch": fleets.usage(3000), "elapsed": 60.0},
    ]  # fmt: skip
    answer = {
        "project": "offgrind", "since": "2026-11-30", "total": fleets.usage(3000, cost=1.25), "agents": rows,
    }  # fmt: skip
    title, heads, lead, total = said("usage", answer, "usage", env={"COLUMNS": "160"}).splitlines()
    assert title == "offgrind, spent since 2026-11-30"
    assert " ".join(heads.split()) == "AGENT ID MODEL STATE TOTAL INPUT CACHED OUTPUT CALLS TURNS COST BRANCH TIME"
    assert " ".join(lead.split()) == "lead a1 small working 1.5k 1k 500 20 3 2 $1.25 3k 1m"
    assert " ".join(total.split()) == "total 3k 3k 0 0 3 2 $1.25"


def test_config_shows_where_each_value_comes_from() -> None:
    values = [{"key": "defaults.kind", "value": "pi", "origin": "/v/agents.toml:6"}]
    assert said("config", {"values": values}, "config").splitlines()[1].split() == [
        "defaults.kind",
        "pi",
        "/v/agents.toml:6",
    ]
