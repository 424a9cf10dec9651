"""What follows when a run ends or cannot start: another one after a backoff, a release, or an ended leave-taking."""

from __future__ import annotations

from supervisor.core.decide import leave, task
from supervisor.core.decide.moment import Moment
from supervisor.core.facts import BackedOff, Due, Exited, Fact, Lost, Opened, Starting, Unstarted
from supervisor.core.state import Node, Project
from supervisor.core.words import called

#: Crashes without a run of `SETTLED` seconds between them, after which an agent is given up.
CRASHES = 5
#: A run that lasted this long (seconds) starts the count of crashes anew.
SETTLED = 600.0
#: The longest wait before another run (seconds); the first is one second, and each doubles.
LONGEST_WAIT = 60.0


def after_exit(project: Project, fact: Exited | Unstarted, moment: Moment) -> list[Fact]:
    """A run is over. One that was to end is followed by what was asked; one that ended by itself by its restart policy."""
    node = project.agents[fact.agent]
    if fact.run != node.run or project.closing:
        return []
    if node.state == "stopping":
        return leave.empty(project, node, moment)
    if not node.live:
        return []
    if node.rerun is not None:
        return [
            *task.cut_task(node, None),
            Starting(node.id, node.run + 1, resume=node.rerun and bool(node.session)),
        ]
    exited = fact if isinstance(fact, Exited) else None
    ended = task.cut_task(node, exited)
    limit = node.spec.max_tasks
    if ended and limit is not None and node.tasks + 1 >= limit:
        return ended  # its last task: what follows is decided there
    return [*ended, *_policy(project, node, exited, moment)]


def _policy(project: Project, node: Node, fact: Exited | None, moment: Moment) -> list[Fact]:
    failed = fact is None or fact.code != 0
    again = node.spec.restart == "always" or (node.spec.restart == "on-failure" and failed)
    if not again:
        why = "could not be started" if fact is None else _how(fact)
        return [
            *_tell(project, node, f"{why}.", moment),
            *leave.leave(node, "gone", "unstarted" if fact is None else "exit", ""),
        ]
    if not failed:
        return [BackedOff(node.id, _wait(1, moment), 0)]
    crashes = 1 if fact is not None and fact.lasted >= SETTLED else node.crashes + 1
    if crashes > CRASHES:
        text = f"failed {crashes} times in a row and is given up. The last time it {_how(fact) if fact else 'could not be started'}. {node.reason}"
        return [*_tell(project, node, text, moment), *leave.leave(node, "gone", "crash", "")]
    return [BackedOff(node.id, _wait(crashes, moment), crashes)]


def _wait(crashes: int, moment: Moment) -> float:
    """Doubling, capped, and spread by up to a fifth so that a wave does not come back as one."""
    return round(min(LONGEST_WAIT, 2.0 ** (crashes - 1)) * (1 + moment.stamp.chance / 5), 3)


def _how(fact: Exited) -> str:
    if fact.oom and fact.signal == 9:
        return "used up its memory and was ended by the kernel"
    return f"was ended by signal {fact.signal}" if fact.signal is not None else f"exited with {fact.code}"


def _tell(project: Project, node: Node, text: str, moment: Moment) -> list[Fact]:
    if node.parent is None:
        return []
    return [*moment.tell(project.agents[node.parent], f"{called(node)} {text}", wake=True)]


def after_backoff(project: Project, fact: Due) -> list[Fact]:
    """The wait is over."""
    node = project.agents[fact.agent]
    if node.state != "backoff" or project.closing:
        return []
    return [Starting(node.id, node.run + 1, resume=bool(node.session))]


def after_loss(project: Project, fact: Lost, moment: Moment) -> list[Fact]:
    """A run died with its daemon: a leaving agent has now left, a wanted one starts again in its place."""
    node = project.agents[fact.agent]
    if node.state == "stopping":
        return leave.empty(project, node, moment)
    return task.cut_task(node, None)


def after_opening(project: Project, moment: Moment, _fact: Opened) -> list[Fact]:
    """Recovery: what was alive is lost; then every live agent starts again, parents first."""
    nodes = [node for main in project.mains for node in project.down(project.agents[main])]
    facts: list[Fact] = [Lost(node.id, node.run) for node in nodes if node.alive]
    facts += [fact for node in reversed(nodes) if not node.alive for fact in leave.empty(project, node, moment)]
    if project.wanted:
        facts += [Starting(node.id, node.run + 1, resume=bool(node.session)) for node in nodes if node.live]
    return facts
