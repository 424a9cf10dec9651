"""What a fork comes to, and every number of a refusal."""

from __future__ import annotations

import pytest
from attrs import evolve

from supervisor.core import facts
from supervisor.core.authority import Agent, Nobody
from supervisor.core.grants import Grant
from supervisor.core.ledger import NANO
from supervisor.core.refusals import Refusal
from supervisor.core.requests import Fork, Rename
from supervisor.core.spec import Role, Spec
from tests.core.play import OPERATOR, Play, agent, fleet

LEAD = agent("lead", grant=Grant(tokens=100, descendants=5), model="big", directory="/p")


def test_a_fork_is_born_with_its_brief_and_starts() -> None:
    play = Play(fleet(LEAD))
    spec = Spec("lines", task="Test it.", model="big", directory="/p", description="runs tests")
    request = Fork("Test it.", kind="lines", name="tests", description="runs tests", grant=Grant(tokens=30))
    assert play.facts(request, play.by("lead")) == [
        facts.Born("a2", "tests", "a1", spec, Grant(tokens=30), by="a1"),
        facts.Queued("a2", facts.Input("m1", "brief", "Test it.", "a1")),
        facts.Starting("a2", 1),
    ]


def test_a_person_forks_a_main_or_under_whom_they_name() -> None:
    play = Play(fleet(LEAD))
    assert play.facts(Fork(kind="lines"))[0] == facts.Born("a2", "SubAgent-01", None, Spec("lines", directory="/p"))
    below = play.facts(Fork(kind="lines", parent="LEAD"))[0]
    assert isinstance(below, facts.Born)
    assert (below.parent, below.name) == ("a1", "SubAgent-02")


def test_a_refusal_names_every_number_and_whom_to_ask() -> None:
    play = Play(fleet(agent("lead", grant=Grant(tokens=100, cost=2 * NANO))))
    play.ready("lead")
    play.facts(Fork(kind="lines", parent="lead", name="one", grant=Grant(tokens=60)))
    play.spend("lead", 15)
    assert play.refused(Fork(kind="lines", grant=Grant(tokens=30)), play.by("lead")) == Refusal(
        "budget", "lead has 25 tokens left, 30 were asked for", "tokens", 30, 100, 15, 60, "operator", "lead"
    )
    assert play.refused(Fork(kind="lines", grant=Grant(tokens=61)), play.by("one")).ask == "lead"
    money = play.refused(Fork(kind="lines", grant=Grant(cost=5 * NANO)), play.by("lead"))
    assert (money.asked, money.held, money.used, money.reserved) == (5.0, 2.0, 0.0, 0)
    assert "$5.00" in money.message


def test_a_refused_fork_leaves_no_trace_but_its_record() -> None:
    play = Play(fleet(LEAD))
    play.refused(Fork(kind="lines", grant=Grant(tokens=101)), play.by("lead"))
    assert play.project.refused == 1
    assert [*play.project.agents] == ["a1"]
    assert play.node("lead").accounts["tokens"].reserved == 0
    assert play.batches[-1][1] == (facts.Refused("fork", "budget", "lead has 100 tokens left, 101 were asked for"),)


def test_a_refusal_shows_the_beginning_of_what_was_asked_however_much_that_was() -> None:
    play = Play(fleet(LEAD))
    for asked in (Fork(kind="k" * 10**6), Fork(role="r" * 10**6), Fork(kind="lines", parent="p" * 10**6)):
        said = play.refused(asked)
        assert len(said.message) <= 1000
        assert len(str(said.asked)) <= 200


def test_ids_go_on_where_the_daemon_and_the_project_are() -> None:
    play = Play(fleet(LEAD))
    play.stamp = evolve(play.stamp, number=40)
    assert play.facts(Fork(kind="lines"))[0].agent == "a40"  # type: ignore[union-attr]  # a Born
    play.stamp = evolve(play.stamp, number=1)
    assert play.facts(Fork(kind="lines"))[0].agent == "a41"  # type: ignore[union-attr]


def test_a_seat_is_asked_for_with_what_is_to_be_held() -> None:
    play = Play(fleet(agent("lead", grant=Grant(descendants=3))))
    full = play.refused(Fork(kind="lines", grant=Grant(descendants=3)), play.by("lead"))
    assert (full.field, full.asked, full.held) == ("descendants", 4, 3)
    play.facts(Fork(kind="lines", grant=Grant(descendants=2)), play.by("lead"))
    assert play.refused(Fork(kind="lines"), play.by("lead")).field == "descendants"
    play.facts(Fork(kind="lines", parent="SubAgent-01"))
    play.facts(Fork(kind="lines", parent="SubAgent-01"))
    assert play.refused(Fork(kind="lines", parent="SubAgent-01")).used == 2


@pytest.mark.parametrize(
    ("asked", "field", "missing", "held"),
    [
        (Fork(kind="lines", grant=Grant(tools=("read", "edit", "bash"))), "tools", "edit, bash", "read"),
        (Fork(kind="other"), "kinds", "other", "lines"),
        (Fork(kind="lines", model="small"), "models", "small", "big-*"),
        (Fork(kind="lines", grant=Grant(models=("*",))), "models", "*", "big-*"),
        (Fork(kind="lines", model="big-2", grant=Grant(models=("big-1",))), "models", "big-2", "big-1"),
        (Fork(kind="lines", grant=Grant(paths=("/p/in/../../etc",))), "paths", "/p/in/../../etc", "/p"),
        (Fork(kind="lines", directory="/etc"), "paths", "/etc", "/p"),
        (Fork(kind="lines", grant=Grant(env=("SECRET",))), "env", "SECRET", ""),
        (Fork(kind="lines", grant=Grant(talk=True)), "talk", "yes", "no"),
    ],
)
def test_a_right_that_the_parent_does_not_hold_is_refused(asked: Fork, field: str, missing: str, held: str) -> None:
    limits = Grant(tools=("read",), kinds=("lines",), models=("big-*",), paths=("/p",), env=(), talk=False)
    play = Play(fleet(agent("lead", grant=limits)))
    said = play.refused(asked, play.by("lead"))
    assert (said.code, said.field, said.asked, said.held, said.ask) == ("rights", field, missing, held, "operator")


def test_what_lies_within_the_parents_rights_is_given() -> None:
    limits = Grant(tools=("read", "bash"), models=("big-*",), paths=("/p",))
    play = Play(fleet(agent("lead", grant=limits, directory="/elsewhere")))
    asked = Grant(tools=("read",), models=("big-1*", "big-2"), paths=("/p/in",))
    play.facts(Fork(kind="lines", model="big-1-x", grant=asked), play.by("lead"))
    play.facts(Fork(kind="lines", directory="/p/in"), play.by("lead"))
    # Where the parent itself stands, its child may stand too.
    play.facts(Fork(kind="lines"), play.by("lead"))


def test_one_that_may_not_fork_does_not() -> None:
    play = Play(fleet(agent("lead", grant=Grant(fork=False))))
    assert play.refused(Fork(kind="lines"), play.by("lead")).field == "fork"
    # Nor does a person under it: the grant says what lives there.
    assert play.refused(Fork(kind="lines", parent="lead")).code == "rights"


def test_children_depth_and_wall_are_bounds() -> None:
    play = Play(fleet(agent("lead", grant=Grant(children=2, depth=2, wall=60.0))))
    by = play.by("lead")
    wall = play.refused(Fork(kind="lines", grant=Grant(wall=61.0)), by)
    assert (wall.code, wall.field, wall.asked, wall.held) == ("bound", "wall", 61.0, 60.0)
    deep = play.refused(Fork(kind="lines", grant=Grant(depth=2)), by)
    assert (deep.code, deep.field, deep.asked, deep.held) == ("bound", "depth", 2, 1)
    play.facts(Fork(kind="lines", name="one"), by)
    play.facts(Fork(kind="lines", name="two", parent="one"), by)
    assert play.refused(Fork(kind="lines", parent="two"), by).field == "depth"
    play.facts(Fork(kind="lines"), by)
    many = play.refused(Fork(kind="lines"), by)
    assert (many.code, many.field, many.held, many.used) == ("bound", "children", 2, 2)


def test_the_projects_caps_are_depth_number_and_rate() -> None:
    play = Play(fleet(agent("lead"), depth=2, agents_max=3, forks_per_minute=2))
    play.facts(Fork(kind="lines", parent="lead", name="one"))
    deep = play.refused(Fork(kind="lines", parent="one"))
    assert (deep.code, deep.asked, deep.held, deep.ask) == ("depth", 3, 2, "operator")
    play.facts(Fork(kind="lines"))
    many = play.refused(Fork(kind="lines"))
    assert (many.code, many.held, many.used) == ("agents", 3, 3)
    play = Play(fleet(agent("lead"), forks_per_minute=2))
    play.stamp = evolve(play.stamp, forks=2)
    assert play.refused(Fork(kind="lines")).code == "rate"


def test_no_tree_is_deeper_than_the_nurseries_bear() -> None:
    play = Play(fleet(agent("lead"), depth=1000))
    for level in range(63):
        play.facts(Fork(kind="lines", parent="lead" if level == 0 else f"n{level - 1}", name=f"n{level}"))
    assert play.refused(Fork(kind="lines", parent="n62")).code == "depth"


@pytest.mark.parametrize(
    "grant",
    [Grant(tokens=-1), Grant(turns=-5), Grant(cost=-NANO), Grant(descendants=-2), Grant(children=-1), Grant(depth=-1),
     Grant(tokens=10**18), Grant(wall=0.0), Grant(wall=-1.0), Grant(wall=float("nan")), Grant(wall=float("inf"))],
)  # fmt: skip
def test_a_number_that_can_be_none_is_refused(grant: Grant) -> None:
    play = Play(fleet(agent("lead", grant=Grant(tokens=10))))
    assert play.refused(Fork(kind="lines", grant=grant), play.by("lead")).code == "value"
    assert play.refused(Fork(kind="lines", grant=grant)).code == "value"


def test_tasks_are_one_to_thirty_two() -> None:
    play = Play(fleet(agent("lead")))
    assert play.refused(Fork(kind="lines", max_tasks=0)).field == "max_tasks"
    assert play.refused(Fork(kind="lines", max_tasks=33)).field == "max_tasks"
    play.facts(Fork(kind="lines", max_tasks=32))


def test_made_names_are_never_made_again() -> None:
    play = Play(fleet(LEAD))
    play.facts(Fork(kind="lines"))
    # A name of that form counts in any case and however it came about, even in other people's digits.
    play.facts(Fork(kind="lines", name="subagent-5"))
    play.facts(Fork(kind="lines", name="one"))
    play.facts(Rename("one", "SUBAGENT-7"))
    play.facts(Fork(kind="lines", name="SubAgent-\u00b2"))
    play.facts(Fork(kind="lines"))
    assert [node.name for node in play.project.agents.values()] == [
        "lead", "SubAgent-01", "subagent-5", "SUBAGENT-7", "SubAgent-\u00b2", "SubAgent-08",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["lead", " LEAD ", "", "  ", "a17", "A1", "fleet", "Operator", "x" * 65, "a/b", "b:c", "*", "a\nb"]
)
def test_what_is_no_name_or_taken_is_refused(name: str) -> None:
    play = Play(fleet(LEAD))
    play.facts(Fork(kind="lines", name="other"))
    assert play.refused(Rename("other", name)).code == "name"
    if name:
        assert play.refused(Fork(kind="lines", name=name)).code == "name"


def test_a_role_is_a_template_whose_grant_is_asked_for() -> None:
    reviewer = Role(
        "reviewer", Spec("other", role="reviewer", task="Read.", max_tasks=4), Grant(tokens=80, tools=("read",))
    )
    play = Play(fleet(LEAD, roles=(reviewer,)))
    born = play.facts(Fork(role="Reviewer", name="one"), play.by("lead"))[0]
    assert isinstance(born, facts.Born)
    assert (born.spec.kind, born.spec.max_tasks, born.grant) == ("other", 4, Grant(tokens=80, tools=("read",)))
    assert play.refused(Fork(role="reviewer"), play.by("lead")).asked == 80
    play.facts(Fork(role="reviewer", grant=Grant(tokens=20)), play.by("lead"))
    assert play.refused(Fork(role="painter"), play.by("lead")).code == "unknown"
    label = play.facts(Fork(role="painter", kind="lines"), play.by("lead"))[0]
    assert isinstance(label, facts.Born)
    assert label.spec.role == "painter"


def test_a_kind_must_be_declared_and_an_agents_own_is_the_default() -> None:
    play = Play(fleet(LEAD, defaults=Spec(kind="")))
    assert play.refused(Fork(kind="odd")).asked == "odd"
    assert play.refused(Fork()).field == "kind"
    born = play.facts(Fork(), play.by("lead"))[0]
    assert isinstance(born, facts.Born)
    assert born.spec.kind == "lines"


def test_nobody_and_a_run_that_is_over_are_refused() -> None:
    play = Play(fleet(LEAD, agent("second", restart="always")))
    by = play.by("second")
    play.ready("second")
    play.exit("second")
    for caller in (Nobody("seen from afar"), Agent("project-1", "a9", 1), Agent("project-2", "a1", 1), by):
        assert play.refused(Fork(kind="lines"), caller).code == "nobody"
    play.due("second")
    assert play.refused(Fork(kind="lines"), by).code == "nobody"
    play.facts(Fork(kind="lines"), play.by("second"))


def test_an_agent_forks_under_its_own_branch_only() -> None:
    play = Play(fleet(LEAD, agent("second")))
    play.facts(Fork(kind="lines", name="child"), play.by("lead"))
    play.facts(Fork(kind="lines", parent="child"), play.by("lead"))
    assert play.refused(Fork(kind="lines", parent="lead"), play.by("child")).code == "authority"
    # Beyond the wall there is nobody of that name.
    assert play.refused(Fork(kind="lines", parent="second"), play.by("lead")).code == "unknown"


def test_nothing_is_forked_where_nothing_is_wanted() -> None:
    assert Play().refused(Fork(kind="lines"), OPERATOR).code == "down"
