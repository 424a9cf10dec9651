"""Limits are what is granted and nothing else: whose turns they are, what may be read of them, and what neither a text
nor a fresh conversation changes."""

from __future__ import annotations

from tests.budgets.conftest import Lead
from tests.budgets.puppet import TURN_ENDED, TURN_STARTED, usage
from tests.e2e.stage import Stage
from tests.house import eventually


async def test_an_agent_is_held_by_its_grant_whatever_number_its_text_names(lead: Lead) -> None:
    top = await lead('tokens = "1M"')
    generous = "You have 900000 tokens, 50 turns and 40 children. Make at most six calls."
    child = await top.child(generous, tokens=1000, children=1, name="child")
    await child.hears("brief", "six calls")
    # Fewer than its text says: the grant cuts. More calls than its text says: nothing does.
    await child.say(TURN_STARTED, *(usage(100, id=str(number)) for number in range(9)))
    await child.account("tokens", held=1000, spent=900, free=100)
    assert [line for line in child.heard() if line["fleet"] == "interrupt"] == []
    await child.say(usage(200, id="ten"))
    await eventually(lambda: [line for line in child.heard() if line["fleet"] == "interrupt"])
    await child.fork(name="only", kind="sleep")
    refusal = await child.refused("fork", "--kind", "sleep")
    assert (refusal["field"], refusal["held"], refusal["used"]) == ("children", 1, 1)


async def test_a_child_with_turns_of_its_own_leaves_its_parents_alone_and_one_without_draws_on_them(
    lead: Lead, stage: Stage
) -> None:
    top = await lead('tokens = "10k", turns = 10')
    own = await top.child("One.", tokens=1000, turns=3, name="own")
    await own.hears("brief")
    await own.say(usage(100), TURN_ENDED)
    # Its tokens and its turns come out of what was carved for it, once, when it was forked.
    await own.account("turns", held=3, spent=1, free=2)
    await own.account("tokens", held=1000, spent=100)
    await top.hears("digest", "own")
    await top.account("turns", held=10, reserved=3, spent=1)
    await top.account("tokens", held=10_000, reserved=1000, spent=0)
    drawing = await top.child("Two.", name="drawing")
    await drawing.hears("brief")
    await top.account("turns", held=10, reserved=3, spent=2)
    assert (await drawing.shown())["grant"] == {}
    # What is left of what was carved returns.
    await stage.fleet.call("disband", agent="own")
    await top.account("turns", held=10, reserved=0, spent=3)


async def test_used_limit_and_what_is_left_are_shown_before_they_bite(lead: Lead, stage: Stage) -> None:
    top = await lead('tokens = "10k", turns = 4, children = 2')
    await top.say(usage(2500))
    await top.account("tokens", spent=2500)
    expected = {"held": 10_000, "spent": 2500, "reserved": 0, "free": 7500, "over": 0}
    code, whoami = await top.ctl("whoami")
    assert (code, whoami["grant"]["tokens"], whoami["bounds"]["children"]) == (0, expected, 2)
    assert (await stage.fleet.json("tree"))["agents"][0]["grant"]["tokens"] == expected
    told = await stage.fleet.ctl("about", "lead")
    assert "7.5k free" in told


async def test_neither_a_restart_nor_a_fresh_conversation_gives_anything_back(lead: Lead, stage: Stage) -> None:
    top = await lead('tokens = "10k", turns = 4')
    await stage.fleet.call("instruct", agent="lead", text="Go.")
    await top.hears("task")
    await top.say(usage(2500, context_percent=90), TURN_ENDED)
    await top.account("tokens", spent=2500)
    # It compacts: what it holds of its conversation shrinks, what it spent does not.
    await top.say(usage(10, context_percent=5))
    await top.account("tokens", spent=2510, held=10_000)
    await stage.fleet.call("restart", agent="lead")
    await top.say({"fleet": "ready", "session": "another", "fresh": True}, usage(5, id="after"))
    await top.account("tokens", spent=2515, held=10_000)
    await top.account("turns", spent=1, held=4)


async def test_only_a_person_adds_at_the_root_and_each_grant_is_on_record(lead: Lead, stage: Stage) -> None:
    top = await lead('tokens = "10k"')
    refusal = await top.refused("grant", "lead", "--tokens", "20k")
    assert (refusal["code"], refusal["ask"]) == ("authority", "operator")
    await stage.fleet.ctl("grant", "lead", "--tokens", "20k")
    await top.account("tokens", held=20_000)
    events = (await stage.fleet.call("events", since=0))["events"]
    granted = [event for event in events if event["fact"] in ("Granted", "Refused")]
    assert [(event["fact"], event["by"]) for event in granted] == [("Refused", top.id), ("Granted", "operator")]
    assert granted[1]["grant"]["tokens"] == 20_000
