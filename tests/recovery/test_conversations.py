"""After any death of the daemon each agent is in its place, in its own conversation, with what waited for it."""

from __future__ import annotations

from pathlib import Path

from supervisor.core.decide.run import RESUMES
from tests.fleet import Fleet
from tests.recovery.lives import agent, alone, events, habit, home, kill, life, memory, notes, pids, project, settled

#: A task that is under way until a file is there.
LONG = "script:\nsay at it\nspend input=100 output=10\nwait file {}\nreply finished"
SHORT = "script:\nnote played $id\nspend input=7 output=1\nreply done"
#: Steps of a start that die where a conversation is to be resumed.
NO_RESUME = 'start:\nrun test -z "$FLEET_RESUME" || kill -9 $PPID\n'
RESTARTS = {"restart": "on-failure"}


async def begun(fleet: Fleet, name: str) -> None:
    """Wait until its turn runs and what it spent is booked."""
    await fleet.until(lambda tree: name in tree and tree[name]["state"] == "working" and tree[name]["own"]["calls"] > 0)


async def test_an_agent_comes_back_in_its_conversation_and_stands_by(tier: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with life(tmp_path, tier) as fleet:
        await fleet.up(project(agent("lead"), agent("kid", under="lead", task=LONG.format(gate))))
        await begun(fleet, "kid")
        await fleet.call("instruct", agent="kid", text=SHORT)
        before = await fleet.tree()
        await kill(fleet)
    async with life(tmp_path, tier) as fleet:
        tree = await settled(fleet, "lead", "kid")
        kid = tree["kid"]
        assert pids(fleet) == {tree["lead"]["pid"], kid["pid"]}
        assert (kid["id"], kid["run"], kid["crashes"]) == (before["kid"]["id"], 2, 0)
        ended = [event["status"] for event in await events(fleet, "TaskEnded")]
        assert ended == ["interrupted", "done"], "the turn that was cut is not gone on with, the next one is begun"
        assert (kid["tasks"]["done"], kid["own"]["calls"], kid["own"]["turns"]) == (2, 2, 2)
        assert [line for line in notes(fleet, kid["id"]) if not line.startswith("spent")] == [
            "run 1", "told m1", "input m1", "run 2", "input m2", "note played m2",
        ]  # fmt: skip
        assert sorted(await _starts(fleet, resume=True)) == ["a1", "a2"]


async def _starts(fleet: Fleet, *, resume: bool) -> list[str]:
    return [event["agent"] for event in await events(fleet, "Starting") if event.get("resume", False) == resume]


async def test_a_cut_turn_goes_on_where_that_is_asked_for(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("lead", task=LONG.format(gate), resume="continue")))
        await begun(fleet, "lead")
        await kill(fleet)
    gate.touch()
    async with life(tmp_path) as fleet:
        lead = await fleet.until(lambda tree: tree["lead"]["tasks"]["done"] == 1)
        assert await events(fleet, "TaskEnded") == [
            event for event in await events(fleet, "TaskEnded") if event["status"] == "done"
        ]
        assert lead["lead"]["own"]["turns"] == 2
        (said,) = [event["input"]["text"] for event in await events(fleet, "Queued") if event["input"]["id"] == "m2"]
        assert "started again in the middle of this task" in said


async def test_what_waited_for_an_agent_in_backoff_reaches_it_under_its_name(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("lead", task="script:\nexit 3", **RESTARTS)))
        await fleet.state_of("lead", "backoff")
        await fleet.call("instruct", agent="lead", text=SHORT)
        await kill(fleet)
    async with life(tmp_path) as fleet:
        lead = (await settled(fleet, "lead"))["lead"]
        assert memory(fleet, lead["id"]).heard == {"m1": 1, "m2": 1}
        assert (lead["crashes"], lead["tasks"]["done"]) == (1, 2)


async def test_all_counts_are_what_they_were(tier: str, tmp_path: Path) -> None:
    counted = ("id", "name", "parent", "state", "own", "branch", "grant", "tasks", "crashes", "summary", "declared")
    grant = {"tokens": 10_000, "turns": 20, "descendants": 4, "fork": True}

    def shown(tree: dict[str, dict[str, object]]) -> dict[str, list[object]]:
        return {name: [tree[name][key] for key in counted] for name in tree}

    async with life(tmp_path, tier) as fleet:
        await fleet.up(project(agent("lead", task=SHORT, grant=grant, **RESTARTS), agent("idle", under="lead")))
        await settled(fleet, "lead", "idle")
        await fleet.call("fork", parent="lead", kind="scripted", name="kid", task=SHORT, tokens=500)
        await fleet.until(lambda tree: tree.get("kid", {"tasks": {"done": 0}})["tasks"]["done"] == 1)
        await fleet.call("instruct", agent="lead", text="script:\ndie")
        await fleet.until(lambda tree: tree["lead"]["crashes"] == 1)
        await fleet.call("stop", agent="idle")
        before = shown(await settled(fleet, "lead", "kid"))
        await kill(fleet)
    for last in (False, True):
        async with life(tmp_path, tier) as fleet:
            tree = await settled(fleet, "lead", "kid")
            await alone(fleet, tree["lead"], tree["kid"])
            assert shown(await fleet.tree()) == before
            if not last:
                await kill(fleet)


async def test_what_a_resumed_program_says_again_is_not_counted_again(tmp_path: Path) -> None:
    again = '{"fleet":"usage","scope":"%s","input":40,"output":2,%s}'
    lines = [again % ("call", '"id":"c1"'), again % ("turn", '"id":"t1"'), again % ("total", '"epoch":"s"')]
    said = "start:\n" + "\n".join(f"print {line}" for line in lines) + "\n"
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("lead", instructions=habit(tmp_path, said))))
        await fleet.until(lambda tree: tree["lead"]["own"]["input"] > 0)
        own = (await settled(fleet, "lead"))["lead"]["own"]
        await fleet.call("restart", agent="lead")
        await kill(fleet)
    async with life(tmp_path) as fleet:
        await fleet.call("restart", agent="lead")
        lead = (await settled(fleet, "lead"))["lead"]
        assert lead["run"] == 4
        assert lead["own"] == own


async def test_ten_resumes_are_one_process(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("lead")))
        await settled(fleet, "lead")
        for _ in range(9):
            await fleet.call("restart", agent="lead")
        await kill(fleet)
    async with life(tmp_path) as fleet:
        lead = (await settled(fleet, "lead"))["lead"]
        assert pids(fleet) == {lead["pid"]}
        assert [line for line in notes(fleet, lead["id"]) if line.startswith("run")] == [
            f"run {number}" for number in range(1, 12)
        ]


async def test_a_conversation_that_cannot_be_resumed_is_followed_by_a_fresh_one_that_knows_of_it(
    tmp_path: Path,
) -> None:
    async with life(tmp_path) as fleet:
        kid = agent("kid", under="lead", task="Keep the minutes.", instructions=habit(tmp_path, NO_RESUME))
        await fleet.up(project(agent("lead"), kid))
        await settled(fleet, "kid")
        await fleet.call("instruct", agent="kid", text=SHORT, wait=True)
        session = next(home(fleet, "a2").glob("*.session"))
        await kill(fleet)
    async with life(tmp_path) as fleet:
        await fleet.until(lambda tree: tree["kid"]["run"] == 2 + RESUMES and tree["kid"]["state"] == "standing")
        (given_up,) = await events(fleet, "Abandoned")
        assert (given_up["agent"], given_up["session"]) == ("a2", session.stem)
        kid_starts = [event for event in await events(fleet, "Starting") if event["agent"] == "a2"]
        assert [event.get("resume", False) for event in kid_starts] == [False, *[True] * RESUMES, False]
        told = [event["input"]["text"] for event in await events(fleet, "Queued") if event["agent"] == "a1"]
        assert "kid (a2) begins a fresh conversation" in told[-1]
        await fleet.call("instruct", agent="kid", text=SHORT, wait=True)
        (fresh,) = set(home(fleet, "a2").glob("*.session")) - {session}
        assert "told m" in fresh.read_text()


async def test_a_conversation_in_which_every_turn_kills_its_program_is_not_gone_on_with_for_ever(
    tmp_path: Path,
) -> None:
    poisoned = 'task:\nrun test -z "$FLEET_RESUME" || kill -9 $PPID\nreply well\n'
    async with life(tmp_path) as fleet:
        await fleet.up(project(agent("lead", task="Begin.", instructions=habit(tmp_path, poisoned), **RESTARTS)))
        await settled(fleet, "lead")
        await fleet.call("restart", agent="lead")
        for number in range(RESUMES):
            await fleet.call("instruct", agent="lead", text="Go on.")
            await fleet.until(lambda tree, number=number: tree["lead"]["crashes"] == number + 1)  # type: ignore[misc]  # a lambda in a loop
        lead = (await settled(fleet, "lead"))["lead"]
        assert len(await events(fleet, "Abandoned")) == 1
        await fleet.call("instruct", agent="lead", text="Go on.", wait=True)
        after = (await settled(fleet, "lead"))["lead"]
        assert (after["run"], after["crashes"]) == (lead["run"], RESUMES)
        assert memory(fleet, "a1").told == 2


async def test_the_fresh_one_is_told_its_brief_its_last_words_and_where_the_old_one_is_written_down(
    tmp_path: Path,
) -> None:
    """Seen by a program that prints what it reads: what it was told is in its transcript."""
    hears = tmp_path / "hears"
    hears.write_text(
        r"""#!/bin/sh
test -z "$FLEET_RESUME" || exit 9
echo '{"fleet":"ready","session":"s'$$'","turns":true}'
while read -r line; do
printf 'heard %s\n' "$line"
echo '{"fleet":"turn","state":"started"}'
echo '{"fleet":"turn","state":"ended","text":"the minutes are kept"}'
done
"""
    )
    hears.chmod(0o755)
    kind = f'[kinds.hears]\ncommand = ["{hears}"]\nprotocol = "lines"\n'
    async with life(tmp_path) as fleet:
        await fleet.up(project(kind, agent("lead", kind="hears", task="Keep the minutes.", **RESTARTS)))
        await fleet.until(lambda tree: tree["lead"]["tasks"]["done"] == 1)
        await fleet.call("instruct", agent="lead", text="Go on.", wait=True)
        await kill(fleet)
    async with life(tmp_path) as fleet:
        await fleet.until(lambda tree: tree["lead"]["run"] == 2 + RESUMES and tree["lead"]["state"] == "standing")
        await fleet.call("instruct", agent="lead", text="Again.", wait=True)
        transcript = home(fleet, "a1") / "transcript.jsonl"
        last = [line for line in transcript.read_text().splitlines() if line.startswith("heard")][-1]
        for words in (
            "You are lead (id a1)", "it was resumed 2 times and each time exited with 9",
            "Your brief was: Keep the minutes.", "Your last words were: the minutes are kept", str(transcript),
            "Again.",
        ):  # fmt: skip
            assert words in last
