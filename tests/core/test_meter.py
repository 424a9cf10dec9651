"""What agents report is booked once and never goes down, in whatever scope it comes and however often."""

from __future__ import annotations

from random import Random

from attrs import evolve, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.core import facts
from supervisor.core.ledger import REMEMBERED, ZERO, Meter, Report, Scope, Usage
from tests.core.play import Play, agent, fleet


def call(tokens: int, name: str = "") -> Report:
    """One model call."""
    return Report("call", Usage(input=tokens, calls=1), id=name)


def turn(tokens: int, name: str = "", calls: int = 0) -> Report:
    """One turn."""
    return Report("turn", Usage(input=tokens, calls=calls), id=name)


def total(tokens: int, epoch: str = "") -> Report:
    """Everything since the epoch began."""
    return Report("total", Usage(input=tokens), epoch=epoch)


def booked(*reports: Report | tuple[int, Report]) -> list[int]:
    """What each adds; a pair names the run."""
    meter = Meter()
    pairs = [report if isinstance(report, tuple) else (1, report) for report in reports]
    return [meter.book(report, run).input for run, report in pairs]


def test_each_call_is_added_and_a_repeated_one_is_known() -> None:
    assert booked(call(10, "a"), call(20, "b"), call(10, "a"), call(20, "b")) == [10, 20, 0, 0]
    assert booked(call(10), call(10)) == [10, 10], "without ids two calls are two"


def test_a_call_that_is_told_again_with_more_adds_the_difference() -> None:
    assert booked(call(10, "a"), call(25, "a"), call(20, "a"), call(25, "a")) == [10, 15, 0, 0]


def test_a_turns_report_adds_what_its_calls_did_not_say() -> None:
    assert booked(call(10, "a"), call(20, "b"), turn(30, "t1"), call(5, "c"), turn(8, "t2")) == [10, 20, 0, 5, 3]


def test_a_turns_report_that_comes_again_does_not_count_the_next_turns_calls_twice() -> None:
    assert booked(call(10, "a"), turn(10, "t1"), call(5, "c"), turn(10, "t1"), turn(5, "t2")) == [10, 0, 5, 0, 0]


def test_a_turn_without_anything_is_a_turn() -> None:
    assert booked(call(10, "a"), turn(0, "t1"), turn(30, "t2")) == [10, 0, 30]


def test_totals_add_what_they_grew_by_and_never_take_back() -> None:
    assert booked(total(10), total(30), total(30), total(20), total(31)) == [10, 20, 0, 0, 1]


def test_a_new_epoch_starts_from_zero_and_an_old_one_is_remembered() -> None:
    assert booked(total(10, "s1"), total(4, "s2"), total(12, "s1"), total(9, "s2")) == [10, 4, 2, 5]


def test_a_total_without_an_epoch_counts_from_the_start_of_its_run() -> None:
    assert booked((1, total(10)), (2, total(4)), (1, total(11)), (2, total(6))) == [10, 4, 1, 2]


def test_a_session_that_is_resumed_goes_on_counting_where_it_was() -> None:
    assert booked((1, total(10, "s")), (2, total(10, "s")), (2, total(15, "s"))) == [10, 0, 5]


def test_calls_turns_and_totals_of_one_truth_are_one() -> None:
    assert booked(call(10, "a"), total(10), call(5, "b"), turn(15, "t"), total(15)) == [10, 0, 5, 0, 0]
    assert booked(total(10), turn(10, "t")) == [10, 0], "a turn that a total told of already"


def test_what_only_a_total_tells_of_is_added_once() -> None:
    assert booked(call(10, "a"), total(25), call(5, "b"), total(30), turn(30, "t")) == [10, 15, 5, 0, 0]


def test_a_run_that_was_cut_takes_nothing_from_the_next_ones_turn() -> None:
    assert booked((1, call(10, "a")), (2, call(5, "b")), (2, turn(8, "t"))) == [10, 5, 3]


def test_nonsense_is_nothing() -> None:
    meter = Meter()
    for scope in ("call", "turn", "total"):
        assert meter.book(Report(scope, Usage(-5, -5, -5, -5, -5, -5, -5, -5))) == ZERO
    assert meter.book(call(10**30, "a")).input == 10**30


def test_one_meter_remembers_so_many_ids() -> None:
    meter = Meter()
    for number in range(REMEMBERED * 3):
        meter.book(evolve(call(1, f"c{number}"), epoch=f"e{number}"), number)
    assert len(meter.calls) == len(meter.epochs) == len(meter.turns) == REMEMBERED


def test_a_turn_is_counted_by_what_starts_it_whatever_a_program_says() -> None:
    play = Play(fleet(agent("lead", task="Begin.")))
    play.ready("lead")
    play.tell(facts.Spent("a1", 1, (Report("turn", Usage(input=5, turns=7)),)))
    assert play.node("lead").own == Usage(input=5, turns=1)


def test_context_is_what_was_said_last_by_the_run_that_is_there() -> None:
    play = Play(fleet(agent("lead", restart="always")))
    play.ready("lead")
    for context in (40.0, None, float("nan"), -3.0):
        play.tell(facts.Spent("a1", 1, (Report("call", ZERO, context=context),)))
    assert play.node("lead").context == 40.0
    play.exit("lead", 1)
    play.due("lead")
    play.tell(facts.Spent("a1", 1, (Report("call", Usage(input=5), context=90.0, model="old"),)))
    assert (play.node("lead").context, play.node("lead").model, play.node("lead").own.input) == (40.0, "", 5)


# --- any stream of one truth


@frozen
class Call:
    """What was really used, and what is told of it: its own line, lines before it is whole, a total after it."""

    usage: Usage
    told: bool
    partly: bool
    total: bool


NUMBERS = st.integers(0, 50)
USAGES = st.builds(Usage, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.just(1), st.just(0), NUMBERS)
CALLS = st.builds(Call, USAGES, st.booleans(), st.booleans(), st.booleans())
#: runs of turns of calls
TRUTHS = st.lists(st.lists(st.lists(CALLS, max_size=4), max_size=4), min_size=1, max_size=3)


def lines(truth: list[list[list[Call]]], *, turns: bool, session: bool) -> list[tuple[int, Report, Usage]]:
    """All that a program prints of it, each with its run and with what was used until then."""
    told: list[tuple[int, Report, Usage]] = []
    used = whole = ZERO
    for run, its in enumerate(truth):
        whole = whole if session else ZERO
        epoch = "session" if session else f"process {run}"
        for number, calls in enumerate(its):
            name, sum_ = f"r{run}t{number}", ZERO
            for index, one in enumerate(calls):
                part = Usage(*[getattr(one.usage, field) // 2 for field in _FIELDS])
                before, used, whole, sum_ = used, used + one.usage, whole + one.usage, sum_ + one.usage
                for is_told, usage, so_far in ((one.partly, part, before + part), (one.told, one.usage, used)):
                    told += [(run, Report("call", usage, f"{name}c{index}", epoch), so_far)] if is_told else []
                told += [(run, Report("total", whole, epoch=epoch), used)] if one.total else []
            told += [(run, Report("turn", sum_, name, epoch), used)] if turns else []
        told.append((run, Report("total", whole, epoch=epoch), used))
    return told


_FIELDS = ("input", "cache_read", "cache_write", "output", "reasoning", "calls", "turns", "cost")


@settings(max_examples=100, deadline=None)
@given(TRUTHS, st.booleans(), st.booleans(), st.randoms(use_true_random=True))
def test_any_telling_of_one_truth_books_exactly_the_truth(
    truth: list[list[list[Call]]], turns: bool, session: bool, rnd: Random
) -> None:
    meter, sum_, printed = Meter(), ZERO, list[tuple[int, Report, Usage]]()
    for line in lines(truth, turns=turns, session=session):
        printed.append(line)
        for run, report, _ in [line, *rnd.choices(printed, k=rnd.randrange(3))]:
            added = meter.book(report, run)
            assert added == added.beyond(ZERO), "never down"
            sum_ += added
        _, told, used = line
        assert sum_.beyond(used) == ZERO, "nothing is booked that was not used"
        assert told.scope == "call" or sum_ == used, "what a turn or a total tells of is booked"


@given(st.lists(st.builds(
    Report,
    scope=st.sampled_from(list(Scope.__args__)),  # type: ignore[attr-defined]  # a Literal has them
    usage=st.builds(Usage, *[st.integers(-10, 10**12)] * 8),
    id=st.sampled_from(["", "a", "b"]),
    epoch=st.sampled_from(["", "e", "f"]),
), max_size=30), st.data())  # fmt: skip
def test_no_stream_however_false_makes_a_number_go_down(reports: list[Report], data: st.DataObject) -> None:
    meter = Meter()
    for report in reports:
        added = meter.book(report, data.draw(st.integers(1, 2)))
        assert added == added.beyond(ZERO)
