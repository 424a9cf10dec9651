"""A line too long to be taken: its first bytes say whether anyone needed it, and nothing else of it is kept."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import trio

from supervisor.kinds.kind import LINE_LIMIT, Conversation
from supervisor.kinds.lines import LINES
from supervisor.kinds.pi import PI
from tests.fleet import running
from tests.house import PATIENCE
from tests.kinds.drive import seat

SIZE = LINE_LIMIT + 1
MIB = 1024 * 1024
#: Speaks as pi does. Of a prompt's words, the first is the type of an over-long line, the second its size.
PROGRAM = """
import json, sys, time

def say(**more):
    print(json.dumps(more, separators=(",", ":")), flush=True)

def message(text):
    usage = {"input": 7, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 12}
    content = [{"type": "text", "text": text}]
    more = {"timestamp": time.time_ns(), "content": content, "usage": usage, "stopReason": "stop"}
    return {"role": "assistant", **more}

for line in sys.stdin:
    asked = json.loads(line)
    answer = {"id": asked.get("id"), "type": "response", "command": asked["type"], "success": True}
    if asked["type"] == "get_state":
        say(**answer, data={"sessionId": "s", "model": {"provider": "p", "id": "m"}})
    elif asked["type"] == "prompt":
        say(**answer, data={"disposition": "started"})
        say(type="agent_start")
        say(type="message_end", message=message(asked["id"]))
        kind, size = asked["message"].split()[-2:]
        say(type=kind, message=message("long " * (int(size) // 5)))
        say(type="agent_settled")
"""


def heads() -> list[tuple[Conversation, bytes, bool]]:
    pi, lines = PI.converse(seat()), LINES.converse(seat())
    return [
        (pi, b'{"type":"agent_end","messages":[', False),
        (pi, b'{"type":"turn_end","message":{', False),
        (pi, b'{"type":"tool_execution_start","toolName":"write","args":{', False),
        (pi, b'{"type":"message_end","message":{"role":"toolResult","content":[', False),
        (pi, b'{"type":"message_end","message":{"role":"assistant","content":[', True),
        (pi, b'{"type":"response","command":"get_state","data":{', True),
        (pi, b"Segmentation fault", True),
        (lines, b'{"fleet":"status","text":"', True),
        (lines, b"plain", True),
    ]


@pytest.mark.parametrize(("talk", "head", "matters"), heads())
def test_a_line_that_could_have_mattered_is_garbled_and_no_other(
    talk: Conversation, head: bytes, matters: bool
) -> None:
    facts = talk.overlong(head, SIZE)
    assert [(fact.lines, fact.bytes) for fact in facts] == ([(1, SIZE)] if matters else [])  # type: ignore[union-attr]  # all are Garbled
    assert not talk.outgoing()


async def test_the_end_of_a_long_run_is_no_fault_and_costs_no_memory(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = json.dumps([sys.executable, str(tmp_path / "program.py")])
    toml = f'[kinds.long]\nprotocol = "pi"\ncommand = {command}\n[agents.lead]\nkind = "long"\n'
    with trio.fail_after(PATIENCE):
        async with running(tmp_path) as fleet:
            await fleet.up(toml)
            await fleet.ctl("instruct", "lead", "turn_end 1000", "--wait")
            before = largest(fleet.process.pid)
            assert await fleet.ctl("instruct", "lead", f"agent_end {80 * MIB}", "--wait") == "fleet-4\n"
            assert largest(fleet.process.pid) - before < 16 * MIB
            assert not (await fleet.call("status"))["faults"]
            await fleet.ctl("instruct", "lead", f"message_end {SIZE}", "--wait")
            lead = (await fleet.tree())["lead"]
            assert (lead["garbled"], lead["own"]["calls"]) == (1, 3)
            (fault,) = (await fleet.call("status"))["faults"]
            assert "unreadable" in fault["what"]


def largest(pid: int) -> int:
    """The most memory that a process ever had, in bytes."""
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(kilobytes) * 1024
