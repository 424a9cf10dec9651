"""A life that a project may have had, as batches that `apply` takes in earnest, and journals filled with it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

from supervisor.core.apply import apply
from supervisor.core.facts import (
    Accepted,
    Born,
    Exited,
    Fact,
    Forgotten,
    Handed,
    Input,
    Killed,
    Leaving,
    Left,
    Opened,
    Queued,
    Ready,
    Renamed,
    Spent,
    Spoke,
    Started,
    Starting,
    TaskEnded,
    TurnEnded,
)
from supervisor.core.grants import Grant
from supervisor.core.ledger import Report, Usage
from supervisor.core.spec import Declared, Fleet, KindSpec, Spec
from supervisor.core.state import Project
from supervisor.runtime.journal import snapshot
from supervisor.runtime.journal.chain import Batch, Link
from supervisor.runtime.journal.journal import SEGMENT, Journal

PROJECT = "demo-0123abcd"
FLEET = Fleet("demo", (Declared("lead", Spec("lines")),), kinds=(KindSpec("lines", "lines", ("cat",)),))
LEAD = Grant(tokens=1_000_000, tools=("read", "bash"))


def batches() -> Iterator[Batch]:
    """Without end: a main, and children of it that come, work and go."""
    yield batch(1, Accepted("/home/me/agents.toml", "0" * 64, "/usr/bin", FLEET), Opened("77", "warden"))
    yield batch(2, Born("a1", "lead", None, Spec("lines", task="Go ä\udc80"), LEAD, declared=True))
    yield batch(3, Starting("a1", 1), Started("a1", 1, 4711, 99), Ready("a1", 1, "s1", "big-1"))
    for number in count(2):
        for at, facts in enumerate(_child(f"a{number}", number)):
            yield batch(number + at / 16, *facts)


def _child(agent: str, number: int) -> Iterator[tuple[Fact, ...]]:
    spec = Spec("lines", role="scout", max_tasks=3)
    yield (Born(agent, f"SubAgent-{number:02}", "a1", spec, Grant(tokens=1000 + number)), Starting(agent, 1))
    yield (Started(agent, 1, 4711 + number, 100 + number), Ready(agent, 1))
    yield (Queued(agent, Input(f"m{number}", "task", "Look ä", "operator")),)
    yield (Handed(agent, 1, (f"m{number}",), turn=True, introduce=True),)
    usage = Usage(10 * number, 3, 2, number, 0, 1, 0, 1_000_000)
    yield (Spent(agent, 1, (Report("call", usage, f"call-{number}", "s", "big-1", 12.5), Report("total", usage))),)
    yield (Spoke(agent, 1, f"line {number} ä"), TurnEnded(agent, 1, "ok", "Done."), TaskEnded(agent, "done", "seen"))
    yield (Renamed(agent, f"scout-{number}", f"SubAgent-{number:02}"),)
    if number % 2:
        killed = (Killed(5, "sh", "KILL", escaped=True),)
        yield (Leaving(agent, "gone", "disband"), Exited(agent, 1, None, 9, 1.25, killed), Left(agent, "gone"))
        yield (Forgotten(agent),)


def batch(at: float, *facts: Fact) -> Batch:
    return Batch(float(at), "fleet", facts)


def replayed(told: list[Batch], name: str = PROJECT) -> Project:
    """The state that these batches come to."""
    project = Project(name)
    for each in told:
        for fact in each.facts:
            apply(project, fact, each.at)
    return project


def text(project: Project) -> list[bytes]:
    """The whole state, to compare: order counts too."""
    return list(snapshot.lines(project, Link(0, "")))


def fill(directory: Path, until: int, segment: int = SEGMENT) -> tuple[Journal, Project]:
    """A journal of this life up to record `until`, and its state, both still open; a batch a write, in segments."""
    journal, past, _ = Journal.open(directory, PROJECT, segment)
    project = past.project()
    for each in islice(batches(), journal.seq, until):
        take(journal, project, each)
    return journal, project


def take(journal: Journal, project: Project, told: Batch) -> None:
    """One batch as a desk takes it: applied, encoded, written, and the segment ended where it is full."""
    for fact in told.facts:
        apply(project, fact, told.at)
    drafts, seq = [journal.encode(told)], journal.seq
    state = snapshot.copied(project) if journal.full() else None
    journal.write(drafts)
    if state is not None:
        journal.rotate(state, seq)
