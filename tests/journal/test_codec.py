"""A fact and its JSON are one: nothing is lost, nothing is guessed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.core.facts import Born, Downed, Handed, Leaving, Refused, Repaired, Spent
from supervisor.core.ledger import Report, Usage
from supervisor.core.spec import Spec
from supervisor.runtime.journal.codec import FACTS, UnreadableError, dump, load
from tests.facts import all_facts, values


@pytest.mark.parametrize("kind", all_facts(), ids=lambda kind: str(kind.__name__))
@given(data=st.data())
@settings(max_examples=30)
def test_every_fact_comes_back_equal_through_json(kind: type, data: st.DataObject) -> None:
    fact = data.draw(values(kind))
    back = load(json.loads(json.dumps(dump(fact))))
    assert back == fact
    assert dump(back) == dump(fact)


def test_every_fact_has_a_name_of_its_own() -> None:
    assert len(FACTS) == len(all_facts())


def test_fields_with_their_default_are_left_out() -> None:
    assert dump(Born("a1", "lead", None, Spec(kind="pi"))) == {
        "fact": "Born", "agent": "a1", "name": "lead", "parent": None, "spec": {"kind": "pi"},
    }  # fmt: skip


def test_numbers_keep_their_type() -> None:
    held = [load(json.loads(json.dumps(dump(Refused("fork", "no", held=value))))) for value in (3, 3.0, "3")]
    assert [type(fact.held) for fact in held if isinstance(fact, Refused)] == [int, float, str]


SPENT = dump(Spent("a1", 1, (Report("call", Usage(input=1)),)))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"fact": "Sold", "agent": "a1"}, "'Sold' is no fact"),
        ({"agent": "a1"}, "None is no fact"),
        ({"fact": ["Downed"]}, "is no fact"),
        (["Downed"], "an object"),
        (dump(Downed()) | {"why": "x"}, "why"),
        ({"fact": "Repaired"}, "'bytes' is missing @ Repaired.bytes"),
        (dump(Repaired(7)) | {"bytes": "7"}, "'7' is no int @ Repaired.bytes"),
        (dump(Repaired(7)) | {"bytes": True}, "True is no int @ Repaired.bytes"),
        (dump(Repaired(7)) | {"bytes": 7.0}, "7.0 is no int @ Repaired.bytes"),
        (dump(Handed("a1", 1, ("m1",), turn=True)) | {"inputs": "m1"}, "'m1' is no list @ Handed.inputs"),
        (dump(Handed("a1", 1, ("m1",), turn=True)) | {"turn": 1}, "1 is no bool @ Handed.turn"),
        (dump(Leaving("a1", "gone", "asked")) | {"to": "away"}, "Leaving.to"),
        (dump(Refused("fork", "no")) | {"held": [1]}, "Refused.held"),
        (SPENT | {"reports": [{"scope": "call", "usage": {"input": None}}]}, "Spent.reports.usage.input"),
        (SPENT | {"reports": [{"scope": "call", "usage": {}, "extra": 1}]}, "extra"),
    ],
)
def test_what_is_no_fact_of_this_version_is_named(raw: Any, said: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        load(raw)
    assert said in str(caught.value)
