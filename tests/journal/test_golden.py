"""A journal of an earlier day is read for ever, and means what it meant."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from supervisor.runtime.codec import FACTS
from supervisor.runtime.journal import Journal
from supervisor.runtime.segments import NAME
from supervisor.runtime.verify import verify
from tests.journal.golden import GOLDEN, MEANING, PROJECT, meaning


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
