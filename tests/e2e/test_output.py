"""What agents print: all of it is kept under its cap, none of it holds anybody up."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path

import trio

from supervisor.runtime import transcript
from tests.e2e.stage import Stage, lines_of, project, three_only
from tests.house import PATIENCE, eventually

#: Who uses no tick of the clock between so many looks, some milliseconds apart, is not busy.
LOOKS = 40


def cpu(pid: int) -> int:
    """What a process has used so far, in clock ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


async def test_what_is_printed_while_ending_is_kept_to_the_last_byte(stage: Stage) -> None:
    text = (
        "def last(*_):\n"
        # As much as the kernel takes at once, so that all of it is still to be read when the program has ended.
        "    os.write(1, b''.join(b'late %d\\n' % number for number in range(12000)))\n"
        "    os.write(2, b''.join(b'error %d\\n' % number for number in range(4000)))\n"
        "    os.write(1, b'no newline'); os._exit(0)\n"
        "signal.signal(signal.SIGTERM, last)\nprint('on', flush=True)\ntime.sleep(1000)\n"
    )
    await stage.fleet.up(project(stage.python("late", text), '[agents.lead]\nkind = "late"'))
    lead = (await stage.standing("lead"))["lead"]
    await stage.said(lead["id"], "on")
    await stage.fleet.call("stop", agent="lead")
    late = b"".join(b"late %d\n" % number for number in range(12000))
    assert stage.printed(lead["id"]) == b"on\n" + late + b"no newline"
    errors = stage.transcript(lead["id"]).with_name("stderr.log").read_bytes()
    assert errors == b"".join(b"error %d\n" % number for number in range(4000))
    assert (await stage.fleet.tree())["lead"]["last"] == "no newline"


async def test_any_bytes_are_kept_as_they_came_and_shown_with_replacement(stage: Stage) -> None:
    parts = ["caf\\xc3", "\\xa9\\n", "\\x88\\xff broken\\n", "h\\0e\\0\\n\\0", "\\x1b[31m10%\\r20%\\r\\x1b[0m\\n"]
    writes = "".join(f"os.write(1, b'{part}'); time.sleep(0.01)\n" for part in parts)
    await stage.fleet.up(project(stage.python("odd", writes + "time.sleep(1000)\n"), '[agents.lead]\nkind = "odd"'))
    lead = (await stage.standing("lead"))["lead"]
    raw = "".join(parts).encode().decode("unicode_escape").encode("latin-1")
    await eventually(lambda: stage.printed(lead["id"]) == raw, PATIENCE)
    shown = await stage.fleet.call("logs", agent="lead")
    assert shown["lines"][:2] == ["café", "\ufffd\ufffd broken"]
    assert shown["lines"][-1].removeprefix("\0") == "\x1b[31m10%\r20%\r\x1b[0m"
    # What reaches a terminal is tame.
    assert "\x1b" not in await stage.fleet.ctl("logs", "lead")
    assert (await stage.fleet.tree())["lead"]["state"] == "standing"


async def test_a_follower_that_does_not_read_slows_nobody_and_a_transcript_stays_under_its_cap(stage: Stage) -> None:
    megabytes = 60
    text = (
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\nprint('on', flush=True)\n"
        "signal.sigwait([signal.SIGUSR1])\n"
        f"block = b'x' * 99 + b'\\n'\nfor _ in range({megabytes}): os.write(1, block * 10_000) and None\n"
        "os.write(1, b'\\nall out\\n')\ntime.sleep(1000)\n"
    ).replace("os.write(1, block * 10_000) and None", "sys.stdout.buffer.write(block * 10_000); sys.stdout.flush()")
    await stage.fleet.up(project(stage.python("floods", text), '[agents.lead]\nkind = "floods"'))
    lead = (await stage.standing("lead"))["lead"]
    await stage.said(lead["id"], "on")
    stream = await trio.open_unix_socket(stage.fleet.socket)
    async with stream:
        params = {"cwd": str(stage.fleet.at), "agent": "lead", "follow": True}
        request = {"jsonrpc": "2.0", "id": 1, "method": "logs", "params": params}
        await stream.send_all(json.dumps(request).encode() + b"\n")
        await stream.receive_some(1)
        os.kill(lead["pid"], signal.SIGUSR1)
        await stage.said(lead["id"], "all out")
    kept = [stage.transcript(lead["id"]), stage.transcript(lead["id"]).with_name("transcript.jsonl.1")]
    assert sum(path.stat().st_size for path in kept) <= transcript.CAP < megabytes * 1_000_000
    assert (await stage.fleet.call("logs", agent="lead", lines=1))["lines"] == ["all out"]


async def test_an_agent_that_closes_its_stdout_and_lives_costs_nothing(stage: Stage) -> None:
    text = "os.close(1); os.close(2); os.close(0)\nopen(sys.argv[1], 'w').close()\ntime.sleep(1000)\n"
    closed = stage.room / "closed"
    await stage.fleet.up(project(stage.python("mute", text, str(closed)), '[agents.lead]\nkind = "mute"'))
    await stage.standing("lead")
    await eventually(closed.exists, PATIENCE)
    for _ in range(3):  # clients that hang up leave no number behind that is read again and again
        async with await trio.open_unix_socket(stage.fleet.socket) as stream:
            await stream.send_all(b'{"half a request')
    await stage.fleet.call("instruct", agent="lead", text="nobody reads this")
    looks: list[int] = []

    def idle() -> bool:
        looks.append(cpu(stage.daemon))
        return len(looks) > LOOKS and looks[-1] == looks[-LOOKS]

    await eventually(idle, PATIENCE)
    await stage.fleet.call("stop", agent="lead")


async def test_a_transcript_that_cannot_be_written_is_shown_with_file_and_uid_and_stops_nobody(stage: Stage) -> None:
    await stage.fleet.up(project("[agents.lead]"))
    lead = (await stage.standing("lead"))["lead"]
    await stage.fleet.call("stop", agent="lead")
    path = stage.transcript(lead["id"])
    path.unlink()
    path.mkdir()
    text = "echo on; echo lost; sleep 1000\n"
    toml = project(stage.sh("speaks", text), '[agents.lead]\nkind = "speaks"\n[agents.other]\nkind = "speaks"')
    await stage.fleet.up(toml)
    await stage.fleet.call("start", agent="lead")
    other = (await stage.standing("lead", "other"))["other"]
    await stage.said(other["id"], "lost")
    await stage.fleet.until(lambda tree: tree["lead"]["last"] == "lost")  # it is heard all the same
    faults = [fault for fault in (await stage.fleet.call("status"))["faults"] if fault["where"].startswith("lead")]
    assert any(str(path) in fault["what"] and f"uid {os.getuid()}" in fault["what"] for fault in faults)
    await stage.fleet.call("stop", agent="lead")
    path.rmdir()


async def test_agents_hold_three_descriptors_and_the_persons_own_limit(stage: Stage) -> None:
    children = "\n".join(f"[agents.lead.agents.n{number}]" for number in range(40))
    await stage.fleet.up(project("[agents.lead]", children))
    tree = await stage.standing("lead", *(f"n{number}" for number in range(40)))
    for agent in tree.values():
        # The program is there a moment after its process.
        await eventually(partial(three_only, agent["pid"]), PATIENCE)
    limits = lines_of(f"/proc/{tree['n39']['pid']}/limits")
    own = lines_of("/proc/self/limits")
    assert [line for line in limits if "open files" in line] == [line for line in own if "open files" in line]
