"""A fork is weighed before anything is made of it: what is refused leaves no process, and a loop of it no heap of
records."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.budgets.conftest import Lead
from tests.budgets.puppet import Puppet
from tests.e2e.stage import Stage
from tests.house import Seen

#: Asks as fast as the socket takes it, on one connection, and prints what came of it. Words: the method, how many
#: times, the parameters, and a size: `%d` in them is the number of the time, `%x` a text of that size.
LOOP = """
import json, os, socket, sys
method, many, params, size = sys.argv[1:]
door = socket.socket(socket.AF_UNIX)
door.connect(os.path.join(os.environ["XDG_RUNTIME_DIR"], "fleet-supervisor", "control.sock"))
answers = door.makefile("rb")
for number in range(int(many)):
    told = params.replace('"%d"', str(number)).replace("%d", str(number)).replace("%x", "x" * int(size))
    door.sendall(b'{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}\\n' % (method.encode(), told.encode()))
    answer = json.loads(answers.readline())
    print(json.dumps(answer.get("result") or {"refused": answer["error"].get("data") or answer["error"]}))
"""


async def loop(puppet: Puppet, many: int, method: str = "fork", size: int = 0, **params: Any) -> list[dict[str, Any]]:
    """The answers to so many requests, asked by a process of the agent."""
    code, out, err = await puppet.run(sys.executable, "-ISc", LOOP, method, str(many), json.dumps(params), str(size))
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


async def agents(stage: Stage) -> list[Seen]:
    """What runs below the daemon, once all that were born run: a fork is answered before its program is started."""
    await stage.fleet.until(lambda tree: all(agent["pid"] for agent in tree.values()))
    return [process for process in stage.below() if process.state not in "ZX"]


def size(path: Path) -> int:
    return path.stat().st_size


@pytest.mark.parametrize(
    ("grant", "params", "field", "numbers"),
    [
        ("descendants = 4", {}, "descendants", {"asked": 1, "held": 4, "used": 4, "reserved": 0}),
        ("children = 4", {}, "children", {"asked": 1, "held": 4, "used": 4}),
        ('tokens = "1k"', {"tokens": 250}, "tokens", {"asked": 250, "held": 1000, "used": 0, "reserved": 1000}),
    ],
)
async def test_a_fork_loop_is_refused_at_its_cap_with_every_number(
    lead: Lead, stage: Stage, grant: str, params: dict[str, Any], field: str, numbers: dict[str, int]
) -> None:
    top = await lead(grant)
    before = size(stage.project / "journal.jsonl")
    answers = await loop(top, 300, kind="sleep", **params)
    forked = [answer for answer in answers if "agent" in answer]
    refusals = [answer["refused"] for answer in answers if "refused" in answer]
    assert (len(forked), len(refusals)) == (4, 296)
    for refusal in refusals:
        assert refusal["field"] == field
        assert refusal["code"] == ("bound" if field == "children" else "budget")
        assert {name: refusal[name] for name in numbers} == numbers
        assert refusal["ask"] == "operator"
        assert refusal["message"]
    # The lead, and what it was given; and a loop of refusals is no loop of records.
    assert len(await agents(stage)) == 5
    assert len(await stage.fleet.tree()) == 5
    assert size(stage.project / "journal.jsonl") - before < 4 * 2500 + 20_000
    status = await stage.fleet.call("status")
    assert next(one for one in status["projects"] if one["file"].startswith(str(stage.room)))["refused"] == 296
    refusal = await top.refused("fork", "--kind", "sleep", *(["--tokens", "250"] if params else []))
    assert {name: refusal[name] for name in numbers} == numbers, "the client says the same"


async def test_forks_of_one_caller_are_bounded_in_a_minute_however_they_differ(lead: Lead, stage: Stage) -> None:
    top = await lead()
    toml = (stage.room / "agents.toml").read_text().replace("forks_per_minute = 100000", "forks_per_minute = 5")
    await stage.fleet.up(toml)
    before = size(stage.project / "journal.jsonl")
    answers = await loop(top, 400, kind="sleep", name="child-%d", tokens="%d", task="task %d")
    refusals = [answer["refused"] for answer in answers if "refused" in answer]
    assert len(refusals) == 395
    assert Counter((one["code"], one["field"], one["asked"], one["held"], one["used"]) for one in refusals) == {
        ("rate", "forks_per_minute", 1, 5, 5): 395
    }
    assert len(await agents(stage)) == 6
    assert size(stage.project / "journal.jsonl") - before < 5 * 2500 + 20_000


async def test_a_chain_of_agents_that_each_fork_is_counted_as_one_loop(lead: Lead, stage: Stage) -> None:
    top = await lead()
    toml = (stage.room / "agents.toml").read_text().replace("forks_per_minute = 100000", "forks_per_minute = 3")
    await stage.fleet.up(toml)
    two = await top.fork(name="two")
    three = await two.fork(name="three")
    four = await three.fork(name="four")
    for puppet in (four, two, top):
        refusal = await puppet.refused("fork", "--kind", "sleep")
        assert (refusal["code"], refusal["held"], refusal["used"]) == ("rate", 3, 3)
    # What an agent does in a loop is not held against the person, who has an allowance of one's own.
    await stage.fork(parent="four")


async def test_refusals_that_all_differ_are_counted_and_not_all_written_down(lead: Lead, stage: Stage) -> None:
    top = await lead()
    before = size(stage.project / "journal.jsonl")
    answers = await loop(top, 500, size=2000, kind="no-such-kind-%d-%x")
    assert Counter(answer["refused"]["code"] for answer in answers) == {"unknown": 500}
    assert size(stage.project / "journal.jsonl") - before < 60_000
    told = [event for event in (await stage.fleet.call("events", since=0))["events"] if event["fact"] == "Refused"]
    assert 0 < len(told) < 100
    status = await stage.fleet.call("status")
    assert next(one for one in status["projects"] if one["file"].startswith(str(stage.room)))["refused"] == 500


async def test_an_agent_that_changes_things_in_a_loop_does_not_fill_the_journal(lead: Lead, stage: Stage) -> None:
    top = await lead()
    answers = await loop(top, 20, size=900_000, kind="sleep", task="%x")
    refusals = [answer["refused"] for answer in answers if "refused" in answer]
    assert {(one["code"], one["field"]) for one in refusals} == {("rate", "journal")}
    assert 1 < 20 - len(refusals) < 6
    assert size(stage.project / "journal.jsonl") < 6_000_000
    # Whoever else asks is not held up by it.
    await stage.fleet.call("rename", agent=top.id, name="other")


async def test_a_task_of_nearly_a_mebibyte_arrives_whole_and_one_beyond_is_refused(lead: Lead, stage: Stage) -> None:
    top = await lead()
    (answer,) = await loop(top, 1, size=1_000_000, kind="puppet", name="reader", task="%x")
    reader = Puppet(stage, answer["agent"]["id"], "reader")
    (brief,) = await reader.hears("brief")
    assert brief == "x" * 1_000_000
    (answer,) = await loop(top, 1, size=1_100_000, kind="puppet", task="%x")
    assert "more than" in answer["refused"]["message"]
    assert len(await stage.fleet.tree()) == 2


async def test_what_a_child_was_given_is_not_less_because_of_a_later_sibling(lead: Lead) -> None:
    top = await lead('tokens = "10k", descendants = 4')
    first = await top.fork("--tokens", "6000", "--descendants", "2", name="first")
    refusal = await top.refused("fork", "--kind", "sleep", "--tokens", "5000")
    assert (refusal["field"], refusal["reserved"]) == ("tokens", 6000)
    await top.fork("--tokens", "4000", name="second")
    assert (await first.account("tokens", held=6000))["free"] == 6000
    refusal = await top.refused("fork", "--kind", "sleep")
    assert (refusal["field"], refusal["held"], refusal["used"], refusal["reserved"]) == ("descendants", 4, 2, 2)
    for name in ("one", "two"):
        await first.fork(name=name, kind="sleep")
    assert (await first.refused("fork", "--kind", "sleep"))["field"] == "descendants"


async def test_a_chain_is_as_deep_as_the_project_allows(lead: Lead, stage: Stage) -> None:
    top = await lead(limits="depth = 4\n")
    names = ["two", "three", "four"]
    lowest = top
    for name in names:
        lowest = await lowest.fork(name=name)
    refusal = await lowest.refused("fork", "--kind", "sleep")
    assert (refusal["code"], refusal["field"], refusal["asked"], refusal["held"]) == ("depth", "depth", 5, 4)
    assert len(await stage.fleet.tree()) == 4
