"""Whatever an agent prints, and however fast, others are answered, memory stays bounded, and the fault can be seen."""

from __future__ import annotations

import pytest

from tests.e2e.stage import Stage, project
from tests.fleet import RefusedError
from tests.hostile.siege import faults, forget_peak, memory, siege

#: Prints this for ever.
FOREVER = "while True:\n    os.write(1, data)\n"
TURNS = b'{"fleet":"turn","state":"started"}\n{"fleet":"turn","state":"ended"}\n'
LISTS = 'data = b\'{"fleet":"status","x":[\' + b"{}," * 300000 + b"1]}\\n"\n'


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        pytest.param('data = b"a\\n" * 30000\n', "", id="2-byte lines"),
        pytest.param('data = b"a" * 65536\n', "unreadable", id="no line end"),
        pytest.param("data = os.urandom(65536)\n", "", id="noise"),
        pytest.param('os.dup2(2, 1)\ndata = b"a\\n" * 30000\n', "", id="stderr"),
        pytest.param("data = b'{\"fleet\":1}\\n' * 5000\n", "unreadable", id="garbled lines"),
        pytest.param('data = b\'{"fleet":"usage","scope":"call","input":1}\\n\' * 1000\n', "", id="usage"),
        pytest.param(f"data = {TURNS!r} * 1000\n", "", id="turns"),
        pytest.param(LISTS, "unreadable", id="a line full of values"),
        pytest.param('data = b\'{"fleet":\' * 100000 + b"\\n"\n', "unreadable", id="deep nesting"),
        pytest.param(
            'data = b\'{"fleet":"done","summary":"\' + b"x" * 65000 + b\'"}\\n\'\n', "read slowly", id="long texts"
        ),
    ],
)
async def test_a_flood_holds_up_no_one_and_is_seen(stage: Stage, data: str, seen: str) -> None:
    await stage.fleet.up(project(stage.python("flood", data + FOREVER), '[agents.loud]\nkind = "flood"\n'))
    await stage.standing("loud")
    async with siege(stage.fleet):
        pass
    if seen:
        await faults(stage.fleet, seen)
    journal = (stage.project / "journal.jsonl").stat().st_size
    assert journal < 8 * 1024 * 1024
    tree = await stage.fleet.tree()
    assert tree["loud"]["state"] in ("standing", "working")


async def test_many_that_flood_at_once_hold_up_no_more_than_one(stage: Stage) -> None:
    flood = stage.python("flood", 'data = b\'{"fleet":1}\\n\' * 3000 + b"a\\n" * 20000\n' + FOREVER)
    agents = [f'[agents.loud-{number}]\nkind = "flood"\n' for number in range(12)]
    await stage.fleet.up(project(flood, *agents))
    await stage.standing(*(f"loud-{number}" for number in range(12)))
    async with siege(stage.fleet, growth=12 * 3 * 1024 * 1024):
        pass
    await faults(stage.fleet, *(f"loud-{number} (" for number in range(12)))


async def test_a_hundred_megabytes_without_a_line_end_are_one_fault_and_the_next_line_is_heard(stage: Stage) -> None:
    program = """
for _ in range(1600):
    os.write(1, b"x" * 65536)
os.write(1, b'\\n{"fleet":"status","text":"here I am"}\\n')
signal.pause()
"""
    before = memory(stage.daemon)
    forget_peak(stage.daemon)  # that of whatever was done to it before this
    await stage.fleet.up(project(stage.python("long", program), '[agents.loud]\nkind = "long"\n'))
    tree = await stage.fleet.until(lambda tree: tree["loud"]["last"] == "here I am")
    assert tree["loud"]["garbled"] == 1
    assert memory(stage.daemon, "VmHWM") - before < 16 * 1024 * 1024
    (event,) = [one for one in (await stage.fleet.call("events", since=0))["events"] if one["fact"] == "Garbled"][:1]
    assert "1048576" in event["why"]


async def test_what_is_given_to_a_program_that_begins_and_ends_turns_of_its_own_reaches_it(stage: Stage) -> None:
    program = f"""
def turns():
    while True:
        os.write(1, {TURNS!r})
        time.sleep(0.0005)
import threading
threading.Thread(target=turns, daemon=True).start()
for line in sys.stdin:
    os.write(1, b"got one\\n")
"""
    await stage.fleet.up(project(stage.python("busy", program), '[agents.busy]\nkind = "busy"\n'))
    busy = (await stage.standing("busy"))["busy"]["id"]
    for number in range(8):
        await stage.fleet.call("instruct", agent="busy", text=f"task {number}", wait=True, timeout=20)
    await stage.said(busy, "got one", 8)


async def test_an_agent_that_reads_nothing_costs_no_more_than_its_inbox(stage: Stage) -> None:
    await stage.fleet.up(project('[agents.deaf]\nkind = "sleep"\n'))
    await stage.standing("deaf")
    before = memory(stage.daemon)
    for _ in range(51):  # one is with it, fifty wait
        await stage.fleet.call("instruct", agent="deaf", text="x" * 100_000)
    with pytest.raises(RefusedError, match="50 texts wait for deaf already"):
        await stage.fleet.call("instruct", agent="deaf", text="x" * 100_000)
    async with siege(stage.fleet):
        pass
    assert memory(stage.daemon) - before < 51 * 2 * 100_000 + 16 * 1024 * 1024


async def test_an_agent_that_ends_its_turns_and_reads_nothing_is_not_heard_and_not_kept_for(stage: Stage) -> None:
    liar = stage.python("liar", f"data = {TURNS!r}\nwhile True:\n    os.write(1, data)\n    time.sleep(0.001)\n")
    await stage.fleet.up(project(liar, '[agents.liar]\nkind = "liar"\n'))
    await stage.standing("liar")
    before = memory(stage.daemon)
    for _ in range(13):
        await stage.fleet.call("instruct", agent="liar", text="x" * 900_000)
    await faults(stage.fleet, "leaves over 8388608 bytes of its stdin unread")
    async with siege(stage.fleet):
        pass
    assert memory(stage.daemon) - before < 64 * 1024 * 1024
