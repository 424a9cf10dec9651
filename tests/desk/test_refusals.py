"""A refusal is an answer as any other: nobody hears of it before it is on record."""

from __future__ import annotations

from pathlib import Path

import pytest

from supervisor.core import facts
from supervisor.core.authority import Operator
from supervisor.core.refusals import Refusal, RefusedError
from supervisor.core.requests import Stop
from supervisor.core.state import Project
from supervisor.doors.calls import told
from supervisor.runtime.answer import Answer
from supervisor.runtime.desk import Desk
from supervisor.runtime.journal.journal import Journal


async def test_a_refusal_may_be_told_only_once_it_is_on_disk(tmp_path: Path) -> None:
    journal, _, _ = Journal.open(tmp_path / "p", "p")
    desk = Desk(Project("p"), journal, lambda _fact: None, lambda: 1)

    def asked() -> Answer:
        return desk.ask(Operator(), Stop("nobody-of-this-name"))

    first, again = asked(), asked()  # the second shares the record of the first
    of_a_door = desk.refuse(Operator(), "shutdown", Refusal("authority", "not yours"))
    for answer in (first, again, of_a_door):
        assert answer.refusal is not None
        assert not answer.durable.is_set()
    await desk.drain()
    for answer in (first, again, of_a_door):
        with pytest.raises(RefusedError):
            await told(answer)
    journal.close(0.0)
    again_open, past, _ = Journal.open(tmp_path / "p", "p")
    again_open.close(0.0)
    recorded = [fact.verb for batch in past.batches for fact in batch.facts if isinstance(fact, facts.Refused)]
    assert recorded == ["stop", "shutdown"]


async def test_a_refusal_that_rests_on_what_is_not_on_disk_yet_waits_for_that(tmp_path: Path) -> None:
    journal, _, _ = Journal.open(tmp_path / "p", "p")
    desk = Desk(Project("p"), journal, lambda _fact: None, lambda: 1)
    desk.ask(Operator(), Stop("x"))
    await desk.drain()
    desk.observe(facts.Opened("1", "warden"))
    assert not desk.ask(Operator(), Stop("x")).durable.is_set()
    await desk.drain()
    assert desk.ask(Operator(), Stop("x")).durable.is_set(), "an equal one is on record, and nothing is on its way"
    journal.close(0.0)
