"""One limit or one failed login stops all who share it, in all projects, and nobody else; they come back one by one."""

from __future__ import annotations

import os
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.core.decide.park import APART
from supervisor.core.parking import place
from supervisor.kinds.table import KINDS
from supervisor.runtime.credential import fingerprint, load
from tests.fleet import Fleet
from tests.house import eventually
from tests.limits.fleets import OWN, WORKS, elsewhere, is_parked, meets, project, shares, texts
from tests.recovery.lives import agent, alone, events, habit, kill, life, settled


def each_did_one(names: tuple[str, ...], tree: dict[str, dict[str, Any]]) -> bool:
    """Whether each of them has done one task."""
    return all(tree[name]["tasks"]["done"] == 1 for name in names)


async def two_projects(fleet: Fleet, tmp_path: Path) -> Fleet:
    """One with two agents of the shared login and one of another, and a second with one of each."""
    works = habit(tmp_path, WORKS)
    tables = shares("lead", instructions=works) + shares("kid", under="lead", instructions=works)
    await fleet.up(project("lives", tables, agent("beside", env=OWN, instructions=works)))
    other = elsewhere(fleet, tmp_path / "other")
    await other.up(project("other", shares("far", instructions=works), agent("near", env=OWN, instructions=works)))
    await settled(fleet, "lead", "kid", "beside")
    await settled(other, "far", "near")
    return other


async def test_a_quota_parks_all_who_share_the_login_in_all_projects_and_nobody_else(tier: str, tmp_path: Path) -> None:
    async with life(tmp_path, tier) as fleet:
        other = await two_projects(fleet, tmp_path)
        before = await other.tree()
        await fleet.call("instruct", agent="kid", text=meets())
        for where, name in ((fleet, "kid"), (fleet, "lead"), (other, "far")):
            is_parked(await where.state_of(name, "parked"), "quota")
        far = (await other.tree())["far"]
        assert (far["pid"], far["run"]) == (before["far"]["pid"], 1), "its program was not asked"
        assert await events(other, "Handed") == []
        for where, name in ((fleet, "beside"), (other, "near")):
            await where.call("instruct", agent=name, text="Go on.")
            await where.until(lambda tree, name=name: tree[name]["tasks"]["done"] == 1)  # type: ignore[misc]  # a lambda in a loop

        # What is new is not started and failed: it waits with the others.
        made = await other.call("fork", role="hand", name="late", parent="near", task="Go.")
        late = await other.state_of("late", "parked")
        is_parked(late, "quota")
        assert (late["pid"], late["run"]) == (None, 1)
        assert made["agent"]["id"] not in {event["agent"] for event in await events(other, "Started")}
        (told,) = [text for text in await texts(other, before["near"]["id"]) if "parked" in text]
        assert "the login that it shares takes no more for now (quota)" in told

        # A person has one tried; it does its task, and the others follow.
        (shown,) = (await fleet.json("status"))["limits"]
        assert (shown["kinds"], shown["sort"], shown["parked"]) == (["scripted"], "quota", 4)
        assert "login of scripted stopped until" in await fleet.ctl("status")
        assert "(quota), 2 parked" in await other.ctl("tree")
        await other.call("instruct", agent="far", text="Try.")
        await other.call("start", agent="far")
        await other.until(lambda tree: tree["late"]["tasks"]["done"] == tree["far"]["tasks"]["done"] == 1)
        await fleet.state_of("lead", "standing")
        assert (await fleet.json("status"))["limits"] == []
        is_parked((await fleet.tree())["kid"], "quota")  # it was told a time: a larger model may have another
        await fleet.call("start", agent="kid")
        await fleet.until(lambda tree: tree["kid"]["tasks"]["done"] == 1)
        for where in (fleet, other):
            assert {node["crashes"] for node in (await where.tree()).values()} == {0}


async def test_nothing_of_one_project_is_told_to_another(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        other = await two_projects(fleet, tmp_path)
        await fleet.call("instruct", agent="kid", text=meets())
        await other.state_of("far", "parked")
        (told,) = await events(other, "Tripped")
        assert told["elsewhere"] is True
        assert {*told} <= {"seq", "at", "by", "fact", "credential", "until", "sort", "text", "elsewhere"}
        for word in ("kid", "lives", "shared"):
            assert word not in told["credential"] + told["text"]


async def test_a_death_of_the_daemon_keeps_a_login_stopped(tier: str, tmp_path: Path) -> None:
    async with life(tmp_path, tier) as fleet:
        other = await two_projects(fleet, tmp_path)
        await fleet.call("instruct", agent="kid", text=meets(end="exit 1"))
        await other.state_of("far", "parked")
        await kill(fleet)
    async with life(tmp_path, tier) as fleet:
        other = Fleet(other.at, fleet.process, fleet.tier)
        own, far = await settled(fleet, "beside"), await settled(other, "near")
        for shown in (own["kid"], own["lead"], far["far"]):
            is_parked(shown, "quota")
            assert shown["pid"] is None
        await alone(fleet, own["beside"], far["near"])
        await other.call("instruct", agent="far", text="Try.")
        await other.call("start", agent="far")
        await fleet.state_of("lead", "standing")
        await fleet.call("start", agent="kid")
        await fleet.until(lambda tree: tree["kid"]["tasks"]["done"] == 1)


async def test_a_project_that_comes_later_is_told_what_the_others_know(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        await fleet.up(project("lives", shares("kid")))
        await settled(fleet, "kid")
        await fleet.call("instruct", agent="kid", text=meets())
        await fleet.state_of("kid", "parked")
        other = elsewhere(fleet, tmp_path / "other")
        await other.up(project("other", shares("far")))
        far = await other.state_of("far", "parked")
        is_parked(far, "quota")
        assert await events(other, "Started") == []


async def test_at_the_end_one_is_tried_first_and_the_others_follow_how_that_goes(tmp_path: Path) -> None:
    steps = f"wait file {tmp_path}/open\n{WORKS}"
    async with life(tmp_path) as fleet:
        first, others = habit(tmp_path, steps), habit(tmp_path, WORKS)
        names = ("one", "two", "three")
        tables = shares("first", instructions=first) + "".join(shares(name, instructions=others) for name in names)
        await fleet.up(project("lives", tables))
        await settled(fleet, "first", *names)
        await fleet.call("instruct", agent="first", text=meets(until="in 2s"))
        for name in names:
            await fleet.state_of(name, "parked")
        await fleet.state_of("first", "working")
        # It tries; how that goes is not known yet, and the others are not tried.
        tree = await fleet.until(lambda tree: all(tree[name]["until"] > tree["first"]["since"] + 20 for name in names))
        assert {tree[name]["state"] for name in names} == {"parked"}
        (tmp_path / "open").touch()
        await settled(fleet, "first", *names)
        woken = [event for event in await events(fleet, "Unparked") if event["agent"] != "a1"]
        assert len(woken) == 3
        assert woken[0]["at"] < woken[1]["at"] < woken[2]["at"], "one by one"


async def test_one_that_is_tried_and_meets_the_limit_again_keeps_the_others_parked(tmp_path: Path) -> None:
    async with life(tmp_path) as fleet:
        meets_again = habit(tmp_path, 'limit quota "until=in 2 hours"\nfail 429')
        await fleet.up(project("lives", shares("first", instructions=meets_again), shares("other")))
        await settled(fleet, "first", "other")
        await fleet.call("instruct", agent="first", text=meets(until="in 1s"))
        for name in ("first", "other"):
            shown = await fleet.until(
                lambda tree, name=name: (tree[name]["until"] or 0) > tree[name]["since"] + 3000  # type: ignore[misc]  # as above
            )
            assert shown[name]["state"] == "parked"
        assert {event["agent"] for event in await events(fleet, "Unparked")} == {"a1"}
        told = await events(fleet, "TaskEnded")
        assert told == []


async def test_one_failed_login_stops_the_wave(tier: str, tmp_path: Path) -> None:
    refused = habit(tmp_path, 'start:\nlimit auth "Not logged in: run /login"\nexit 1')
    async with life(tmp_path, tier) as fleet:
        names = [f"agent-{number}" for number in range(8)]
        tables = "".join(shares(name, instructions=refused, restart="on-failure") for name in names)
        await fleet.up(project("lives", tables))
        tree = await fleet.until(lambda tree: all(tree[name]["state"] == "parked" for name in names))
        for name in names:
            is_parked(tree[name], "auth")
            assert tree[name]["run"] == 1
        assert len(await events(fleet, "Started")) == 1
        assert await events(fleet, "BackedOff") == []
        (shown,) = (await fleet.json("status"))["limits"]
        assert (shown["sort"], shown["parked"]) == ("auth", 8)


async def test_two_projects_try_a_stopped_login_once_and_come_back_one_by_one(tmp_path: Path) -> None:
    works = habit(tmp_path, f"wait file {tmp_path}/open\n{WORKS}")
    async with life(tmp_path) as fleet:
        other = elsewhere(fleet, tmp_path / "other")
        mains = "".join(shares(name, instructions=works) for name in ("one", "two"))
        await fleet.up(project("lives", shares("kid"), mains))
        await other.up(project("other", "".join(shares(name, instructions=works) for name in ("three", "four"))))
        rooms = ((fleet, ("one", "two")), (other, ("three", "four")))
        await settled(fleet, "kid", "one", "two")
        await settled(other, "three", "four")
        await fleet.call("instruct", agent="kid", text=meets())
        for room, names in rooms:
            for name in names:
                await room.state_of(name, "parked")
                await room.call("instruct", agent=name, text="Go on.")
        await fleet.call("start", agent="one")
        await fleet.state_of("one", "working")
        (told,) = await events(other, "Tripped")
        assert told["elsewhere"] is True
        (tmp_path / "open").touch()
        for room, names in rooms:
            await room.until(partial(each_did_one, names))
        (mended,) = await events(fleet, "Mended")
        assert not mended.get("elsewhere")
        (behind,) = await events(other, "Mended")
        assert behind["elsewhere"] is True
        ends = [
            event["until"]
            for room, _ in rooms
            for event in await events(room, "Parked")
            if event.get("shared") and event["until"] < told["until"] - 600
        ]
        assert behind["after"] >= APART
        assert len(ends) == 3
        assert min(later - sooner for sooner, later in pairwise(sorted(ends))) >= APART / 2, "not two at once"


async def test_who_comes_due_while_another_project_tries_waits_for_how_that_goes(tmp_path: Path) -> None:
    steps = f"wait file {tmp_path}/open\n{WORKS}"
    async with life(tmp_path) as fleet:
        works = habit(tmp_path, steps)
        other = elsewhere(fleet, tmp_path / "other")
        await fleet.up(project("lives", shares("first", instructions=works)))
        await other.up(project("other", shares("far", instructions=works)))
        await settled(fleet, "first")
        await settled(other, "far")
        await fleet.call("instruct", agent="first", text=meets(until="in 3s"))
        await fleet.state_of("first", "parked")
        await other.state_of("far", "parked")
        await other.call("instruct", agent="far", text="Go on.")

        async def tried() -> set[str]:
            return {
                name
                for room, name in ((fleet, "first"), (other, "far"))
                if (await room.tree())[name]["state"] != "parked"
            }

        (first,) = await eventually(tried)
        mine, its = (other, "far") if first == "first" else (fleet, "first")
        # Its end is moved, and shown, because one of them is tried already.
        shown = await mine.until(lambda tree: (tree[its]["until"] or 0) > tree[its]["since"] + 20)
        assert shown[its]["state"] == "parked"
        assert await events(mine, "Unparked") == []
        (tmp_path / "open").touch()
        await settled(fleet, "first")
        await settled(other, "far")


async def test_one_failed_login_stops_the_wave_in_all_projects(tmp_path: Path) -> None:
    refused = habit(tmp_path, 'start:\nlimit auth "Not logged in: run /login"\nexit 1')
    async with life(tmp_path) as fleet:
        other = elsewhere(fleet, tmp_path / "other")
        names = [f"agent-{number}" for number in range(4)]
        tables = "".join(shares(name, instructions=refused, restart="on-failure") for name in names)
        async with trio.open_nursery() as nursery:
            for room, name in ((fleet, "lives"), (other, "other")):
                nursery.start_soon(room.up, project(name, tables))
        started = 0
        for room in (fleet, other):
            tree = await room.until(lambda tree: all(tree[name]["state"] == "parked" for name in names))
            for name in names:
                is_parked(tree[name], "auth")
            started += len(await events(room, "Started"))
        assert started == 1


@pytest.mark.parametrize(
    ("kind", "file", "text", "another"),
    [
        (
            "claude",
            ".claude.json",
            '{"oauthAccount": {"x": 1, "accountUuid": "%s"}, "n": %d}',
            {"CLAUDE_CONFIG_DIR": "c"},
        ),
        ("codex", ".codex/auth.json", '{"tokens":{"account_id":"%s","access_token":"%d"}}', {"CODEX_HOME": "c"}),
        ("gemini", ".gemini/google_accounts.json", '{"active":"%s","old":[%d]}', {"GEMINI_CLI_HOME": "c"}),
        ("opencode", ".local/share/opencode/auth.json", '{"a":{"key":"%s","n":%d}}', {"XDG_DATA_HOME": "c"}),
        ("pi", ".pi/agent/auth.json", '{"anthropic":{"key":"%s","n":%d}}', {"PI_CODING_AGENT_DIR": "c"}),
    ],
)
def test_two_accounts_in_one_home_are_two_logins_of_one_place(
    tmp_path: Path, kind: str, file: str, text: str, another: dict[str, str]
) -> None:
    key, where = load(tmp_path), tmp_path / "home" / file
    where.parent.mkdir(parents=True)

    def told(**more: str) -> str:
        return fingerprint(key, KINDS[kind], {"HOME": str(tmp_path / "home"), **more})

    nobody = told()
    found = []
    for account, noise in (("anna", 1), ("anna", 22), ("ben", 3)):
        where.write_text(text % (account, noise))
        found.append(told())
    anna, again, ben = found
    assert anna == again, "what else stands there, such as a token that was renewed, is nothing"
    assert len({nobody, anna, ben}) == 3
    assert {place(each) for each in (anna, ben)} == {nobody}
    assert "anna" not in anna
    assert place(told(**another)) != nobody, "another home of its own is another place"
    where.unlink()
    os.mkfifo(where)
    assert told() == nobody, "what is no file is not waited for"


def test_a_program_with_several_providers_has_a_login_for_each(tmp_path: Path) -> None:
    key, home = load(tmp_path), {"HOME": "/h"}
    for kind in (KINDS["pi"], KINDS["opencode"]):
        told = {model: fingerprint(key, kind, home, model) for model in ("a/big", "a/small", "b/big", "")}
        assert told["a/big"] == told["a/small"]
        assert len({*map(place, told.values())}) == 3
    assert fingerprint(key, KINDS["claude"], home, "a/x") == fingerprint(key, KINDS["claude"], home)


def test_a_login_is_told_by_what_the_kind_names_and_by_the_key_of_this_machine(tmp_path: Path) -> None:
    pi, key = KINDS["pi"], load(tmp_path)
    there = fingerprint(key, pi, {"HOME": "/h", "ANTHROPIC_API_KEY": "secret", "EDITOR": "vi"})
    assert there == fingerprint(key, pi, {"HOME": "/h", "ANTHROPIC_API_KEY": "secret", "EDITOR": "ed"})
    others = [
        fingerprint(key, pi, {"HOME": "/h", "ANTHROPIC_API_KEY": "other"}),
        fingerprint(key, pi, {"HOME": "/h", "OPENAI_API_KEY": "secret"}),
        fingerprint(key, pi, {"HOME": "/other", "ANTHROPIC_API_KEY": "secret"}),
        fingerprint(key, pi, {"HOME": "/h"}),
        fingerprint(os.urandom(32), pi, {"HOME": "/h", "ANTHROPIC_API_KEY": "secret"}),
    ]
    assert len({there, *others}) == 6
    assert all(len(each) == 16 and "secret" not in each for each in (there, *others))


def test_a_program_that_may_be_anything_has_a_login_only_where_it_says_so(tmp_path: Path) -> None:
    lines, key = KINDS["lines"], load(tmp_path)
    assert fingerprint(key, lines, {"HOME": "/h", "SOME_KEY": "x"}) == ""
    assert fingerprint(key, lines, {"HOME": "/h", "FLEET_LOGIN": "x"}) != ""
