"""Who is meant by a text, and what a caller may know of: names, parts of names, roles, old names and walls."""

from __future__ import annotations

import pytest

from supervisor.core import facts, spending, view
from supervisor.core.decide.gate import reach
from supervisor.core.grants import Grant
from supervisor.core.names import fault
from supervisor.core.refusals import RefusedError
from supervisor.core.requests import Disband, Fork, Hold, Instruct, Rename, Restarting, Start, Stop
from supervisor.core.spec import Wall
from supervisor.core.tree import FORMER
from tests.core.play import OPERATOR, Play, agent, fleet


def crew(wall: Wall = "mains") -> Play:
    """Two instances: `lead` with `tests`, `tester` and `reviewer`, and `second` with `scribe`."""
    play = Play(
        fleet(
            agent("lead", agent("tests"), agent("tester", role="checker"), agent("Reviewer One", role="reviewer")),
            agent("second", agent("scribe", role="writer")),
            agent_talk=wall,
        )
    )
    play.ready("lead", "tests", "tester", "Reviewer One", "second", "scribe")
    return play


def meant(play: Play, text: str, by: str = "", verb: str = "instruct") -> str:
    """The name of who is meant, or the refusal's code."""
    try:
        return reach(play.project, play.by(by) if by else OPERATOR, text, verb).name
    except RefusedError as no:
        return no.refusal.code


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("a2", "tests"), ("A2", "tests"), (" tests ", "tests"), ("TESTS", "tests"), ("tester", "tester"),
        ("rev", "Reviewer One"), ("er one", "Reviewer One"), ("test", "ambiguous"), ("role:checker", "tester"),
        ("ROLE: Reviewer", "Reviewer One"), ("role:", "unknown"), ("role:painter", "unknown"), ("", "unknown"),
        ("a99", "unknown"),
    ],
)  # fmt: skip
def test_a_target_is_an_id_a_name_a_unique_part_or_a_role(text: str, who: str) -> None:
    assert meant(crew(), text) == who


@pytest.mark.parametrize("verb", ["stop", "start", "restart", "disband", "grant", "rename"])
def test_what_ends_or_changes_somebody_takes_no_part_of_a_name(verb: str) -> None:
    assert meant(crew(), "rev", verb=verb) == "unknown"
    assert meant(crew(), "reviewer one", verb=verb) == "Reviewer One"


def test_several_are_listed_with_their_ids() -> None:
    said = crew().refused(Instruct("test", "Go."))
    assert said.message == "test could be any of tests (a2), tester (a3); name one by its id"


def test_an_old_name_is_refused_with_the_new_one_until_somebody_has_it() -> None:
    play = crew()
    assert play.facts(Rename("tests", "checks")) == [facts.Renamed("a2", "checks", "tests")]
    assert play.refused(Instruct("tests", "Go.")).message == "tests is now called checks (a2)"
    play.facts(Rename("checks", "trials"))
    assert play.refused(Stop("TESTS")).message == "TESTS is now called trials (a2)"
    play.facts(Fork(kind="lines", name="tests", parent="lead"))
    assert meant(play, "tests") == "tests"
    assert play.refused(Rename("trials", "tests")).code == "name"


def test_a_name_in_another_case_is_the_agents_own() -> None:
    play = crew()
    assert play.facts(Rename("tests", "Tests")) == [facts.Renamed("a2", "Tests", "tests")]
    assert play.facts(Rename("tests", " Tests ")) == []
    play.facts(Disband("tests"))
    play.exit("tests")
    assert play.refused(Instruct("tests", "Go.")).code == "state", "it is gone, and not called otherwise"


def test_a_name_goes_back_and_forth() -> None:
    play = crew()
    play.facts(Rename("tests", "checks"))
    play.facts(Rename("checks", "tests"))
    assert meant(play, "tests") == "tests"
    assert play.refused(Instruct("checks", "Go.")).code == "renamed"


def test_old_names_are_remembered_up_to_a_number() -> None:
    play = crew()
    for number in range(FORMER + 3):
        play.facts(Rename("a2", f"n{number}"))
    assert len(play.project.former) == FORMER


def test_a_name_is_free_again_when_its_agent_is_gone_and_still_means_the_last_who_had_it() -> None:
    play = crew()
    play.facts(Disband("scribe"))
    assert (
        play.refused(Fork(kind="lines", name="scribe")).message == "scribe is the name of a6, which is still stopping"
    )
    play.exit("scribe")
    assert play.refused(Instruct("scribe", "Go.")).held == "gone"
    play.facts(Fork(kind="lines", name="Scribe"))
    assert meant(play, "scribe") == "Scribe"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "empty"), (" x", "white space"), ("x" * 65, "64"), ("a\u200bb", "control"), ("a\x1b[31m", "control"),
        ("\ud800", "control"), ("a*", "/ : *"), ("a1", "id"), ("A999", "id"), ("Person", "own"),
        ("--all", "option"), ("-", "option"),
    ],
)  # fmt: skip
def test_what_can_be_no_name(name: str, why: str) -> None:
    assert why in fault(name)


@pytest.mark.parametrize("name", ["a", "alpha", "a1b", "x" * 64, "名前", "Élise", "vault-master", "SubAgent-01"])
def test_what_can_be_a_name(name: str) -> None:
    assert fault(name) == ""


# --- walls and reach


def test_an_agent_of_another_instance_sees_nothing_not_even_a_hint() -> None:
    play = crew()
    for text in ("second", "scribe", "a6", "role:writer", "scr"):
        said = play.refused(Instruct(text, "Go."), play.by("lead"))
        assert (said.code, said.message) == ("unknown", f"there is no agent {text!r} in this project")
    play.facts(Rename("scribe", "writer"))
    assert play.refused(Instruct("scribe", "Go."), play.by("lead")).code == "unknown"
    seen = view.tree(play.project, play.by("lead"), "warden", 0.0)["agents"]
    assert [one["name"] for one in seen] == ["lead"]
    for name in ("lead", "second", "writer"):
        play.ready(name)
        play.spend(name, 5)
    rows = spending.spending(play.project, play.by("second"), 0.0)["agents"]
    assert {row["name"] for row in rows} == {"second", "writer"}


def test_the_widest_wall_shows_all_and_still_gives_no_authority() -> None:
    play = crew("project")
    assert meant(play, "scribe", by="lead", verb="tree") == "scribe"
    assert play.refused(Instruct("scribe", "Go."), play.by("lead")).code == "authority"


@pytest.mark.parametrize("verb", ["instruct", "stop", "start", "restart", "disband", "grant"])
def test_these_reach_strictly_below(verb: str) -> None:
    play = crew()
    assert meant(play, "tests", by="lead", verb=verb) == "tests"
    for target in ("tests", "lead", "tester"):
        assert meant(play, target, by="tests", verb=verb) == "authority"


def test_an_agent_renames_itself_too() -> None:
    play = crew()
    play.facts(Rename("tests", "checks"), play.by("tests"))
    said = play.refused(Rename("lead", "boss"), play.by("checks"))
    assert (said.code, said.message, said.ask) == (
        "authority",
        "you may not rename lead (a1), which is not below you",
        "operator",
    )


@pytest.mark.parametrize("verb", ["usage", "logs"])
def test_an_agent_looks_into_its_own_branch(verb: str) -> None:
    play = crew()
    assert meant(play, "tests", by="tests", verb=verb) == "tests"
    assert meant(play, "tests", by="lead", verb=verb) == "tests"
    assert meant(play, "lead", by="tests", verb=verb) == "authority"


def test_the_tree_is_read_as_far_as_one_sees() -> None:
    play = crew()
    for target in ("tests", "lead", "tester"):
        assert meant(play, target, by="tests", verb="tree") == target
    assert meant(play, "second", by="tests", verb="tree") == "unknown"


def test_whatever_is_asked_of_oneself_is_refused() -> None:
    play = crew()
    for asked in (Stop("tests"), Start("tests"), Restarting("tests"), Disband("tests"), Hold("tests", Grant(tokens=1))):
        said = play.refused(asked, play.by("tests"))
        assert (said.code, said.ask) == ("authority", "lead")
        assert said.message.endswith("yourself")
