"""What follows when a run ends or cannot start: another one after a backoff, a release, or an ended leave-taking."""

from __future__ import annotations

from supervisor.core.decide import ends, leave, park, stand
from supervisor.core.decide.moment import Moment
from supervisor.core.facts import Abandoned, BackedOff, Cause, Due, Exited, Fact, Lost, Opened, Parked, Unstarted
from supervisor.core.state import Node, Project
from supervisor.core.talk import Turn, served
from supervisor.core.words import called, ended

#: Crashes without a run of `SETTLED` seconds between them, after which an agent is given up.
CRASHES = 5
#: A run that lasted this long (seconds) starts the count of crashes anew.
SETTLED = 600.0
#: So many runs in a row may resume one conversation and fail; the next begins a fresh one.
RESUMES = 2
#: A run that is always to be followed by another has failed, whatever it says, if it did not last this long (seconds).
QUICK = 1.0
#: The longest wait before another run (seconds); the first is one second, and each doubles.
LONGEST_WAIT = 60.0


def after_exit(project: Project, fact: Exited | Unstarted, moment: Moment) -> list[Fact]:
    """A run is over. One that was to end is followed by what was asked; one that ended by itself by its restart policy.
    While the daemon leaves every run is ended, and follows again when the next one opens the project."""
    node = project.agents[fact.agent]
    return [*ends.give_back(node), *_after(project, node, fact, moment)]


def _after(project: Project, node: Node, fact: Exited | Unstarted, moment: Moment) -> list[Fact]:
    if project.closing:
        return ends.cut(node, wake=False)
    if node.state == "stopping":
        return [*ends.cut(node), *leave.empty(project, node, moment)]
    if not node.live:
        return []
    if node.state == "parked":
        # Whatever its program did: it goes on when the time is over.
        return [stand.again(project, node)] if project.once(node) else []
    if isinstance(fact, Unstarted) and fact.credential:
        return park.not_spawned(project, node, fact, moment)
    if node.rerun is not None:
        return [*ends.cut(node), stand.again(project, node, resume=node.rerun)]
    exited = fact if isinstance(fact, Exited) else None
    if node.talk.once and exited is not None and served(node, exited):
        return [*ends.over(project, node, exited), stand.again(project, node)]
    if node.talk.once and exited is not None and node.cut and not node.talk.silent:
        # We ended it to cut its turn: what it had not begun with waits, and it has not failed.
        return [*ends.cut(node), stand.again(project, node)]
    over = ends.over(project, node, fact) if node.talk.once else ends.cut(node, exited)
    limit = node.spec.max_tasks
    if over and limit is not None and node.tasks + 1 >= limit:
        return over  # its last task: what follows is decided there
    told, follows = _policy(project, node, exited, moment, wake=not over)
    # The end of a task wakes the parent; what else there is to tell goes along in the same turn.
    return [*told, *over, *follows]


def _policy(
    project: Project, node: Node, fact: Exited | None, moment: Moment, *, wake: bool
) -> tuple[list[Fact], list[Fact]]:
    """What the parent is told, and what follows. Death by a signal is a failure, and so is a run that was to resume a
    conversation and never did; one that was told to end never comes here."""
    heard = node.talk.ready and not (node.talk.once and node.talk.unread)
    stuck = fact is not None and node.talk.resuming and not heard
    quick = fact is not None and node.spec.restart == "always" and fact.lasted < QUICK
    # One that does a task and ends comes here only where it has not done it.
    failed = fact is None or fact.code != 0 or stuck or quick or node.talk.once or node.talk.silent > 0
    again = stuck or node.spec.restart == "always" or (node.spec.restart == "on-failure" and failed)
    how = _how(node, fact)
    if not again:
        cause: Cause = "unstarted" if fact is None else "exit"
        return _tell(project, node, f"{how}.", moment, wake=wake), leave.leave(node, "gone", cause, "")
    if not failed:
        return [], [BackedOff(node.id, _wait(1, moment), 0)]
    crashes = 1 if fact is not None and fact.lasted >= SETTLED else node.crashes + 1
    if crashes > CRASHES:
        text = f"failed {crashes} times in a row and is given up. The last time it {how}."
        return _tell(project, node, text, moment, wake=wake), leave.leave(node, "gone", "crash", "")
    resumed = _resumed(node, fact, failed=failed)
    waits = BackedOff(node.id, _wait(crashes, moment), crashes, resumed)
    if resumed < RESUMES:
        return [], [waits]
    why = f"it was resumed {resumed} times and each time {how}"
    text = f"begins a fresh conversation: {why}. It is told what it was for and where the old one is written down."
    return _tell(project, node, text, moment, wake=wake), [waits, Abandoned(node.id, node.session, why)]


def _resumed(node: Node, fact: Exited | None, *, failed: bool) -> int:
    """How many runs in a row have resumed this conversation and failed, none of their turns having ended well."""
    if fact is None:
        return node.talk.resumed  # it did not come to that
    if not failed or node.talk.fruitful or fact.lasted >= SETTLED:
        return 0
    return node.talk.resumed + node.talk.resuming


def _wait(crashes: int, moment: Moment) -> float:
    """Doubling, capped, and spread by up to a fifth so that a wave does not come back as one."""
    return round(min(LONGEST_WAIT, 2.0 ** (crashes - 1)) * (1 + moment.stamp.chance / 5), 3)


def _how(node: Node, fact: Exited | None) -> str:
    if fact is None:
        return f"could not be started: {node.reason}"
    if node.talk.silent:
        return f"was {node.reason} and was ended for that"
    return ended(fact) + (_WHEN[node.talk.turn] if node.talk.once else "")


#: When a program that does one task and ends may not end.
_WHEN: dict[Turn, str] = {"": " before it had its task", "runs": " in the middle of its turn", "over": ""}


def _tell(project: Project, node: Node, text: str, moment: Moment, *, wake: bool) -> list[Fact]:
    parent = project.above(node)
    return [*moment.tell(parent, f"{called(node)} {text}", wake=wake)] if parent is not None else []


def after_backoff(project: Project, fact: Due) -> list[Fact]:
    """The wait is over."""
    node = project.agents[fact.agent]
    if node.state != "backoff" or project.closing:
        return []
    return [stand.again(project, node)]


def after_loss(project: Project, fact: Lost, moment: Moment) -> list[Fact]:
    """A run died with its daemon: a leaving agent has now left, a wanted one starts again in its place."""
    node = project.agents[fact.agent]
    return [*ends.give_back(node), *ends.cut(node, wake=False), *leave.empty(project, node, moment)]


def after_opening(project: Project, moment: Moment, _fact: Opened) -> list[Fact]:
    """Recovery: what was alive is lost, what was leaving has left; then every live agent starts, parents first, or is
    parked as it was."""
    nodes = [node for main in project.mains for node in project.down(project.agents[main])]
    facts: list[Fact] = [Lost(node.id, node.run) for node in nodes if node.alive]
    facts += [fact for node in nodes if not node.alive for fact in leave.empty(project, node, moment)]
    if project.wanted:
        facts += [fact for node in nodes if node.live for fact in _again(project, node)]
    return facts


def _again(project: Project, node: Node) -> list[Fact]:
    """What a live agent goes on with under the next daemon."""
    if node.park is None:
        return [stand.again(project, node)]
    kept = node.park
    parked = Parked(node.id, node.until or 0.0, kept.sort, kept.text, kept.named, kept.shared)
    return [stand.again(project, node), parked] if project.once(node) else [parked]
