"""What is asked of one agent, and what is refused before anybody is born."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.e2e.stage import Stage, kind, project
from tests.e2e.test_environment import STAYS
from tests.fleet import RefusedError

#: Says that it is ready, in which conversation and with which model; then does what it is told to.
TALKS = """
import json
say = lambda **line: print(json.dumps(line), flush=True)
say(fleet="ready", session="c-1", model=sys.argv[1], turns=True)
for line in sys.stdin:
    if "exit" in line:
        sys.exit(7)
"""


def talks(stage: Stage, model: str) -> str:
    """The kind `talks`, whose program says that it uses this model."""
    path = stage.room / "talks.py"
    path.write_text("import sys" + TALKS, "utf-8")
    return kind("talks", sys.executable, "-IS", str(path), model, protocol="scripted")


async def test_an_agent_is_told_whole(stage: Stage) -> None:
    lead = (
        '[agents.lead]\nkind = "talks"\nmodel = "small-1"\nrole = "chief"\nrestart = "on-failure"\n'
        'grant = { models = ["small-*"], tools = ["read"], tokens = 1000 }\n'
        '[agents.lead.agents.below]\nkind = "talks"\n'
    )
    await stage.fleet.up(project(talks(stage, "small-1"), lead))
    tree = await stage.standing("lead", "below")
    told = await stage.fleet.call("about", agent="lead")
    assert told["id"] == tree["lead"]["id"]
    assert (told["name"], told["role"], told["parent"], told["project"]) == ("lead", "chief", None, "t")
    assert told["kind"]["path"] == sys.executable
    assert told["model"] == {"name": "small-1", "from": "agents.toml", "reported": "small-1", "outside": []}
    assert told["tools"] == {"names": ["read"], "from": f"grant of lead ({told['id']})"}
    assert [line for line in told["unenforced"] if "tools" in line], "nothing makes this program keep to them"
    assert told["grant"]["tokens"]["held"] == 1000
    assert told["session"]["id"] == "c-1"
    assert told["transcript"] == str(stage.transcript(told["id"]))
    assert told["stderr"] == str(stage.transcript(told["id"]).with_name("stderr.log"))
    assert told["delivery"]["guarantee"] == "at least once"
    assert told["restart"]["policy"] == "on-failure"
    below = await stage.fleet.call("about", agent="below")
    assert (below["parent"]["name"], below["model"]["name"], below["model"]["from"]) == (
        "lead", "small-1", "parent lead",
    )  # fmt: skip
    assert below["tools"]["from"] == f"grant of lead ({told['id']})"
    await stage.fleet.call("instruct", agent="lead", text="exit")
    await stage.fleet.until(lambda tree: tree["lead"]["exit"] is not None)
    assert (await stage.fleet.call("about", agent="lead"))["exit"]["code"] == 7
    words = await stage.fleet.ctl("about", "lead")
    assert "small-1 (agents.toml)" in words
    assert "exit code 7" in words


async def test_the_record_of_a_start_says_whose_word_model_and_tools_are(stage: Stage) -> None:
    lead = '[agents.lead]\nkind = "talks"\nmodel = "small-1"\ngrant = { tools = ["read", "bash"] }\n'
    await stage.fleet.up(project(talks(stage, "small-1"), lead))
    await stage.standing("lead")
    await stage.fork("talks", parent="lead", name="child", model="small-2", tool=["read"])
    events = (await stage.fleet.call("events", since=0))["events"]
    started = {event["agent"]: event for event in events if event["fact"] == "Started"}
    tree = await stage.fleet.tree()
    lead_id, child = tree["lead"]["id"], tree["child"]["id"]
    assert (started[lead_id]["model"], started[lead_id]["model_from"]) == ("small-1", "agents.toml")
    assert (started[child]["model"], started[child]["model_from"]) == ("small-2", "fork")
    assert started[child]["tools"] == ["read"]
    assert started[child]["tools_from"] == f"grant of child ({child}), lead ({lead_id})"


async def test_a_program_that_uses_a_model_outside_its_grant_is_a_fault_and_its_parent_hears_of_it(
    stage: Stage,
) -> None:
    tables = '[agents.lead]\n[agents.lead.agents.child]\nkind = "talks"\ngrant = { models = ["small-*"] }\n'
    await stage.fleet.up(project(talks(stage, "big-9"), tables))
    tree = await stage.standing("child")
    assert tree["child"]["outside"] == ["big-9"]
    faults = (await stage.fleet.call("status"))["faults"]
    assert ["big-9" in fault["what"] for fault in faults if fault["where"].startswith("child ")] == [True]
    assert (await stage.fleet.tree())["lead"]["queued"] == 1, "the digest waits for its next turn"


@pytest.mark.parametrize(
    ("asked", "field", "says"),
    [
        ({"kind": "absent"}, "kind", "no-such-program-here"),
        ({"kind": "away"}, "kind", "does not exist"),
        ({"kind": "sleep", "directory": "/no/such/place"}, "directory", "/no/such/place does not exist"),
    ],
)
async def test_a_fork_that_could_not_start_is_refused_and_nothing_is_made(
    stage: Stage, asked: dict[str, str], field: str, says: str
) -> None:
    absent = kind("absent", "no-such-program-here") + kind("away", "/no/such/program")
    await stage.fleet.up(project(absent))
    with pytest.raises(RefusedError) as refused:
        await stage.fleet.call("fork", **asked)
    assert (refused.value.data["code"], refused.value.data["field"]) == (
        "unknown" if field == "kind" else "value", field,
    )  # fmt: skip
    assert says in str(refused.value)
    assert await stage.fleet.tree() == {}
    events = (await stage.fleet.call("events", since=0))["events"]
    assert {"Born", "Starting"}.isdisjoint(event["fact"] for event in events)
    assert [event["verb"] for event in events if event["fact"] == "Refused"] == ["fork"]


async def test_what_is_refused_before_the_core_is_asked_is_on_record_as_well(stage: Stage) -> None:
    await stage.fleet.up(project(kind("mine", "sleep", "1000")))
    for verb in ("stop", "disband", "restart", "rename", "approve"):
        more = {"name": "new"} if verb == "rename" else {}
        with pytest.raises(RefusedError, match="nobody-here"):
            await stage.fleet.call(verb, agent="nobody-here", **more)
        events = (await stage.fleet.call("events", since=0))["events"]
        told = [(event["verb"], event["by"], event["asked"]) for event in events if event["fact"] == "Refused"]
        assert told[-1] == (verb, "operator", "nobody-here")
    for verb, params in (("tree", {}), ("stop", {"plan": True})):
        with pytest.raises(RefusedError):
            await stage.fleet.call(verb, agent="nobody-here", **params)
    events = (await stage.fleet.call("events", since=0))["events"]
    assert sum(event["fact"] == "Refused" for event in events) == 5, "who looks, or plans, asks for nothing"


async def test_a_pi_that_is_not_installed_is_refused_with_the_way_out(stage: Stage) -> None:
    await stage.fleet.up(project(), path="/nowhere")
    with pytest.raises(RefusedError, match=r"needs the program pi.*`supervisorctl up` in a shell that finds it"):
        await stage.fleet.call("fork", kind="pi", name="eyes")
    assert await stage.fleet.tree() == {}


async def test_up_warns_of_an_agent_that_cannot_start_and_goes_on(stage: Stage, tmp_path: Path) -> None:
    tables = f'[agents.well]\n[agents.ill]\nkind = "absent"\n[agents.lost]\ndirectory = "{tmp_path}/lost"\n'
    answer = await stage.fleet.up(project(kind("absent", "no-such-program-here"), tables))
    assert [(each["where"], each["field"]) for each in answer["warnings"]] == [("ill", "kind"), ("lost", "directory")]
    assert "ill cannot start" in answer["warnings"][0]["what"]
    assert "no-such-program-here" in answer["warnings"][0]["what"]
    await stage.standing("well")


async def test_what_was_probably_meant_is_said(stage: Stage) -> None:
    role = '[agents.vault-master]\n[roles.reviewer]\ndescription = "reads"\n'
    await stage.fleet.up(project(kind("writer", *STAYS), role))
    for verb, asked, meant in (
        ("stop", {"agent": "vault-mastre"}, "did you mean vault-master?"),
        ("fork", {"kind": "writr"}, "did you mean writer?"),
        ("fork", {"role": "reviwer"}, "did you mean reviewer?"),
    ):
        with pytest.raises(RefusedError) as refused:
            await stage.fleet.call(verb, **asked)
        assert meant in str(refused.value)
