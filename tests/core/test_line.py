"""A fork that may wait stands in line for room, in the order of asking, and is looked at anew when it is its turn."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from supervisor.core import facts, view
from supervisor.core.authority import Agent, Principal
from supervisor.core.decide import room
from supervisor.core.grants import Grant
from supervisor.core.requests import Disband, Down, Fork, Hold, Start, Stop
from tests.core.play import OPERATOR, Play, accept, agent, fleet


def crowded(children: int = 1, **settings: Any) -> Play:
    """`lead`, which may have so many children and has them: `c0`, `c1`, …"""
    play = Play(fleet(agent("lead", grant=Grant(children=children)), agent("other"), **settings))
    play.ready("lead", "other")
    for number in range(children):
        play.facts(Fork(kind="lines", parent="lead", name=f"c{number}"))
        play.ready(f"c{number}")
    return play


def line_up(play: Play, by: Principal = OPERATOR, **asked: Any) -> Fork:
    """A fork under `lead` that waits; the request with which it asks again."""
    request = evolve(Fork(kind="lines", parent="lead", queue=True), **asked)
    (waits,) = play.facts(request, by)
    assert isinstance(waits, facts.LinedUp)
    return evolve(request, place=waits.place)


def leave(play: Play, name: str) -> list[facts.Fact]:
    """Disbanded, and ended."""
    node = play.node(name)
    return [*play.facts(Disband(node.id)), *play.exit(node.id)]


def test_a_fork_that_may_wait_waits_where_room_is_all_that_is_missing() -> None:
    play = crowded()
    waits = Fork(kind="lines", queue=True)
    assert play.facts(waits, play.by("lead")) == [facts.LinedUp("q1", "a1", 1, "a1", "children", "a1", 1)]
    assert play.facts(evolve(waits, place="q1"), play.by("lead")) == [], "it goes on waiting where it is"
    assert not room.due(play.project, "q1")
    leave(play, "c0")
    assert room.due(play.project, "q1")
    taken = play.facts(evolve(waits, place="q1"), play.by("lead"))
    assert taken[0] == facts.OutOfLine("q1", "born")
    assert isinstance(taken[1], facts.Born)
    assert play.project.line == {}


def test_who_asked_first_goes_first_and_nobody_passes_them() -> None:
    play = crowded(2)
    first, second = line_up(play), line_up(play)
    leave(play, "c0")
    assert not room.due(play.project, second.place)
    assert play.facts(second) == [], "the first one's room is not the second one's"
    refused = play.refused(Fork(kind="lines", parent="lead"))
    assert (refused.field, refused.held, refused.used, refused.reserved) == ("children", 2, 1, 2)
    play.facts(first)
    leave(play, "c1")
    play.facts(second)


def test_a_large_fork_is_not_starved_by_small_ones() -> None:
    play = Play(fleet(agent("lead", grant=Grant(descendants=4))))
    play.ready("lead")
    for number in range(4):
        play.facts(Fork(kind="lines", parent="lead", name=f"c{number}"))
        play.ready(f"c{number}")
    large = line_up(play, grant=Grant(descendants=2))
    small = line_up(play)
    leave(play, "c0")
    leave(play, "c1")
    assert play.facts(large) == []
    assert play.facts(small) == []
    said = play.refused(Fork(kind="lines", parent="lead"))
    assert (said.held, said.used, said.reserved, said.asked) == (4, 2, 4, 1)
    leave(play, "c2")
    play.facts(large)
    leave(play, "c3")
    play.facts(small)


def test_who_waits_for_something_else_is_passed() -> None:
    play = crowded(1, agents_max=4)
    play.facts(Fork(kind="lines", name="last"))
    waits = line_up(play)
    elsewhere = line_up(play, parent="other")
    assert [place.field for place in play.project.line.values()] == ["agents", "agents"]
    leave_it = play.node("last").id
    play.facts(Disband(leave_it))
    play.exit(leave_it)
    # Its turn for the one, and then another limit holds it: the next one has what it cannot use.
    assert room.due(play.project, waits.place)
    since = play.project.line["q1"].since
    assert play.facts(waits) == [facts.LinedUp("q1", "operator", 0, "a1", "children", "a1", 1)]
    assert play.project.line["q1"].since == since, "it has waited as long as before"
    play.facts(elsewhere)
    assert [*play.project.line] == ["q1"]


def test_what_could_never_have_room_is_refused_at_once() -> None:
    play = Play(fleet(agent("lead", grant=Grant(descendants=1, children=1))))
    assert play.refused(Fork(kind="lines", parent="lead", queue=True, grant=Grant(descendants=1))).code == "budget"
    play.facts(Hold("lead", Grant(children=0)))
    assert play.refused(Fork(kind="lines", parent="lead", queue=True)).code == "bound"


def test_only_for_room_is_waited() -> None:
    limits = Grant(children=0, depth=1, tokens=5, kinds=("lines",))
    play = Play(fleet(agent("lead", grant=limits), forks_per_minute=2))
    for asked, code in (
        (Fork(kind="lines", parent="lead", queue=True, grant=Grant(tokens=6)), "budget"),
        (Fork(kind="lines", parent="lead", queue=True, grant=Grant(depth=1)), "bound"),
        (Fork(kind="other", parent="lead", queue=True), "rights"),
        (Fork(kind="lines", parent="lead", queue=True, name="lead"), "name"),
    ):
        assert play.refused(asked).code == code
    play.stamp = evolve(play.stamp, forks=2)
    assert play.refused(Fork(kind="lines", parent="lead", queue=True)).code == "rate"


def test_a_fork_that_has_waited_is_admitted_anew_and_refused_for_what_it_may_no_longer() -> None:
    play = crowded()
    waits = line_up(play, play.by("lead"), parent="", name="late")
    play.facts(Hold("lead", Grant(fork=False)))
    leave(play, "c0")
    assert room.due(play.project, waits.place)
    assert play.refused(waits, play.by("lead")).code == "rights"
    play.facts(Hold("lead", Grant(fork=True)))
    play.facts(Fork(kind="lines", name="late"))
    assert play.refused(waits, play.by("lead")).code == "name"


def test_the_rate_counts_a_fork_when_it_is_asked_for_and_not_again() -> None:
    play = crowded(forks_per_minute=2)
    waits = line_up(play)
    leave(play, "c0")
    play.stamp = evolve(play.stamp, forks=2)
    play.facts(waits)


def test_whoever_stops_waiting_lets_the_next_one_pass() -> None:
    play = Play(fleet(agent("lead", grant=Grant(descendants=2))))
    play.ready("lead")
    play.facts(Fork(kind="lines", parent="lead", name="c0"))
    large = line_up(play, grant=Grant(descendants=1))
    small = line_up(play)
    assert not room.due(play.project, small.place)
    play.tell(facts.OutOfLine(large.place, "asker"))
    assert room.due(play.project, small.place)
    play.facts(small)
    assert play.tell(facts.OutOfLine(large.place, "asker")) == []
    assert play.refused(large).field == "line"


def test_the_end_of_its_parent_ends_the_wait() -> None:
    for how in (Disband("lead"), Stop("lead"), Down()):
        play = crowded()
        waits = line_up(play)
        assert facts.OutOfLine(waits.place, "parent") in play.facts(how) or play.project.line == {}
        refusal = play.refused(waits)
        assert refusal.code in ("state", "down")
        assert play.project.line == {}


def test_the_end_of_the_run_that_asked_ends_the_wait() -> None:
    play = Play(fleet(agent("lead", agent("below", grant=Grant(children=0)), restart="always")))
    play.ready("lead", "below")
    play.facts(Hold("below", Grant(children=1)))
    play.facts(Fork(kind="lines", parent="below"))
    waits = line_up(play, play.by("lead"), parent="below")
    by = play.by("lead")
    assert facts.OutOfLine(waits.place, "asker") in play.exit("lead")
    assert play.refused(waits, by).code == "nobody"


def test_a_place_that_was_given_up_is_not_taken_up_again() -> None:
    play = crowded()
    waits = line_up(play)
    play.facts(Stop("lead"))
    play.exit("c0")
    play.exit("lead")
    play.facts(Start("lead"))
    assert play.refused(waits).field == "line"


def test_another_daemon_knows_of_nobody_who_waits() -> None:
    play = crowded()
    line_up(play)
    play.reopen()
    assert play.project.line == {}
    assert line_up(play).place == "q2", "a place is never used twice"


def test_declared_agents_wait_for_nobody_and_nothing_is_lost_for_who_waits() -> None:
    play = crowded()
    waits = line_up(play)
    content = fleet(agent("lead", agent("scribe"), grant=Grant(children=2)), agent("other"))
    play.facts(accept(content))
    assert play.facts(waits) == []
    play.facts(Hold("lead", Grant(children=3)))
    play.facts(waits)


def test_the_line_is_bounded() -> None:
    play = crowded()
    for _ in range(room.LONGEST_LINE):
        line_up(play)
    refused = play.refused(Fork(kind="lines", parent="lead", queue=True))
    assert (refused.code, refused.field, refused.used) == ("bound", "line", room.LONGEST_LINE)


def test_who_waits_is_shown_to_those_who_may_know() -> None:
    play = crowded()
    line_up(play, play.by("lead"), parent="")
    since = play.stamp.at
    shown = view.tree(play.project, OPERATOR, "warden", 5e3)["line"]
    lead = {"id": "a1", "name": "lead"}
    assert shown == [
        {"place": "q1", "by": "a1", "parent": lead, "limit": "children", "holder": lead, "asked": 1, "since": since}
    ]
    assert view.tree(play.project, play.by("lead"), "warden", 5e3)["line"] == shown
    assert view.tree(play.project, play.by("other"), "warden", 5e3)["line"] == []
    assert isinstance(play.by("other"), Agent)


# --- what is free again, and when (docs/limits.md)


def test_who_stands_by_counts() -> None:
    play = crowded()
    assert play.node("c0").state == "standing"
    assert play.refused(Fork(kind="lines", parent="lead")).used == 1


def test_a_stopped_agent_counts_as_a_child_and_as_a_descendant_and_not_among_the_projects_agents() -> None:
    play = Play(fleet(agent("lead", grant=Grant(children=1)), agent("wide", grant=Grant(descendants=1)), agents_max=4))
    play.ready("lead", "wide")
    for parent in ("lead", "wide"):
        play.facts(Fork(kind="lines", parent=parent, name=f"of-{parent}"))
    assert play.refused(Fork(kind="lines")).code == "agents"
    for parent, field in (("lead", "children"), ("wide", "descendants")):
        play.facts(Stop(f"of-{parent}"))
        play.exit(f"of-{parent}")
        assert play.refused(Fork(kind="lines", parent=parent)).field == field
    play.facts(Fork(kind="lines"))


def test_one_that_is_leaving_counts_until_it_is_gone() -> None:
    play = crowded()
    waits = line_up(play)
    play.facts(Disband("c0"))
    assert play.facts(waits) == []
    play.exit("c0")
    play.facts(waits)


def test_a_release_frees_its_place_with_the_fact_that_it_is_gone() -> None:
    play = Play(fleet(agent("lead", grant=Grant(children=1, descendants=1)), agents_max=2))
    play.ready("lead")
    play.facts(Fork("Go.", kind="lines", parent="lead", name="c0", max_tasks=1))
    play.ready("c0")
    waits = line_up(play)
    play.end_turn("c0", "Done.")
    assert play.node("c0").state == "stopping"
    assert facts.Left("a2", "gone") in play.exit("c0")
    play.facts(waits)


def test_raising_a_limit_takes_effect_at_once_for_those_who_wait_too() -> None:
    play = crowded()
    waits = line_up(play)
    play.facts(Hold("lead", Grant(children=2)))
    play.facts(waits)
    play = crowded(1, agents_max=3)
    waits = line_up(play, parent="other")
    content = play.project.fleet
    assert content is not None
    play.facts(accept(evolve(content, agents_max=4)))
    play.facts(waits)


def test_lowering_a_limit_ends_a_wait_that_cannot_end_otherwise() -> None:
    play = Play(fleet(agent("lead", grant=Grant(descendants=3))))
    play.ready("lead")
    play.facts(Fork(kind="lines", parent="lead", name="c0"))
    play.facts(Fork(kind="lines", parent="lead", name="c1"))
    large = line_up(play, grant=Grant(descendants=2))
    play.facts(Hold("lead", Grant(descendants=2)))
    assert room.due(play.project, large.place)
    assert play.refused(large).code == "budget"
