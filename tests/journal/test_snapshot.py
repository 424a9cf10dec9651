"""A state and its file are one, whatever the state consists of."""

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.core.apply import apply
from supervisor.core.state import Node, Project
from supervisor.runtime.journal import snapshot
from supervisor.runtime.journal.chain import Carry, Link
from tests.facts import values
from tests.journal.life import batches, replayed, text

AT = Link(7, "a" * 64)


def carry(project: Project, digest: str, shape: str = snapshot.SHAPE) -> Carry:
    return Carry(1.0, project.id, 2, AT.seq, digest, shape, prev=AT.hash)


@given(project=values(Project), nodes=st.lists(values(Node), max_size=3, unique_by=lambda node: node.id))
@settings(max_examples=25)
def test_every_state_comes_back_equal_and_in_the_same_order(project: Project, nodes: list[Node]) -> None:
    project.agents = {node.id: node for node in nodes}
    with TemporaryDirectory() as name:
        path = Path(name) / "snapshot.jsonl"
        digest, size = snapshot.write(path, project, AT)
        assert size == path.stat().st_size
        assert digest == snapshot.digest(project, AT)
        assert snapshot.check(path, carry(project, digest)) == ""
        back = snapshot.load(path, carry(project, digest))
    assert back == project
    assert text(back) == text(project)


@given(project=values(Project), nodes=st.lists(values(Node), max_size=3, unique_by=lambda node: node.id))
@settings(max_examples=25)
def test_a_copy_is_equal_and_shares_nothing_that_changes(project: Project, nodes: list[Node]) -> None:
    project.agents = {node.id: node for node in nodes}
    made = snapshot.copied(project)
    assert made == project
    assert text(made) == text(project)

    def changeable(value: Any) -> set[int]:
        if attrs.has(type(value)):
            inner = [getattr(value, each.name) for each in attrs.fields(type(value))]
        else:
            inner = (
                [*value.values()] if isinstance(value, dict) else [*value] if isinstance(value, list | tuple) else []
            )
        own = {id(value)} if isinstance(value, list | dict | set) or type(value).__hash__ is None else set()
        return own.union(*map(changeable, inner))

    assert not changeable(made) & changeable(project)


def test_a_copy_stays_as_it_was_while_facts_are_applied() -> None:
    told = list(islice(batches(), 60))
    project = replayed(told[:30])
    made, before = snapshot.copied(project), text(project)
    for batch in told[30:]:
        for fact in batch.facts:
            apply(project, fact, batch.at)
    assert text(made) == before != text(project)


@pytest.mark.parametrize("other", ["hash", "seq", "prev", "project", "shape"])
def test_a_file_that_is_another_snapshot_is_not_taken(tmp_path: Path, other: str) -> None:
    path = tmp_path / "snapshot.jsonl"
    project = replayed(list(islice(batches(), 30)))
    digest, _ = snapshot.write(path, project, AT)
    due = carry(project, digest)
    wrong: dict[str, dict[str, Any]] = {
        "hash": {"snapshot": "0" * 64},
        "seq": {"seq": 8},
        "prev": {"prev": "b" * 64},
        "project": {"project": "x"},
    }
    with pytest.raises(snapshot.UnusableError):
        snapshot.load(path, attrs.evolve(due, **wrong.get(other, {"shape": "another"})))
    assert snapshot.load(path, due) == project


def test_what_the_state_consists_of_is_named_alike_in_every_process() -> None:
    program = "from supervisor.runtime.journal import codec, snapshot; print(snapshot._shape())"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == snapshot.SHAPE == snapshot._shape()


def test_another_meaning_is_another_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "MEANING", snapshot.MEANING + 1)
    assert snapshot._shape() != snapshot.SHAPE
