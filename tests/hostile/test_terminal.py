"""What agents call themselves, print and ask never reaches a person's terminal as anything but visible signs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import unicodedata
from pathlib import Path

import pytest
import trio

from tests.budgets.puppet import PUPPET, TURN_ENDED, TURN_STARTED, Puppet
from tests.e2e.stage import Stage, project
from tests.fleet import CTL, RefusedError
from tests.hostile.siege import faults

#: Clears the screen, sets clipboard and title; a C1 control, bidi overrides, what is not seen, ends of lines.
EVIL = "a\x1b[2J\x1b]52;c;ZXZpbA==\x07\x1b]0;root\x1b\\b\x9b31mc\u202egnp.exe\u2066\u200b\u2028\x85\r\n\x08\x7fd"
#: What our own client may write to a terminal: colours.
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
SHOWN = (
    ("tree",), ("tree", "--all"), ("tree", "child"), ("status",), ("events",), ("logs", "child"),
    ("logs", "child", "--stderr"), ("usage",), ("disband", "child", "--plan"), ("stop", "child", "--plan"), ("config",),
)  # fmt: skip


def seen(output: str) -> list[str]:
    """The signs of an output that no terminal should get."""
    plain = COLOURS.sub("", output.replace("\r\n", "\n"))
    return [ascii(sign) for sign in plain if unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp") and sign != "\n"]


def on_terminal(at: Path, *args: str) -> str:
    """What `supervisorctl` writes to a terminal."""
    ours, theirs = os.openpty()
    try:
        with subprocess.Popen([*CTL, *args], cwd=at, stdin=theirs, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            output = b""
            try:
                while got := os.read(ours, 65536):
                    output += got
            except OSError:
                pass  # a terminal that nobody holds any more reads as an error
            process.wait()
    finally:
        os.close(ours)
    return output.decode("utf-8", "surrogateescape")


@pytest.fixture
async def evil(stage: Stage) -> Puppet:
    """An agent that does its worst with words, below a lead."""
    await stage.fleet.up(project(PUPPET, '[agents.lead]\nkind = "puppet"\n'))
    await stage.standing("lead")
    born = await stage.fleet.call(
        "fork", parent="lead", kind="puppet", name="child", task=EVIL, role=EVIL, description=EVIL, wait=True
    )
    child = Puppet(stage, born["agent"]["id"], "child")
    await child.hears("brief")
    raw = EVIL.replace("\n", "")
    await child.run("sh", "-c", 'printf "%s\\n" "$1" >/proc/$PPID/fd/2', "sh", raw)
    await child.say(
        TURN_STARTED,
        {"fleet": "status", "text": raw},
        {"fleet": "ready", "session": EVIL, "model": EVIL},
        {"fleet": "blocked", "on": EVIL, "question": EVIL},
        {"fleet": "done", "status": EVIL, "verdict": EVIL, "summary": EVIL},
        TURN_ENDED | {"text": EVIL, "error": EVIL},
        {"fleet": "\x1b[2J\u202e"},
        raw,
    )
    await faults(stage.fleet, "child (")
    await stage.fleet.until(lambda tree: tree["child"]["summary"] != "")
    return child


async def test_words_of_agents_reach_no_terminal_raw(evil: Puppet) -> None:
    for args in (*SHOWN, ("instruct", EVIL, "Hi"), ("fork", "--kind", EVIL), ("nonsense" + EVIL,)):
        output = await trio.to_thread.run_sync(on_terminal, evil.stage.room, *args, abandon_on_cancel=True)
        assert output, args
        assert seen(output) == [], (args, output)


async def test_a_pipe_gets_neither_colours_nor_what_an_agent_sends(evil: Puppet) -> None:
    for args in (("tree",), ("events",), ("logs", "child"), ("instruct", EVIL, "Hi")):
        done = await trio.run_process(
            [*CTL, *args], cwd=evil.stage.room, capture_stdout=True, capture_stderr=True, check=False
        )
        output = (done.stdout + done.stderr).decode("utf-8", "surrogateescape")
        assert output, args
        assert "\x1b" not in output, args
        assert seen(output) == [], (args, output)


async def test_json_is_exact_and_plain_too(evil: Puppet) -> None:
    for args in SHOWN[:8]:
        done = await trio.run_process([*CTL, *args, "--json"], cwd=evil.stage.room, capture_stdout=True)
        text = done.stdout.decode("ascii")
        assert seen(text) == []
        assert [json.loads(line) for line in text.splitlines()] if args[0] in ("events", "logs") else json.loads(text)
    assert (await evil.shown())["summary"] == EVIL


CYRILLIC_O, CYRILLIC_A, CYRILLIC_E = "\u043e", "\u0430", "\u0435"
WIDE = {ord(letter): ord(letter) + 0xFEE0 for letter in "OPERATORlead"}


NAMES = (
    ("operator", "of the fleet's own"),
    (f"{CYRILLIC_O}per{CYRILLIC_A}tor", "of the fleet's own"),
    ("OPERATOR".translate(WIDE), "of the fleet's own"),
    ("Fleet", "of the fleet's own"),
    (f"l{CYRILLIC_E}ad", "is the name of"),
    ("LEAD", "is the name of"),
    ("lead".translate(WIDE), "is the name of"),
    ("a1", "looks like an id"),
    (f"{CYRILLIC_A}1", "looks like an id"),
    ("lead\u202e", "control"),
    ("le\u200bad", "control"),
    ("x\x1b[2J", "control"),
    ("lead\u3164", "not seen"),
    ("le\u00a0ad", "not seen"),
    ("lead\u034f", "not seen"),
    ("x" * 65, "at most 64"),
    ("a/b", "none of"),
)


async def test_no_agent_takes_a_name_that_passes_for_another(stage: Stage) -> None:
    await stage.fleet.up(project('[agents.lead]\nkind = "sleep"\n[agents.lead.agents.child]\nkind = "sleep"\n'))
    await stage.standing("child")
    for name, why in NAMES:
        for verb, params in (("rename", {"agent": "child"}), ("fork", {"kind": "sleep", "parent": "child"})):
            with pytest.raises(RefusedError) as refused:
                await stage.fleet.call(verb, name=name, **params)
            assert (refused.value.data["code"], why in refused.value.data["message"]) == ("name", True), ascii(name)
