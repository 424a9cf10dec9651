"""What becomes of an agent by its own doing: it is released after its tasks, followed by a fresh one, left alone while
it is silent; and whoever looks sees the same."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.budgets.conftest import Lead
from tests.budgets.puppet import TURN_ENDED, TURN_STARTED, usage
from tests.e2e.stage import Stage, alive
from tests.fleet import RefusedError
from tests.house import eventually


async def test_an_agent_that_used_up_its_tasks_leaves_after_its_children_with_one_last_word(
    lead: Lead, stage: Stage
) -> None:
    top = await lead('tokens = "10k"')
    child = await top.child("One", max_tasks=2, tokens=1000, name="child")
    below = await child.child(name="below")
    await child.hears("brief", "One")
    await child.say({"fleet": "done", "summary": "first"}, TURN_ENDED)
    await child.becomes("standing")
    await stage.fleet.call("instruct", agent="child", text="Two")
    await stage.fleet.call("instruct", agent="child", text="Three")
    await child.hears("task", "Two")
    pids = [(await puppet.shown())["pid"] for puppet in (child, below)]
    await child.say(usage(10), {"fleet": "done", "verdict": "pass", "summary": "second"}, TURN_ENDED)
    gone = await child.becomes("gone")
    assert (gone["tasks"], gone["verdict"]) == ({"done": 2, "max": 2}, "pass")
    assert child.texts("task") == ["Two"], "no task beyond the last one is begun"
    assert (await below.shown())["state"] == "gone"
    assert not any(alive(pid) for pid in pids)
    kinds = [(event["fact"], event.get("agent")) for event in (await stage.fleet.call("events", since=0))["events"]]
    assert kinds.index(("Left", below.id)) < kinds.index(("Left", child.id))
    await top.account("tokens", reserved=0, spent=10)
    await top.hears("digest", "first")
    await top.say(TURN_ENDED)
    await top.hears("digest", "second")
    assert len([text for text in top.texts("digest") if "released" in text]) == 1


async def test_who_replaces_an_agent_has_its_name_what_waited_for_it_and_what_it_had_left(
    lead: Lead, stage: Stage
) -> None:
    top = await lead('tokens = "10k"')
    child = await top.child("One", max_tasks=1, replace=True, tokens=1000, name="child")
    await child.hears("brief", "One")
    await stage.fleet.call("instruct", agent="child", text="Two")
    await child.say(usage(300), {"fleet": "done", "summary": "so far"}, TURN_ENDED)
    await child.becomes("gone")
    tree = await stage.standing("child")
    assert tree["child"]["id"] != child.id
    account = tree["child"]["grant"]["tokens"]
    assert (account["held"], account["spent"]) == (700, 0)
    fresh = type(child)(stage, tree["child"]["id"], "child")
    await fresh.hears("task", "Two")
    (brief,) = fresh.texts("brief")
    assert "so far" in brief
    assert child.id in brief
    assert child.texts("task") == []
    # Nothing was lost and nothing given twice on the way.
    await top.account("tokens", held=10_000, spent=300, reserved=700)


async def test_an_agent_that_has_nothing_left_is_not_replaced(lead: Lead, stage: Stage) -> None:
    top = await lead('tokens = "10k"')
    child = await top.child("One", max_tasks=1, replace=True, tokens=100, name="child")
    await child.hears("brief", "One")
    await child.say(usage(100), TURN_ENDED)
    await child.becomes("gone")
    assert [agent["name"] for agent in (await stage.fleet.tree()).values() if agent["state"] != "gone"] == ["lead"]
    await top.account("tokens", reserved=0, spent=100)


async def test_an_agent_that_is_silent_is_left_alone_even_one_that_is_stopped(lead: Lead, stage: Stage) -> None:
    top = await lead()
    child = await top.child("Long", name="child")
    await child.becomes("working")
    pid = (await child.shown())["pid"]
    os.kill(pid, signal.SIGSTOP)
    for number in range(20):  # the world goes on around it
        await stage.fork(name=f"other-{number}")
    shown = await child.shown()
    assert (shown["state"], shown["pid"], shown["run"]) == ("working", pid, 1)
    assert alive(pid)
    os.kill(pid, signal.SIGCONT)
    await child.say({"fleet": "done", "summary": "took its time"}, TURN_ENDED)
    assert (await child.becomes("standing"))["summary"] == "took its time"


@pytest.mark.parametrize("text", ["", " ", "\n\t ", "\u2003\u00a0"])
async def test_a_task_without_words_is_refused_and_nothing_reaches_the_agent(
    lead: Lead, stage: Stage, text: str
) -> None:
    top = await lead()
    with pytest.raises(RefusedError) as refused:
        await stage.fleet.call("instruct", agent="lead", text=text)
    assert (refused.value.data["code"], refused.value.data["field"]) == ("empty", "text")
    await stage.fleet.call("instruct", agent="lead", text="Words")
    await top.hears("task", "Words")
    assert [line["fleet"] for line in top.heard()] == ["task"]
    assert (await top.shown())["queued"] == 0


async def test_no_secret_is_in_reach_of_an_agent_and_its_shell_has_no_right_of_its_parents(lead: Lead) -> None:
    top = await lead()
    child = await top.child(name="child")
    sibling = await top.child(name="sibling")
    for verb, *words in (("stop", "lead"), ("disband", "lead"), ("disband", "sibling"), ("instruct", "lead", "Hi")):
        refusal = await child.refused(verb, *words)
        assert (refusal["code"], refusal["asked"]) == ("authority", verb)
    for verb in ("down", "shutdown", "config"):
        refusal = await child.refused(verb)
        assert (refusal["code"], refusal["ask"]) == ("authority", "operator")
    assert (await sibling.shown())["state"] == "standing"
    process = Path(f"/proc/{(await child.shown())['pid']}")
    names = {entry.partition("=")[0] for entry in (process / "environ").read_text().split("\0")}
    ours = {name for name in names if name.startswith(("FLEET", "SUPERVISOR"))}
    assert ours == {"FLEET_AGENT", "FLEET_HOME", "FLEET_MODEL", "FLEET_NAME", "FLEET_RESUME", "FLEET_SESSION"}
    held = [os.readlink(process / "fd" / number).split(":")[0] for number in "012"]
    assert held == ["socket", "socket", "pipe"]


async def test_tree_usage_and_whoami_agree_and_a_branch_is_its_own_and_all_below(lead: Lead, stage: Stage) -> None:
    top = await lead('tokens = "100k"')
    middle = await top.child(tokens=50_000, name="middle")
    lowest = await middle.child(tokens=20_000, name="lowest")
    other = await top.child(name="other")
    for puppet, tokens in ((top, 1), (middle, 20), (lowest, 300), (other, 4000)):
        await puppet.say(TURN_STARTED, usage(tokens, output=7, cache_read=11, cost=0.25), TURN_ENDED)
    await stage.fleet.until(lambda tree: tree["lead"]["branch"]["input"] == 4321)
    await other.die()
    await other.becomes("gone")

    tree = {agent["id"]: agent for agent in (await stage.fleet.tree()).values()}
    spent = await stage.fleet.call("usage")
    rows = {row["id"]: row for row in spent["agents"]}
    assert rows.keys() == tree.keys()
    for agent, shown in tree.items():
        for key in ("name", "parent", "state", "model", "own", "branch"):
            assert rows[agent][key] == shown[key], key
        below = [child["branch"] for child in tree.values() if child["parent"] == agent]
        assert shown["branch"] == _sum([shown["own"], *below])
    assert tree[top.id]["branch"] == spent["total"] == _sum([shown["own"] for shown in tree.values()])
    for puppet in (top, middle, lowest):
        code, me = await puppet.ctl("whoami")
        assert code == 0
        for key in ("id", "name", "state", "grant", "role", "kind"):
            assert me[key] == tree[puppet.id][key]
        code, own = await puppet.ctl("usage")
        assert own["total"] == tree[puppet.id]["branch"]


def _sum(usages: list[dict[str, Any]]) -> dict[str, Any]:
    return {key: sum(one[key] for one in usages) for key in usages[0]}


async def test_lines_that_lie_book_nothing_are_counted_and_leave_the_agent_be(lead: Lead, stage: Stage) -> None:
    top = await lead('tokens = "1k"')
    lies = ["-5", "7.0", "1e3", '"7"', "true", "NaN", "Infinity", "9007199254740992", "null", "[1]", '{"a":1}']
    lines = [f'{{"fleet":"usage","scope":"call","input":{lie}}}' for lie in lies]
    lines += ['{"fleet":"usage","scope":"life","input":5}', '{"fleet":"usage","scope":"call","input":5,"input":6}']
    lines += ['{"fleet":"usage","scope":"call","output":1,"reasoning":2}', '{"fleet":"gift"}', '{"fleet":"usage"']
    lines += ['{"fleet":"turn","state":"over"}', '{"fleet":"usage","scope":"call","id":7,"input":5}']
    await top.say(*lines, '{"fleet":"status","text":"\udcff\udcfe"}', "plain \udcff output", usage(5))
    shown = (await stage.fleet.until(lambda tree: tree["lead"]["own"]["input"] == 5))["lead"]
    assert shown["own"]["calls"] == 1
    await eventually(lambda: _garbled(stage, len(lines) + 1))
    shown = await top.shown()
    assert (shown["garbled"], shown["pid"] is not None, shown["state"]) == (len(lines) + 1, True, "standing")
    # The books are those of the true line alone.
    assert shown["grant"]["tokens"]["spent"] == 5


async def _garbled(stage: Stage, lines: int) -> bool:
    faults = (await stage.fleet.call("status"))["faults"]
    return any(fault["where"].startswith("lead (") and f"{lines} unreadable" in fault["what"] for fault in faults)
