"""What an agent spends is counted as it spends it, and held against what it and those above it hold, while it runs."""

from __future__ import annotations

import signal
import time

import pytest

from tests.budgets.conftest import Lead
from tests.budgets.puppet import TURN_ENDED, TURN_STARTED, Puppet, usage
from tests.e2e.stage import Stage
from tests.fleet import RefusedError
from tests.house import eventually


async def test_a_budget_that_runs_out_in_a_turn_is_told_at_80_and_cut_at_100_percent_and_more_of_it_wakes(
    lead: Lead, stage: Stage
) -> None:
    parent = await lead('tokens = "100k"')
    child = await parent.child("Work", tokens=1000, name="child")
    await child.hears("brief", "Work")
    await child.say(TURN_STARTED, usage(790, id="1"))
    await child.account("tokens", spent=790)
    assert not [line for line in child.heard() if line["fleet"] == "interrupt"]
    await child.say(usage(20, id="2"), usage(1, id="3"))
    await child.account("tokens", spent=811)
    assert (await child.shown())["state"] == "working"

    # The turn still runs when what is left is used up: it is cut then, not at its end.
    await child.say(usage(200, id="4"))
    await eventually(lambda: [line for line in child.heard() if line["fleet"] == "interrupt"])
    account = await child.account("tokens", spent=1011)
    assert (account["free"], account["over"]) == (0, 11)
    await child.say(TURN_ENDED | {"outcome": "aborted"})
    await child.becomes("standing")

    # No further turn starts, but nothing of it is lost.
    await stage.fleet.call("instruct", agent="child", text="More work")
    assert (await child.shown())["queued"] == 3, "the task, and what it is told of its budget"
    assert child.texts("task") == []
    code, _ = await parent.ctl("grant", "child", "--tokens", "5000")
    assert code == 0
    await child.hears("task", "More work")
    assert [text for text in child.texts("digest") if "80 %" in text and "tokens" in text] != []

    # Its parent is told of each step once, with its next turn: here that of the child's end of its task.
    await parent.hears("digest", "ended task 1")
    told = [text for text in parent.texts("digest") if "tokens budget of child" in text]
    assert [text.split("] ")[1].split()[0] for text in told] == ["80", "100"]


async def test_a_turn_that_is_not_held_does_not_start_and_the_last_one_held_is_not_cut(
    lead: Lead, stage: Stage
) -> None:
    parent = await lead()
    child = await parent.child("One", turns=2, name="child")
    await child.hears("brief", "One")
    await child.say(TURN_ENDED)
    await child.becomes("standing")
    await stage.fleet.call("instruct", agent="child", text="Two")
    await child.hears("task", "Two")
    await stage.fleet.call("instruct", agent="child", text="Three")
    await child.say(usage(10), TURN_ENDED)
    await child.becomes("standing")
    assert child.texts("task") == ["Two"]
    assert not [line for line in child.heard() if line["fleet"] == "interrupt"]
    shown = await child.shown()
    assert shown["grant"]["turns"] == {"held": 2, "spent": 2, "reserved": 0, "free": 0, "over": 0}


async def test_a_chain_of_three_that_shares_a_pool_stops_with_the_pool(lead: Lead, stage: Stage) -> None:
    top = await lead('tokens = "100k"')
    middle = await top.child("Go", name="middle")
    lowest = await middle.child("Go", name="lowest")
    await stage.fleet.call("instruct", agent="lead", text="Go")
    for puppet in (top, middle, lowest):
        await puppet.becomes("working")
        await puppet.say(usage(40_000))
    account = await top.account("tokens", spent=120_000)
    assert (account["free"], account["over"]) == (0, 20_000), "what ran when it ran out, and no more"
    for puppet in (top, middle, lowest):
        await puppet.hears("interrupt")
        await puppet.say(TURN_ENDED)
        await puppet.becomes("waiting" if puppet is not lowest else "standing")
        await stage.fleet.call("instruct", agent=puppet.id, text="Go on")
        assert puppet.texts("task")[-1:] != ["Go on"]
    # Nobody has a turn left in which to be told of its child: all are as done as they were.
    for puppet in (top, middle):
        assert (await puppet.becomes("standing"))["status"] == "done"
    refusal = await lowest.refused("fork", "--kind", "sleep", "--tokens", "1")
    assert (refusal["code"], refusal["field"]) == ("budget", "tokens")
    assert (refusal["held"], refusal["used"], refusal["reserved"]) == (100_000, 120_000, 0)


async def test_a_parent_that_restarts_stops_or_is_renamed_gets_nothing_back_while_its_children_live(
    lead: Lead, stage: Stage
) -> None:
    top = await lead('tokens = "100k"')
    middle = await top.child(tokens=60_000, name="middle")
    lowest = await middle.child(tokens=30_000, name="lowest")
    await lowest.say(usage(1000))
    await lowest.account("tokens", spent=1000)
    before = await stage.fleet.tree()
    await stage.fleet.call("restart", agent="middle")
    await stage.fleet.call("rename", agent="middle", name="centre")
    await stage.fleet.call("restart", agent="lead")
    after = await stage.fleet.tree()
    assert after["lead"]["grant"] == before["lead"]["grant"]
    assert after["centre"]["grant"] == before["middle"]["grant"]
    assert after["lowest"]["grant"] == before["lowest"]["grant"]
    assert after["lowest"]["pid"] == before["lowest"]["pid"]
    refusal = await Puppet(stage, top.id, "lead").refused("fork", "--kind", "sleep", "--tokens", "50k")
    assert (refusal["asked"], refusal["held"], refusal["reserved"]) == (50_000, 100_000, 60_000)


async def test_no_agent_lifts_what_its_parent_set_for_it(lead: Lead) -> None:
    top = await lead('tokens = "100k"')
    child = await top.child(tokens=1000, children=3, name="child")
    assert (await child.refused("grant", "child", "--tokens", "50k"))["code"] == "authority"
    assert (await child.refused("grant", "lead", "--tokens", "9M"))["code"] == "authority"
    assert (await child.refused("restart", "child"))["code"] == "authority"
    refusal = await child.refused("fork", "--kind", "sleep", "--tokens", "1001")
    assert (refusal["field"], refusal["asked"], refusal["held"], refusal["ask"]) == ("tokens", 1001, 1000, "lead")
    # One that names no budget draws on its parent's, it has none without end.
    below = await child.child(name="below")
    await below.say(usage(1500))
    account = await child.account("tokens", spent=1500)
    assert (account["held"], account["over"]) == (1000, 500)
    refusal = await child.refused("grant", "below", "--tokens", "10")
    assert (refusal["code"], refusal["field"], refusal["used"]) == ("budget", "tokens", 1500)
    # What went past its limit is its parent's to bear.
    await top.account("tokens", spent=500, reserved=1000)


async def test_an_agent_that_was_stopped_holds_again_what_it_held_and_not_what_was_left(
    lead: Lead, stage: Stage
) -> None:
    top = await lead('tokens = "100k"')
    child = await top.child(tokens=60_000, name="child")
    await child.say(usage(10_000))
    await child.account("tokens", spent=10_000)
    await stage.fleet.call("stop", agent="child")
    await stage.fleet.call("start", agent="child")
    again = await child.account("tokens", spent=10_000)
    assert (again["held"], again["free"]) == (60_000, 50_000)
    await top.account("tokens", reserved=60_000, spent=0)


@pytest.mark.parametrize("way", ["exit 0", "exit 3", "killed", "disband", "tasks", "parent"])
async def test_however_an_agent_ends_what_it_did_not_spend_returns_and_what_it_spent_stays(
    lead: Lead, stage: Stage, way: str
) -> None:
    top = await lead('tokens = "10k", turns = 50')
    middle = await top.child(tokens=2000, name="middle") if way == "parent" else top
    options = ["Work"] if way == "tasks" else []
    child = await middle.child(*options, tokens=400, turns=5, max_tasks=1, name="child")
    await child.say(usage(150, id="1"), usage(150, id="1"))
    match way:
        case "exit 0" | "exit 3":
            await child.exit(int(way[-1]))
        case "killed":
            await child.die(signal.SIGKILL)
        case "disband" | "parent":
            await child.account("tokens", spent=150)
            await stage.fleet.call("disband", agent="child" if way == "disband" else "middle")
        case "tasks":
            await child.say(TURN_ENDED)
    await child.becomes("gone")
    account = await top.account("tokens", reserved=0)
    assert (account["spent"], account["free"]) == (150, 9850)
    shown = await top.shown()
    assert shown["grant"]["turns"]["reserved"] == 0
    # One of the child's, and one in which its parent is told.
    assert shown["grant"]["turns"]["spent"] == shown["branch"]["turns"] <= 2


async def test_an_agent_whose_program_is_not_there_is_not_born_and_costs_nothing(lead: Lead, stage: Stage) -> None:
    top = await lead('tokens = "10k"', '[kinds.missing]\ncommand = ["no-such-program"]\nprotocol = "lines"\n')
    code, answer = await top.ctl("fork", "--kind", "missing", "--name", "child", "--tokens", "400", "--wait")
    assert code == 1
    assert "no-such-program" in answer["refused"]["message"]
    assert {*await stage.fleet.tree()} == {"lead"}
    assert (await top.shown())["grant"]["tokens"]["reserved"] == 0


async def test_what_is_said_in_the_last_moment_is_booked_and_its_completion_is_not_lost(
    lead: Lead, stage: Stage
) -> None:
    top = await lead('tokens = "10k"')
    child = await top.child("Work", tokens=4000, name="child")
    await child.hears("brief", "Work")
    await child.at_term(usage(700), {"fleet": "done", "summary": "it was done after all"})
    await stage.fleet.call("disband", agent="child")
    gone = await child.shown()
    assert (gone["own"]["input"], gone["summary"]) == (700, "it was done after all")
    account = await top.account("tokens", reserved=0)
    assert account["spent"] == 700
    facts = [event for event in (await stage.fleet.call("events", since=0))["events"] if event.get("agent") == child.id]
    kinds = [event["fact"] for event in facts]
    assert kinds.index("Said") < kinds.index("Exited")
    await top.hears("digest", "it was done after all")


async def test_a_process_that_is_left_behind_still_spends_for_its_agent(lead: Lead, stage: Stage) -> None:
    leaver = stage.python(
        "leaver",
        """
line = b'{"fleet":"usage","scope":"call","input":300}\\n'
ready, told = os.pipe()
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, lambda *_: (os.write(1, line), os._exit(0)))
    os.write(told, b"!")
    while True:
        signal.pause()
os.read(ready, 1)
""",
    )
    top = await lead('tokens = "10k"', leaver)
    code, answer = await top.ctl("fork", "Go", "--kind", "leaver", "--name", "child", "--tokens", "4000")
    assert code == 0
    child = Puppet(stage, answer["agent"]["id"], "child")
    gone = await child.becomes("gone")
    assert gone["own"]["input"] == 300
    assert len(gone["exit"]["killed"]) >= 1
    await top.account("tokens", reserved=0, spent=300)


async def test_a_cost_that_no_program_says_is_estimated_marked_and_held_against_the_budget(
    lead: Lead, stage: Stage
) -> None:
    top = await lead("cost = 2.00")
    before = time.strftime("%Y-%m-%d")
    await top.say(TURN_STARTED, usage(400_000, model="gpt-5"), usage(8, model="nobody-knows"))
    await top.account("cost", spent=0.5)
    told = await stage.fleet.call("usage", by="model")
    assert before <= told["today"] <= time.strftime("%Y-%m-%d")
    assert told["since"] == told["today"]
    rows = {row["model"]: row["own"] for row in told["rows"]}
    assert (rows["gpt-5"]["cost"], rows["gpt-5"]["estimated"], rows["gpt-5"]["turns"]) == (0.5, 0.5, 1)
    assert (rows["nobody-knows"]["input"], rows["nobody-knows"]["cost"]) == (8, 0)
    assert told["unpriced"] == ["nobody-knows"]
    assert told["prices"].startswith("genai-prices ")
    assert (await stage.fleet.call("usage", by="model", since="all"))["total"] == told["total"]


async def test_a_day_is_written_down_before_what_is_spent_on_it(lead: Lead, stage: Stage) -> None:
    top = await lead('tokens = "1k"')
    for number in range(3):
        await top.say(TURN_STARTED, usage(10, id=f"c{number}"), TURN_ENDED)
    await top.account("tokens", spent=30)
    events = (await stage.fleet.call("events", since=0))["events"]
    facts = [event["fact"] for event in events]
    assert facts.count("Dawned") in (1, 2), "once a day"
    assert facts.index("Dawned") < min(facts.index(name) for name in ("Spent", "TurnStarted") if name in facts)


async def test_a_group_or_a_day_that_is_none_is_refused_with_those_that_are(stage: Stage, lead: Lead) -> None:
    await lead()
    for given, words in (({"by": "colour"}, "agent, branch, model"), ({"since": "tomorrow"}, "such as 7d")):
        with pytest.raises(RefusedError, match=words):
            await stage.fleet.call("usage", **given)
