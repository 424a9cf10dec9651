"""`up` and `reload`: only what a file changes changes anything, and a file that cannot be changes nothing."""

from __future__ import annotations

from attrs import evolve

from supervisor.core import facts
from supervisor.core.grants import Grant
from supervisor.core.requests import Disband, Fork, Hold, Rename, Start, Stop
from supervisor.core.save import as_fleet
from supervisor.core.spec import Fleet, KindSpec
from tests.core.play import KINDS, Play, accept, agent, fleet

SCRIBE = agent("scribe", grant=Grant(tokens=40))
LEAD = agent("lead", SCRIBE, grant=Grant(tokens=100, tools=("read", "bash")))
SECOND = agent("second")
CONTENT = fleet(LEAD, SECOND)


def up(content: Fleet = CONTENT) -> Play:
    """The file runs, and everyone stands by."""
    play = Play(content)
    play.ready(*[node.name for node in play.project.agents.values()])
    return play


def test_a_first_up_starts_everything_parents_first() -> None:
    play = Play()
    taken = play.facts(accept(CONTENT))
    assert taken[0] == facts.Accepted("/p/agents.toml", accept(CONTENT).sha256, "/bin", CONTENT)
    assert taken[1:] == [
        facts.Born("a1", "lead", None, LEAD.spec, LEAD.grant, declared=True),
        facts.Starting("a1", 1),
        facts.Born("a2", "scribe", "a1", SCRIBE.spec, SCRIBE.grant, declared=True),
        facts.Starting("a2", 1),
        facts.Born("a3", "second", None, SECOND.spec, declared=True),
        facts.Starting("a3", 1),
    ]
    assert play.facts(accept(CONTENT)) == [], "the same content again is nothing"


def test_only_what_changed_restarts() -> None:
    play = up()
    changed = agent("scribe", grant=Grant(tokens=40), model="other")
    assert play.facts(accept(fleet(evolve(LEAD, children=(changed,)), SECOND)))[1:] == [
        facts.Respecified("a2", changed.spec),
        facts.Rerun("a2", 1),
    ]


def test_how_an_agent_is_kept_changes_without_a_restart() -> None:
    play = up()
    kept = agent("second", restart="always", max_tasks=3, description="new", stop_grace=1.0)
    assert play.facts(accept(fleet(LEAD, kept)))[1:] == [facts.Respecified("a3", kept.spec)]
    play.exit("second", 0)
    assert play.node("second").state == "backoff", "and holds at once"


def test_what_is_new_starts_and_what_is_missing_ends() -> None:
    play = up()
    third, clerk = agent("third"), agent("clerk")
    taken = play.facts(accept(fleet(evolve(LEAD, children=(SCRIBE, clerk)), third)))
    assert taken[1:] == [
        facts.Leaving("a3", "gone", "reload", "operator"),
        facts.Born("a4", "clerk", "a1", clerk.spec, declared=True),
        facts.Starting("a4", 1),
        facts.Born("a5", "third", None, third.spec, declared=True),
        facts.Starting("a5", 1),
    ]


def test_a_changed_kind_restarts_those_who_are_of_it() -> None:
    play = up(fleet(LEAD, evolve(SECOND, spec=evolve(SECOND.spec, kind="other"))))
    kinds = (KINDS[0], KindSpec("other", "lines", ("another", "program")))
    assert play.facts(accept(evolve(play.project.fleet or CONTENT, kinds=kinds)))[1:] == [facts.Rerun("a3", 1)]


def test_what_was_forked_is_left_alone() -> None:
    play = up()
    play.facts(Fork(kind="lines", name="one", parent="lead"))
    assert play.facts(accept(fleet(evolve(LEAD, spec=evolve(LEAD.spec, max_tasks=9)), SECOND)))[1:] == [
        facts.Respecified("a1", evolve(LEAD.spec, max_tasks=9))
    ]
    assert play.node("one").live


def test_what_was_granted_and_renamed_since_stays_unless_the_file_changes_it() -> None:
    play = up()
    play.facts(Hold("lead", Grant(tokens=500)))
    play.facts(Rename("lead", "boss"))
    tools = evolve(LEAD, grant=evolve(LEAD.grant, tools=("read",)))
    assert play.facts(accept(fleet(tools, SECOND)))[1:] == [facts.Granted("a1", Grant(tokens=500, tools=("read",)))]
    fewer = evolve(tools, grant=evolve(tools.grant, tokens=60))
    assert play.facts(accept(fleet(fewer, SECOND)))[1:] == [facts.Granted("a1", Grant(tokens=60, tools=("read",)))]
    assert play.node("boss").id == "a1"


def test_a_renamed_agent_is_known_by_the_name_it_is_declared_under() -> None:
    play = up()
    play.facts(Rename("second", "other"))
    play.facts(Disband("other"))
    play.exit("other")
    assert play.facts(accept(fleet(LEAD, SECOND, agent("third"))))[1:] == [
        facts.Born("a4", "third", None, agent("third").spec, declared=True),
        facts.Starting("a4", 1),
    ]
    assert play.facts(Start("other"))[0] == facts.Born("a5", "second", None, SECOND.spec, declared=True)


def test_a_saved_file_means_those_who_run_under_their_present_names() -> None:
    play = up()
    play.facts(Rename("second", "other"))
    play.facts(Fork(kind="lines", name="one", parent="lead", grant=Grant(tokens=5)))
    saved = as_fleet(play.project, CONTENT)
    assert [entry.name for entry in saved.agents] == ["lead", "other"]
    assert [entry.name for entry in saved.agents[0].children] == ["scribe", "one"]
    # What was forked is no declared agent: its name is taken until it is gone.
    assert play.refused(accept(saved)).code == "name"
    play.facts(Disband("one"))
    play.exit("one")
    taken = play.facts(accept(saved))
    assert facts.Respecified("a3", SECOND.spec, "other") in taken
    assert not any(isinstance(fact, facts.Leaving | facts.Rerun) for fact in taken)
    # From now on that is its entry, and the old name is free for another.
    both = evolve(saved, agents=(*saved.agents, SECOND))
    assert [fact.name for fact in play.facts(accept(both)) if isinstance(fact, facts.Born)] == ["second"]


def test_a_file_in_which_a_child_holds_more_than_its_parent_changes_nothing() -> None:
    play = up()
    for wrong in (Grant(tokens=101), Grant(tools=("edit",))):
        said = play.refused(accept(fleet(evolve(LEAD, children=(agent("scribe", grant=wrong),)), agent("third"))))
        assert said.code in ("budget", "rights")
    assert play.project.fleet == CONTENT
    assert sorted(play.project.names) == ["lead", "scribe", "second"]


def test_budgets_move_within_a_branch_in_one_file() -> None:
    play = up()
    less = fleet(evolve(LEAD, children=(agent("scribe", grant=Grant(tokens=10)),), grant=Grant(tokens=20)), SECOND)
    assert play.facts(accept(less))[1:] == [
        facts.Granted("a2", Grant(tokens=10)),
        facts.Granted("a1", Grant(tokens=20, tools=("read", "bash"))),
        facts.Granted("a1", Grant(tokens=20)),
    ], "the child's first, or the parent would hold less than it gave away"
    more = fleet(evolve(LEAD, children=(agent("scribe", grant=Grant(tokens=900)),), grant=Grant(tokens=1000)), SECOND)
    assert [fact.agent for fact in play.facts(accept(more)) if isinstance(fact, facts.Granted)] == ["a1", "a2"]


def test_less_than_is_used_already_is_refused() -> None:
    play = up()
    play.spend("scribe", 30)
    said = play.refused(accept(fleet(evolve(LEAD, children=(agent("scribe", grant=Grant(tokens=20)),)), SECOND)))
    assert (said.code, said.asked, said.used) == ("value", 20, 30)


def test_a_limit_that_is_taken_out_of_the_file_is_no_limit() -> None:
    play = up()
    play.facts(Fork(kind="lines", name="one", parent="scribe", grant=Grant(tokens=15)))
    play.spend("scribe", 5)
    play.facts(accept(fleet(evolve(LEAD, children=(agent("scribe"),)), SECOND)))
    assert play.node("scribe").accounts == {}
    assert play.node("one").accounts["tokens"].holder == "a1"
    account = play.node("lead").accounts["tokens"]
    assert (account.spent, account.reserved) == (5, 15)


def test_names_and_depth_of_a_whole_file_are_checked() -> None:
    play = up()
    assert play.refused(accept(fleet(LEAD, SECOND, agent("third", agent("THIRD"))))).code == "name"
    assert play.refused(accept(fleet(LEAD, SECOND, agent("a1")))).code == "name"
    assert play.refused(accept(fleet(agent("top", LEAD), SECOND, depth=2))).code == "name", "it still has its name"
    deep = fleet(LEAD, agent("third", agent("fourth", agent("fifth"))), depth=2)
    assert play.refused(accept(deep)).code == "depth"
    assert play.refused(accept(fleet(LEAD, SECOND, agent("third"), agents_max=3))).code == "agents"
    assert play.refused(accept(fleet(LEAD, agent("third", max_tasks=40)))).field == "max_tasks"


def test_what_leaves_still_holds_what_a_file_wants() -> None:
    play = up()
    moved = fleet(evolve(LEAD, children=(agent("clerk", grant=Grant(tokens=70)),)), SECOND)
    assert play.refused(accept(moved)).reserved == 40, "it returns when the scribe is gone, not before"
    play.facts(accept(fleet(evolve(LEAD, children=()), SECOND)))
    assert play.refused(accept(CONTENT)).message == "scribe is still stopping"
    play.exit("scribe")
    play.facts(accept(moved))
    assert play.node("clerk").live


def test_what_was_stopped_stays_stopped_and_starts_with_what_was_declared_meanwhile() -> None:
    play = up()
    play.facts(Stop("lead"))
    play.exit("scribe")
    play.exit("lead")
    clerk = agent("clerk")
    assert play.facts(accept(fleet(evolve(LEAD, children=(SCRIBE, clerk)), SECOND)))[1:] == []
    assert play.facts(Start("lead")) == [
        facts.Starting("a1", 2, resume=True),
        facts.Starting("a2", 2, resume=True),
        facts.Born("a4", "clerk", "a1", clerk.spec, declared=True),
        facts.Starting("a4", 1),
    ]


def test_one_that_follows_stands_for_the_same_entry() -> None:
    play = Play(fleet(agent("lead", max_tasks=1, replace=True, task="Begin.")))
    play.ready("lead")
    play.facts(Rename("lead", "boss"))
    play.end_turn("boss")
    play.exit("boss")
    assert (play.node("boss").id, play.node("boss").entry) == ("a2", "lead")
    changed = agent("lead", max_tasks=2, replace=True, task="Begin.")
    assert play.facts(accept(fleet(changed)))[1:] == [facts.Respecified("a2", changed.spec)]


def test_a_file_is_the_operators_alone() -> None:
    play = up()
    assert play.refused(accept(CONTENT), play.by("lead")).code == "authority"
