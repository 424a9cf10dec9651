"""What holds of a project at every step: each sentence is one function. `Watch` looks at each fact as it is applied,
the functions below it at the state between two batches."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator

from supervisor.core import books, facts, rights, spending, view
from supervisor.core.apply import apply
from supervisor.core.authority import Operator
from supervisor.core.decide.task import INBOX, hand
from supervisor.core.facts import Fact
from supervisor.core.grants import BUDGETS
from supervisor.core.ledger import ZERO, Usage
from supervisor.core.lifecycle import AWAY, IDLE, LIVE, TABLE, VARIES, State
from supervisor.core.line import Place
from supervisor.core.names import automatic
from supervisor.core.state import Node, Project, fold
from tests.core.books import Books

#: The facts that report spending. Nothing else may put an account over its limit.
USAGE = (facts.Spent, facts.TurnStarted)
#: What only a daemon that stays may do.
BEGINS = (facts.Born, facts.Starting, facts.Handed, facts.BackedOff, facts.Left)


class Watch:
    """Applies facts, one at a time, and holds what must be true of each step."""

    def __init__(self) -> None:
        self.books = Books()
        self.ids: set[str] = set()
        self.numbers: set[int] = set()
        self.told: Counter[tuple[str, str, int]] = Counter()
        self.left: dict[str, dict[tuple[str, str], int]] = {}

    def apply(self, project: Project, fact: Fact, at: float) -> None:
        """Take one fact, with everything that is held of a single step."""
        name = getattr(fact, "agent", "")
        node = project.agents.get(name)
        state, over = node.state if node is not None else None, overs(project)
        run_before = (node.run, node.alive) if node is not None else (0, False)
        if isinstance(fact, facts.Handed):
            admitted(project, fact)
        assert not (project.closing and isinstance(fact, BEGINS)), (
            "while the daemon leaves nothing begins or is settled"
        )
        self.books.before(project, fact)
        crashes = (node.crashes, node.crashed) if node is not None else (0, 0)
        apply(project, fact, at)
        if state == "parked" and node is not None:
            a_park_counts_for_nothing(node, fact, crashes)
        self.books.after(project, fact)
        self.born(project, fact)
        moved_along_the_table(project, fact, state, run_before)
        if isinstance(fact, facts.Left):
            self.left[fact.agent] = over
        if isinstance(fact, facts.Born) and fact.replaces:
            # What it follows held this for it until now: a reservation that moves is no new one.
            over = self.left[fact.replaces] | {
                key: max(over[key], self.left[fact.replaces].get(key, 0)) for key in over
            }
        only_usage_goes_over(project, fact, over)
        self.told_once(fact)
        self.balances(project)

    def born(self, project: Project, fact: Fact) -> None:
        """No id is used twice, and no name that somebody has."""
        if isinstance(fact, facts.Born | facts.Renamed):
            self.numbers.add(automatic(fact.name))
        if not isinstance(fact, facts.Born):
            return
        assert fact.agent not in self.ids
        self.ids.add(fact.agent)
        others = [node for node in project.agents.values() if node.id != fact.agent and node.state != "gone"]
        assert fold(fact.name) not in {fold(node.name) for node in others}

    def told_once(self, fact: Fact) -> None:
        """Each threshold of each grant is told once."""
        if isinstance(fact, facts.Granted):
            for key in [key for key in self.told if key[0] == fact.agent]:
                del self.told[key]
        if isinstance(fact, facts.Warned):
            self.told[fact.agent, fact.field, fact.percent] += 1
            assert self.told[fact.agent, fact.field, fact.percent] == 1

    def balances(self, project: Project) -> None:
        """The core's numbers are those of the second set of books: of every account and every branch."""
        computed = self.books.accounts(project)
        kept = {(node.id, field): node.accounts[field] for node in project.agents.values() for field in node.accounts}
        assert kept == computed
        assert all(account.reserved <= account.held for account in kept.values())
        branches = self.books.branches()
        assert {node.id: node.branch for node in project.agents.values()} == {
            agent: branches[agent] for agent in project.agents
        }
        total = sum((project.agents[main].branch for main in project.mains), project.folded)
        assert total == sum(self.books.owns.values(), ZERO)
        self.rows_balance(project, total)

    def rows_balance(self, project: Project, total: Usage) -> None:
        """The rows of days and models come to the same totals: each agent's to its own, all of them to everybody's,
        each day's to what was spent on that day, and each model's to its tokens where it has a row of its own."""
        kept = project.books
        rows: dict[tuple[str, str], Usage] = defaultdict(Usage)
        for node in project.agents.values():
            own = books.written(node)
            assert sum((spent for _, _, spent in own), node.earlier) == node.own
            for day, model, spent in own:
                rows[day, model] += spent
        for past in kept.past.values():
            for day, model, spent in past.rows:
                rows[day, model] += spent
        assert kept.rows == sum(1 + len(past.rows) for past in kept.past.values()) <= books.ROWS
        assert {day for day, _ in rows} <= {*kept.days, ""}
        assert len(kept.days) <= books.DAYS
        assert len(kept.summed) <= books.SUMMED
        assert sum(kept.ever.values(), ZERO) == total
        for day in {day for day, _ in rows} | {*kept.summed} if self.books.day else ():
            summed = kept.summed.get(day, {})
            of_day = {model: spent for (at, model), spent in rows.items() if at == day}
            if day and "" not in kept.summed:
                assert sum([*of_day.values(), *summed.values()], ZERO) == self.books.days[day]
            if not summed and "" not in kept.summed and books.OTHERS not in of_day:
                assert all(spent.tokens == self.books.models[day, model] for model, spent in of_day.items())
        assert sum([*rows.values(), *(spent for day in kept.summed.values() for spent in day.values())], ZERO) == total


def overs(project: Project) -> dict[tuple[str, str], int]:
    """What each account is over."""
    return {
        (node.id, field): account.over for node in project.agents.values() for field, account in node.accounts.items()
    }


def only_usage_goes_over(project: Project, fact: Fact, before: dict[tuple[str, str], int]) -> None:
    """No request, and nothing that follows from one, puts an account over its limit or further over."""
    if not isinstance(fact, USAGE):
        for key, over in overs(project).items():
            assert over <= before.get(key, 0), key


def admitted(project: Project, fact: facts.Handed) -> None:
    """No turn starts unless what is spent, reserved and asked for is held."""
    node = project.agents[fact.agent]
    charged = fact.turn and not node.talk.owed  # a turn that was charged and never began is there to be used
    for field, asked in (("turns", int(charged)), ("tokens", 1), ("cost", 1)):
        at: str | None = node.id
        while at is not None and field not in project.agents[at].accounts:
            at = project.agents[at].parent
        if at is not None:
            account = project.agents[at].accounts[field]
            assert account.spent + account.reserved + asked <= account.held, field
    assert node.alive
    assert not node.prompts, "no text goes to a program that waits for a yes or no"
    assert not (node.talk.once and node.talk.turn), "who does one task and ends is handed one turn"
    assert any(item.wake for item in node.inbox if item.id in fact.inputs)


def moved_along_the_table(project: Project, fact: Fact, state: State | None, run_before: tuple[int, bool]) -> None:
    """A state changes by its agent's own facts, as the table says, and a run that is over changes nothing."""
    node = project.agents.get(getattr(fact, "agent", ""))
    if node is None or state is None:
        return
    pair = (state, type(fact).__name__)
    leads = VARIES.get(pair, (TABLE.get(pair, state),))
    run, alive = run_before
    late = hasattr(fact, "run") and not isinstance(fact, facts.Starting) and (fact.run != run or not alive)
    assert not (isinstance(fact, facts.Handed) and state == "parked"), "no turn starts while it is parked"
    assert node.state in ((state,) if late else leads)


def a_park_counts_for_nothing(node: Node, fact: Fact, crashes: tuple[int, int]) -> None:
    """Whatever becomes of the program of a parked agent is no crash, and ends no task but as the agent said."""
    if not isinstance(fact, facts.Leaving):
        assert (node.crashes, node.crashed) == crashes
    assert not (isinstance(fact, facts.TaskEnded) and not node.status), "a limit ends no task"


# --- between two batches


def names_are_those_who_are_here(project: Project) -> None:
    """Each name leads to one agent that is not gone, and each such agent has one."""
    here = {fold(node.name): node.id for node in project.agents.values() if node.state != "gone"}
    assert project.names == here
    assert len(here) == sum(node.state != "gone" for node in project.agents.values())


def an_old_name_is_nobodys(project: Project) -> None:
    """A name that someone has is not remembered as somebody's old one."""
    assert not project.former.keys() & project.names.keys()


def the_living_are_counted(project: Project) -> None:
    """`living` and each `around` count who is not away, each `here` who is not gone."""
    assert project.living == sum(node.state not in AWAY for node in project.agents.values())
    for node in project.agents.values():
        children = [project.agents[child].state for child in node.children]
        assert node.around == sum(state not in AWAY for state in children)
        assert node.here == sum(state != "gone" for state in children)


def who_waits_is_known(project: Project) -> None:
    """The agents for whom texts wait, and no others, are offered what becomes free."""
    assert {*project.waiting} == {node.id for node in project.agents.values() if node.inbox and node.state in LIVE}


def nobody_outlives_its_parent(project: Project) -> None:
    """Below one that leaves nobody goes on; below one that is away nobody is around, below a gone one all are gone."""
    for node in project.agents.values():
        if node.parent is None:
            continue
        parent = project.agents[node.parent]
        if parent.state in ("stopped", "gone"):
            assert node.state in AWAY
        if parent.state == "gone":
            assert node.state == "gone"
        if parent.state == "stopping":
            assert node.state not in LIVE
    for node in project.agents.values():
        assert not (node.state in AWAY and node.alive)


def nothing_is_left_undone(project: Project) -> None:
    """All that follows has followed: who has nothing alive left has left, who can take a text has been handed it, who
    is over its limit in a turn was interrupted."""
    if project.closing:
        return
    for node in project.agents.values():
        children = [project.agents[child] for child in node.children]
        if node.state == "stopping":
            assert node.alive or any(child.state not in AWAY for child in children), node.id
        assert hand(project, node) == []
        if node.state in ("starting", "working"):
            assert node.alive
        if node.state in ("standing", "waiting"):
            assert node.alive != node.stands
        if node.state in ("backoff", *AWAY):
            assert not node.alive
            assert not node.stands


def only_what_does_one_task_and_ends_stands_without_a_process(project: Project) -> None:
    """A process that is there for nothing is no agent's that stands by, nor is one missing where it would do something
    by itself; a file may have made another program of the kind since."""
    for node in project.agents.values():
        if node.stands:
            assert node.state in ("standing", "waiting", "parked")
            assert node.pid == 0


def who_asks_waits(project: Project) -> None:
    """An agent waits while it asks something or its children are busy, and no longer; what is gone is asked no more."""
    if project.closing:
        return  # every run is ended, and settled by the next daemon
    for node in project.agents.values():
        asks = bool(node.prompts) or node.asks
        assert asks or node.awaits if node.state == "waiting" else not asks or node.state == "parked"
        assert not node.awaits or node.state in ("waiting", "parked", "starting")
        if node.prompts:
            assert node.alive
            assert node.rerun is None


def a_wait_for_children_ends_with_them(project: Project) -> None:
    """A task waits for children only while one of them has something open; the wait never outlasts the last of them,
    unless what there is to tell is about to be handed over."""
    assert {*project.awaiting} == {node.id for node in project.agents.values() if node.awaits}
    if project.closing:
        return
    for agent in project.awaiting:
        node = project.agents[agent]
        assert node.task is not None
        assert not node.turn
        below = [project.agents[child] for child in node.children]
        busy = [
            child
            for child in below
            if child.state not in AWAY
            and (child.task is not None or any(item.sort != "digest" for item in child.inbox))
        ]
        later = any(item.sort != "digest" for item in node.inbox)
        told = any(item.sort == "digest" for item in node.inbox)
        held_up = node.state != "waiting" or node.prompts or (node.talk.once and node.alive)
        assert busy or held_up or told
        assert not later or held_up or node.asks or all(int(item.id[1:]) <= node.asked for item in node.inbox) or busy


def a_task_is_somebodys(project: Project) -> None:
    """A task is under way only where it can end: in a turn, in one that waits, or until the next run takes it up."""
    for node in project.agents.values():
        if node.task is not None and node.state == "standing":
            assert node.spec.resume == "continue" or node.limited or node.rerun is not None
        if node.task is not None and node.state in AWAY:
            assert node.spec.resume == "continue"
            assert node.state == "stopped"


def a_park_has_an_end(project: Project) -> None:
    """Who is parked has an end that can be shown, and says why; nobody else is."""
    for node in project.agents.values():
        assert (node.state == "parked") == (node.park is not None)
        shown = view.agent(project, node, 5e3)
        assert (shown["limit"] is None) == (node.park is None)
        if node.state == "parked":
            assert isinstance(node.until, float)
            assert 0 < node.until < 2e9, "neither for ever nor at a time that is none"


def nobody_waits_at_a_stopped_login_unparked(project: Project) -> None:
    """Who could start a turn with a login that is stopped is parked, but for the one that tries it."""
    for node in project.agents.values():
        if node.state in IDLE and not node.turn and node.credential in project.tripped:
            assert node.trying


def inboxes_are_bounded(project: Project) -> None:
    """What people and agents send is bounded; only the fleet's own digests may be more."""
    for node in project.agents.values():
        assert sum(item.sort != "digest" for item in node.inbox) <= INBOX + 1, "and one brief"


def children_and_parents_agree(project: Project) -> None:
    """Each agent stands once, where it says it does, and the mains are those without a parent."""
    listed = [*project.mains, *(child for node in project.agents.values() for child in node.children)]
    assert sorted(listed) == sorted(project.agents)
    for node in project.agents.values():
        assert all(project.agents[child].parent == node.id for child in node.children)
    assert all(project.agents[main].parent is None for main in project.mains)


def a_child_holds_no_more_than_its_parent(project: Project) -> None:
    """Rights within the parent's; each budget carved from the nearest one above, within what that one holds."""
    for node in project.agents.values():
        parent = project.agents.get(node.parent or "")
        if parent is None or node.state == "gone":
            continue
        for field in rights.SETS:
            held, above = rights.effective(project, node, field), rights.effective(project, parent, field)
            if isinstance(above, tuple):
                assert isinstance(held, tuple)
                assert all(any(rights.covers(field, have, entry) for have in above) for entry in held)
        for field in rights.SWITCHES:
            if rights.effective(project, parent, field) is False:
                assert rights.effective(project, node, field) is False


def a_main_answers_for_its_branch(project: Project, whole: set[tuple[str, str]]) -> None:
    """What a branch used since its main's grant began stands in the main's own numbers, however deep it was used."""
    for agent, field in whole:
        node = project.agents.get(agent)
        if node is not None and field in node.accounts:
            used = {"tokens": node.branch.tokens, "turns": node.branch.turns, "cost": node.branch.cost}[field]
            assert node.accounts[field].committed >= used


def seats_are_taken_by_the_living(project: Project) -> None:
    """Each living agent sits with the nearest above that holds `descendants`, and nobody else does."""
    for node in project.agents.values():
        holder = project.holder(project.above(node), "descendants")
        assert node.seat == ("" if holder is None or node.state == "gone" else holder.id)


def every_reader_sees_the_same(project: Project) -> None:
    """The tree is drawn without fail and says what the state says."""
    shown = {drawn["id"]: drawn for drawn in _drawn(view.tree(project, Operator(), "warden", 5e3)["agents"])}
    assert shown.keys() == project.agents.keys()
    for agent, drawn in shown.items():
        node = project.agents[agent]
        assert (drawn["name"], drawn["state"], drawn["wanted"]) == (node.name, node.state, node.wanted)
        assert [child["id"] for child in drawn["children"]] == node.children
        assert drawn["branch"]["output"] == node.branch.output
        assert {*drawn["grant"]} == {*node.accounts} <= {*BUDGETS}
        assert view.whoami(project, node)["state"] == node.state
    all_told = spending.spending(project, Operator(), 5e3)
    spent = {node.id for node in project.agents.values() if node.branch != ZERO}
    assert spent <= {row["id"] for row in all_told["agents"]}
    for group in spending.BY:
        of = "branch" if group == "branch" else "own"
        for since in {spending.ALL, project.books.day}:
            told = spending.spending(project, Operator(), 5e3, None, group, since)
            rows: list[view.Plain] = told["agents"] if "agents" in told else told["rows"]
            assert _tokens(row[of] for row in rows) == _tokens([told["total"]])
            assert since or told["total"] == all_told["total"]
    for main in project.mains:
        node = project.agents[main]
        for group in ("agent", "branch", "day"):
            assert spending.spending(project, Operator(), 5e3, node, group)["total"] == view.usage(node.branch)


def _tokens(usages: Iterable[view.Plain]) -> int:
    return sum(each[key] for each in usages for key in ("input", "cache_read", "cache_write", "output", "incomplete"))


def _drawn(agents: list[view.Plain]) -> Iterator[view.Plain]:
    for one in agents:
        yield one
        yield from _drawn(one["children"])


def who_waits_for_room_can_be_answered(project: Project) -> None:
    """A fork waits under one that is there, for whoever still hears; in the order of asking; for what is full or was a
    moment ago, of whoever holds it."""
    assert [*project.line] == sorted(project.line, key=lambda place: int(place[1:]))
    for name, place in project.line.items():
        assert int(name[1:]) <= project.lined
        assert not place.parent or project.agents[place.parent].state in LIVE
        if place.by != "operator":
            assert (project.agents[place.by].run, project.agents[place.by].alive) == (place.run, True)
        assert (place.holder == "") == (place.field == "agents")
        above = [at.id for at in project.up(project.agents[place.parent])] if place.parent else []
        assert place.holder in ("", *above)


def nobody_was_passed(project: Project, born: facts.Born, line: dict[str, Place], place: str) -> None:
    """What was given to this fork is not what one waits for that asked before it: there is room for all of them too."""
    before = [*line.items()]
    if place:
        before = before[: [*line].index(place)]
    held = project.fleet.agents_max if project.fleet is not None else 0
    ahead = [other for _, other in before]
    if any(other.field == "agents" for other in ahead):
        assert project.living + sum(other.field == "agents" for other in ahead) <= held
    for node in project.up(project.agents[born.agent]):
        if any(other.field == "children" and other.holder == node.id for other in ahead) and node.id == born.parent:
            waiting = sum(other.field == "children" and other.holder == node.id for other in ahead)
            assert node.here + waiting <= (node.grant.children or 0)
    seat = project.agents[born.agent].seat
    if seat:
        account = project.agents[seat].accounts["descendants"]
        waiting = sum(other.seats for other in ahead if other.field == "descendants" and other.holder == seat)
        assert not waiting or account.committed + waiting <= account.held


def is_away(node: Node) -> bool:
    """Stopped or gone."""
    return node.state in AWAY


STATE: tuple[Callable[[Project], None], ...] = (
    names_are_those_who_are_here,
    an_old_name_is_nobodys,
    the_living_are_counted,
    who_waits_is_known,
    nobody_outlives_its_parent,
    nothing_is_left_undone,
    only_what_does_one_task_and_ends_stands_without_a_process,
    who_asks_waits,
    a_wait_for_children_ends_with_them,
    a_task_is_somebodys,
    a_park_has_an_end,
    nobody_waits_at_a_stopped_login_unparked,
    inboxes_are_bounded,
    children_and_parents_agree,
    a_child_holds_no_more_than_its_parent,
    seats_are_taken_by_the_living,
    every_reader_sees_the_same,
    who_waits_for_room_can_be_answered,
)
