"""A journal of an earlier day is read for ever, and means what it meant."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from supervisor.core.apply import apply
from supervisor.core.state import Project
from supervisor.runtime.journal import snapshot
from supervisor.runtime.journal.chain import Batch, Link
from supervisor.runtime.journal.codec import FACTS
from supervisor.runtime.journal.journal import Journal
from supervisor.runtime.journal.segments import NAME
from supervisor.runtime.journal.verify import verify
from tests.journal import golden_life
from tests.journal.golden import GOLDEN, MEANING, PROJECT, meaning
from tests.journal.golden_life import LIFE, STATE, TREES
from tests.journal.life import replayed, take, text


def holds(now: Any, then: Any) -> bool:
    """What was meant then is meant now; fields that came since do not count."""
    if isinstance(then, dict):
        return isinstance(now, dict) and all(key in now and holds(now[key], value) for key, value in then.items())
    if isinstance(then, list):
        return isinstance(now, list) and len(now) == len(then) and all(map(holds, now, then))
    return bool(now == then and type(now) is type(then))


def test_the_golden_journal_opens_and_means_what_it_meant(tmp_path: Path) -> None:
    shutil.copy(GOLDEN, tmp_path / NAME)
    assert verify(tmp_path).state == "closed"
    journal, past, cut = Journal.open(tmp_path, PROJECT)
    journal.abandon()
    assert cut == 0
    meant = [json.loads(line) for line in MEANING.read_text().splitlines()]
    told = {batch.seq: meaning(batch.facts) for batch in past.batches if batch.facts}
    assert told.keys() == {each["seq"] for each in meant}
    for each in meant:
        assert holds(told[each["seq"]], each["facts"]), f"record {each['seq']} means something else now"


def test_the_golden_journal_holds_every_fact(tmp_path: Path) -> None:
    shutil.copy(GOLDEN, tmp_path / NAME)
    journal, past, _ = Journal.open(tmp_path, PROJECT)
    journal.abandon()
    missing = FACTS.keys() - {type(fact).__name__ for batch in past.batches for fact in batch.facts}
    assert not missing, "python -m tests.journal.golden adds them"


def life(directory: Path) -> list[Batch]:
    """The golden life."""
    shutil.copy(LIFE, directory / NAME)
    assert verify(directory, replay=True).state == "open"
    journal, past, cut = Journal.open(directory, golden_life.PROJECT)
    journal.abandon()
    assert cut == 0
    return past.batches


def test_the_golden_life_comes_to_what_it_came_to(tmp_path: Path) -> None:
    project = Project(golden_life.PROJECT)
    chapters = {chapter["seq"]: chapter for chapter in json.loads(TREES.read_text())}
    for batch in life(tmp_path):
        for fact in batch.facts:
            apply(project, fact, batch.at)
        if (chapter := chapters.pop(batch.seq, None)) is not None:
            assert holds(golden_life.tree(project), chapter["tree"]), f"chapter {chapter['chapter']} ends elsewhere"
    assert not chapters
    then = json.loads(STATE.read_text())
    known = (then["meaning"], then["shape"]) == (snapshot.MEANING, snapshot.SHAPE)
    assert known, "the state has another shape now: python -m tests.journal.golden_life says it anew"
    same = snapshot.digest(project, Link(0, "")) == then["digest"]
    assert same, "the same facts come to another state: raise snapshot.MEANING, and say it anew as above"


def test_the_golden_life_holds_every_fact(tmp_path: Path) -> None:
    missing = golden_life.missing(life(tmp_path))
    assert not missing, "another chapter in tests/journal/golden_life.py tells of them"


def test_the_golden_life_in_segments_comes_to_the_same(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    journal, past, _ = Journal.open(tmp_path / "parts", golden_life.PROJECT, 3000)
    project = past.project()
    batches = life(tmp_path / "whole")
    for batch in batches:
        take(journal, project, batch)
    journal.abandon()
    assert journal.segment > 3
    assert verify(tmp_path / "parts", replay=True).notes == ()
    again, found, _ = Journal.open(tmp_path / "parts", golden_life.PROJECT)
    again.abandon()
    assert text(found.project()) == text(replayed(batches, golden_life.PROJECT))
