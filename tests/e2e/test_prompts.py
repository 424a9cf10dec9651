"""A program asks a person, who answers by hand: exactly what is up, in the words of the client."""

from __future__ import annotations

import pytest

from tests.e2e.stage import Stage, project
from tests.fleet import RefusedError
from tests.house import eventually

#: Asks once, says what it was told, and ends its turn.
ASKS = "script:\nprompt p1 Delete build/?\nwait answer p1\nsay told $answer $why\nreply $answer: $why"
#: Asks, and takes it back for another when a file is there.
CHANGES = """script:
prompt p1 Delete build/?
wait file {go}
withdraw p1
prompt p2 Delete everything?
wait answer p2
reply $answer
"""


def kid(task: str) -> str:
    """A fleet with one that asks."""
    return project(f"[agents.kid]\nkind = 'scripted'\ntask = '''{task}'''\n")


@pytest.mark.parametrize(
    ("words", "text"), [(("approve", "kid"), "yes: "), (("deny", "kid", "p1", "--text", "Not that."), "no: Not that.")]
)
async def test_a_person_answers_what_is_asked_in_the_tree(stage: Stage, words: tuple[str, ...], text: str) -> None:
    await stage.fleet.up(kid(ASKS))
    agent = await stage.fleet.state_of("kid", "waiting")
    assert agent["prompt"] == {"id": "p1", "question": "Delete build/?"}
    assert "asks: Delete build/?" in await stage.fleet.ctl("tree")
    receipt = await stage.fleet.ctl(*words)
    done = "approved" if words[0] == "approve" else "denied"
    assert receipt == f"kid ({agent['id']}): {done} p1: Delete build/?\n"
    agent = await stage.fleet.state_of("kid", "standing")
    assert (agent["prompt"], agent["last"]) == (None, text.strip())


async def test_a_prompt_that_was_replaced_is_not_answered_and_the_one_that_is_up_is_told(stage: Stage) -> None:
    go = stage.room / "go"
    await stage.fleet.up(kid(CHANGES.format(go=go)))
    await stage.fleet.state_of("kid", "waiting")
    go.touch()
    await stage.fleet.until(lambda tree: (tree["kid"]["prompt"] or {}).get("id") == "p2")
    refused = await stage.fleet.json("approve", "kid", "p1", code=1)
    assert (refused["refused"]["code"], refused["refused"]["held"]) == ("state", "p2")
    assert "Up now: p2: Delete everything?" in refused["refused"]["message"]
    answer = await stage.fleet.json("deny", "kid", "p2")
    assert answer["prompt"] == {"id": "p2", "question": "Delete everything?"}
    assert answer["allowed"] is False
    assert (await stage.fleet.state_of("kid", "standing"))["last"] == "no"


#: Asks, and goes on without an answer after a second.
IMPATIENT = """script:
print {"fleet":"blocked","on":"person","question":"Delete build/?","prompt":"p1","seconds":1}
wait answer p1
reply $answer: $why
"""
#: Asks what a text would answer, and waits a second for it.
CURIOUS = """script:
print {"fleet":"blocked","on":"person","question":"Which way?","seconds":1}
wait file PLACE/go
reply went on
"""


async def over(stage: Stage) -> None:
    """Wait until something was asked, and was over: it is up for so short that who looks late sees nothing of it."""
    told: list[str] = []
    async with stage.fleet.events(since=0) as events:
        while "Blocked" not in told or told[-1] not in ("Answered", "Withdrawn"):
            told.append((await anext(events)).get("fact", ""))


async def test_what_a_program_does_not_wait_for_any_longer_cannot_be_answered(stage: Stage) -> None:
    await stage.fleet.up(kid(IMPATIENT))
    await over(stage)
    agent = await stage.fleet.state_of("kid", "standing")
    assert (agent["prompt"], agent["last"]) == (None, "no:")
    refused = await stage.fleet.json("approve", "kid", "p1", code=1)
    assert "asks nothing now" in refused["refused"]["message"]


async def test_a_question_that_nobody_answered_in_time_holds_up_no_task(stage: Stage) -> None:
    await stage.fleet.up(kid(CURIOUS.replace("PLACE", str(stage.room))))
    await over(stage)
    await stage.fleet.state_of("kid", "working")
    (stage.room / "go").touch()
    agent = await stage.fleet.state_of("kid", "standing")
    assert (agent["tasks"]["done"], agent["last"]) == (1, "went on")


async def test_the_end_of_the_process_takes_a_prompt_back(stage: Stage) -> None:
    await stage.fleet.up(kid(ASKS))
    await stage.fleet.state_of("kid", "waiting")
    await stage.fleet.call("stop", agent="kid")
    with pytest.raises(RefusedError, match="asks nothing now"):
        await stage.fleet.call("approve", agent="kid")
    assert (await stage.fleet.tree())["kid"]["prompt"] is None


async def test_no_agent_answers_for_a_person(stage: Stage) -> None:
    """Neither for its child nor for itself: what asks could say yes to itself."""
    go, done = stage.room / "go", stage.room / "done"
    tries = [f"ctl {verb} {who}\nexpect authority" for verb in ("approve", "deny") for who in ("kid", "lead")]
    asks = "fork kid --kind scripted:\n  prompt p1 May I?\n  wait answer p1\nend\nprompt p2 And I?\nwait file " + str(
        go
    )
    script = "\n".join(["script:", asks, f"wait file {go}", *tries, f"run touch {done}"])
    await stage.fleet.up(project(f"[agents.lead]\nkind = 'scripted'\ntask = '''{script}'''\n"))
    await stage.fleet.state_of("kid", "waiting")
    await stage.fleet.state_of("lead", "waiting")
    go.touch()
    await eventually(done.exists)
    # Its own turn is over, and what it asked with it; it waits for the child, whom nobody has answered.
    tree = await stage.fleet.until(lambda tree: tree["lead"]["waiting_on"].startswith("kid"))
    assert (tree["lead"]["state"], tree["lead"]["prompt"]) == ("waiting", None)
    assert tree["kid"]["prompt"]["id"] == "p1"
