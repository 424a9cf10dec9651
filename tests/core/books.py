"""A second set of books, kept from facts alone and in another way than the core's: every amount stays with whom it was
charged to, and each account's numbers are computed anew from all of them."""

from __future__ import annotations

from collections import defaultdict

from attrs import evolve

from supervisor.core import facts
from supervisor.core.apply import late
from supervisor.core.facts import Fact
from supervisor.core.grants import BUDGETS
from supervisor.core.ledger import ZERO, Meter, Usage
from supervisor.core.state import Account, Node, Project

SPENT = ("tokens", "turns", "cost")


def amount(usage: Usage, field: str) -> int:
    """What a piece of usage takes from one budget."""
    return {
        "tokens": usage.input + usage.cache_read + usage.cache_write + usage.output,
        "turns": usage.turns,
        "cost": usage.cost,
    }[field]


def holder_above(project: Project, node: Node, field: str) -> Node | None:
    """The nearest agent above that holds this budget, found by its grant's accounts alone."""
    parent = node.parent
    while parent is not None:
        above = project.agents[parent]
        if field in above.accounts:
            return above
        parent = above.parent
    return None


class Books:
    """`draws` is what was charged to each account itself: use of its holder and of whoever draws on it, and all that a
    child carved from it had used when it was gone. `owns` and `parents` remember forgotten agents too; `days` is what
    anybody spent on each day, `models` the tokens by day and model."""

    def __init__(self) -> None:
        self.draws: dict[tuple[str, str], int] = defaultdict(int)
        self.owns: dict[str, Usage] = {}
        self.parents: dict[str, str | None] = {}
        self.meters: dict[str, Meter] = defaultdict(Meter)
        self.reported: dict[str, Usage] = defaultdict(Usage)
        self.day = self.running = ""
        self.late = False
        self.days: dict[str, Usage] = defaultdict(Usage)
        self.models: dict[tuple[str, str], int] = defaultdict(int)

    def before(self, project: Project, fact: Fact) -> None:
        """What a fact ends is read while it is still there."""
        node = project.agents.get(getattr(fact, "agent", ""))
        if node is None:
            return
        if isinstance(fact, facts.Spent):
            self.running, self.late = node.model, late(node, fact)
        if isinstance(fact, facts.Left) and fact.to == "gone":
            for field in node.accounts:
                self._ends(project, node, field)
        if isinstance(fact, facts.Granted):
            for field in node.accounts:
                if getattr(fact.grant, field) is None:
                    self._ends(project, node, field)

    def _ends(self, project: Project, node: Node, field: str) -> None:
        """An account is closed: all that was charged to it is charged above."""
        used = self.draws.pop((node.id, field), 0)
        above = holder_above(project, node, field)
        if above is not None:
            self.draws[above.id, field] += used

    def after(self, project: Project, fact: Fact) -> None:
        """Charge what the fact added to its agent's own usage."""
        if isinstance(fact, facts.Dawned):
            self.day = fact.day
        if isinstance(fact, facts.Born):
            self.owns[fact.agent], self.parents[fact.agent] = ZERO, fact.parent
        node = project.agents.get(getattr(fact, "agent", ""))
        if node is None:
            return
        if isinstance(fact, facts.Spent):
            self.reported[node.id] += Usage(incomplete=max(0, fact.incomplete))
            model = self.running
            for report in fact.reports:
                booked = evolve(self.meters[node.id].book(report, fact.run), turns=0)
                self.reported[node.id] += booked
                self.models[self.day, report.model or model] += booked.tokens
                model = model if self.late else report.model or model
        assert evolve(node.own, turns=0) == self.reported[node.id], "what is reported counts, however late"
        added = node.own.beyond(self.owns[node.id])
        assert self.owns[node.id] + added == node.own, "usage went down"
        self.owns[node.id] = node.own
        self.days[self.day] += added
        for field in SPENT:
            holder = node if field in node.accounts else holder_above(project, node, field)
            if holder is not None:
                self.draws[holder.id, field] += amount(added, field)

    # --- what the numbers must be

    def branches(self) -> dict[str, Usage]:
        """The usage of every branch there ever was."""
        sums = dict.fromkeys(self.owns, ZERO)
        for agent, own in self.owns.items():
            at: str | None = agent
            while at is not None:
                sums[at] += own
                at = self.parents[at]
        return sums

    def accounts(self, project: Project) -> dict[tuple[str, str], Account]:
        """Every account there is, from the leaves up."""
        computed: dict[tuple[str, str], Account] = {}
        nodes = [node for main in project.mains for node in project.down(project.agents[main])]
        for node in nodes:
            for field in node.accounts:
                above = holder_above(project, node, field)
                held = getattr(node.grant, field)
                computed[node.id, field] = Account(held, above.id if above is not None else "")
        for node in reversed(nodes):
            for field in BUDGETS:
                above = holder_above(project, node, field)
                if (account := computed.get((node.id, field))) is not None:
                    account.spent += self.draws[node.id, field]
                    if above is not None:
                        computed[above.id, field].reserved += account.held
                        computed[above.id, field].spent += max(0, account.spent + account.reserved - account.held)
                if field == "descendants" and node.state != "gone" and above is not None:
                    computed[above.id, field].spent += 1
        return computed
