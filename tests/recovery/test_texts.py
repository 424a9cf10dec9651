"""What the core makes of a run that ends: which texts return to wait, what that costs, and when a conversation is given
up."""

from __future__ import annotations

import pytest

from supervisor.core import facts
from supervisor.core.decide.run import CRASHES, RESUMES, SETTLED
from supervisor.core.facts import Fact
from supervisor.core.grants import Grant
from supervisor.core.requests import Disband, Fork, Instruct, Restarting, Start, Stop
from tests.core.play import Play, agent, fleet


def begin(play: Play, name: str, *, tells: bool = True) -> list[Fact]:
    """Its program takes input, and tells what it begins with."""
    node = play.node(name)
    return play.tell(facts.Ready(node.id, node.run, "s", tells=tells))


def lead(*, tells: bool = True, grant: Grant = Grant(), **spec: object) -> Play:
    """`lead`, ready, with one task handed to it."""
    play = Play(fleet(agent("lead", grant=grant, restart="on-failure", **spec)))
    begin(play, "lead", tells=tells)
    play.facts(Instruct("lead", "Go."))
    return play


def again(play: Play, name: str = "lead") -> list[Fact]:
    """Its run dies, the next one is ready."""
    play.exit(name, 1)
    play.due(name)
    return begin(play, name)


def named(taken: list[Fact], kind: type) -> list[Fact]:
    """The facts of one sort."""
    return [fact for fact in taken if isinstance(fact, kind)]


def test_what_was_not_begun_with_is_given_again_marked_and_paid_once() -> None:
    play = lead(grant=Grant(turns=1))
    node = play.node("lead")
    assert (node.own.turns, node.accounts["turns"].free) == (1, 0)
    (handed,) = named(again(play), facts.Handed)
    assert handed == facts.Handed("a1", 2, ("m1", "m2"), turn=True, introduce=True), (
        "and the word that turns are used up"
    )
    assert (node.handed[0].again, node.own.turns, node.accounts["turns"].spent) == (True, 1, 1)
    assert node.tasks == 0
    play.tell(facts.Read("a1", 2, ("m1",)))
    assert play.end_turn("lead")[-1] == facts.TaskEnded("a1", "done")


def test_what_was_begun_with_is_not_given_again() -> None:
    play = lead()
    play.tell(facts.Read("a1", 1, ("m1",)))
    taken = play.exit("lead", 1)
    assert named(taken, facts.Returned) == []
    assert named(taken, facts.TaskEnded) == [facts.TaskEnded("a1", "interrupted")]
    play.due("lead")
    assert named(begin(play, "lead"), facts.Handed) == []
    assert play.node("lead").introduced


def test_of_several_texts_those_return_that_were_not_begun_with_in_their_order() -> None:
    play = Play(fleet(agent("lead", restart="on-failure")))
    play.facts(Fork(kind="lines", name="kid", parent="lead"))
    play.tell(facts.Unstarted("a2", 1, "not there"))  # a digest waits
    play.facts(Instruct("lead", "Go."))
    play.facts(Instruct("lead", "Then go on."))
    (handed,) = named(begin(play, "lead"), facts.Handed)
    assert isinstance(handed, facts.Handed)
    digest, task = handed.inputs
    play.tell(facts.Read("a1", 1, (digest,)))
    assert play.exit("lead", 1)[1] == facts.Returned("a1", (task,))
    assert [item.text for item in play.node("lead").inbox] == ["Go.", "Then go on."]
    assert play.node("lead").own.turns == 1
    play.due("lead")
    begin(play, "lead")
    assert play.node("lead").own.turns == 2, "that turn had begun"


def test_a_program_that_does_not_tell_keeps_what_it_was_handed() -> None:
    play = lead(tells=False)
    taken = play.exit("lead", 1)
    assert named(taken, facts.Returned) == []
    assert named(taken, facts.TaskEnded) == [facts.TaskEnded("a1", "interrupted")]


def test_an_answer_that_was_not_begun_with_waits_again() -> None:
    play = lead()
    play.tell(facts.Read("a1", 1, ("m1",)))
    play.tell(facts.Blocked("a1", 1, "person", "May I?"))
    play.facts(Instruct("lead", "You may."))
    assert play.exit("lead", 1)[1] == facts.Returned("a1", ("m2",))
    assert [item.text for item in play.node("lead").inbox] == ["You may."]


@pytest.mark.parametrize("request_", [Stop("lead"), Restarting("lead")])
def test_an_end_on_purpose_keeps_what_was_not_begun_with(request_: Stop | Restarting) -> None:
    play = lead()
    play.facts(request_)
    assert facts.Returned("a1", ("m1",)) in play.exit("lead", 0)
    if isinstance(request_, Stop):
        play.facts(Start("lead"))
    assert named(begin(play, "lead"), facts.Handed) == [facts.Handed("a1", 2, ("m1",), turn=True, introduce=True)]


def test_what_an_agent_that_goes_for_good_had_not_begun_with_goes_with_it() -> None:
    play = Play(fleet(agent("lead")))
    begin(play, "lead")
    play.facts(Fork(kind="lines", name="kid", parent="lead", task="Go."))
    begin(play, "kid")
    play.facts(Disband("kid"))
    taken = play.exit("kid", 0)
    assert named(taken, facts.Returned) == []
    assert named(taken, facts.TaskEnded) == [facts.TaskEnded("a2", "interrupted")]


def test_a_death_of_the_daemon_returns_texts_like_any_other() -> None:
    play = lead()
    taken = play.reopen()
    assert named(taken, facts.Returned) == [facts.Returned("a1", ("m1",))]
    assert named(taken, facts.TaskEnded) == []
    assert named(begin(play, "lead"), facts.Handed) == [facts.Handed("a1", 2, ("m1",), turn=True, introduce=True)]


def resumed(restart: str = "on-failure") -> Play:
    """`lead`, whose child `kid` was just started again with its conversation."""
    play = Play(fleet(agent("lead")))
    begin(play, "lead")
    play.facts(Fork(kind="lines", name="kid", parent="lead", restart=restart))  # type: ignore[arg-type]  # a policy
    begin(play, "kid")
    play.facts(Restarting("kid"))
    play.exit("kid", 0)
    return play


@pytest.mark.parametrize("restart", ["never", "on-failure", "always"])
@pytest.mark.parametrize("code", [0, 66])
def test_one_that_never_goes_on_with_its_conversation_begins_a_fresh_one(restart: str, code: int) -> None:
    play = resumed(restart)
    for number in range(1, RESUMES + 1):
        assert play.node("kid").talk.resuming
        taken = play.exit("kid", code)
        assert play.node("kid").state == "backoff"
        assert len(named(taken, facts.Abandoned)) == (number == RESUMES)
        (starting,) = named(play.due("kid"), facts.Starting)
        assert starting == facts.Starting("a2", 2 + number, resume=number < RESUMES)
    told = [fact.input.text for fact in taken if isinstance(fact, facts.Queued)]
    assert f"begins a fresh conversation: it was resumed {RESUMES} times and each time exited with {code}." in told[0]
    assert play.exit("kid", 1)[-1].__class__ is (facts.Left if restart == "never" else facts.BackedOff)


def test_a_turn_that_ends_well_says_that_a_conversation_is_sound() -> None:
    play = resumed()
    for _ in range(2 * RESUMES):
        begin(play, "kid")
        play.facts(Instruct("kid", "Go."))
        play.end_turn("kid", "Well.")
        assert named(play.exit("kid", 1), facts.Abandoned) == []
        if not play.node("a2").live:
            break
        play.due("kid")
    assert play.node("a2").crashed == min(2 * RESUMES, CRASHES)


def test_a_run_that_lasted_and_one_that_could_not_be_started_say_nothing_against_a_conversation() -> None:
    play = resumed()
    for _ in range(RESUMES):
        begin(play, "kid")
        assert named(play.exit("kid", 1, lasted=SETTLED), facts.Abandoned) == []
        play.due("kid")
    for _ in range(RESUMES):
        node = play.node("kid")
        assert named(play.tell(facts.Unstarted(node.id, node.run, "no memory")), facts.Abandoned) == []
        play.due("kid")
    assert play.node("kid").session == "s"


def test_deaths_of_the_daemon_say_nothing_against_a_conversation() -> None:
    play = resumed()
    for _ in range(3 * RESUMES):
        taken = play.reopen()
        assert named(taken, facts.Abandoned) == []
        assert facts.Starting("a2", play.node("kid").run, resume=True) in taken
