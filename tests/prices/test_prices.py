"""What a call cost whose program does not say: as the table says, to the nano-dollar, and never a guess."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import Usage as Theirs

from supervisor.core.ledger import NANO, Report, Usage
from supervisor.kinds.table import KINDS
from supervisor.runtime import pricing
from tests.prices import make_table

SPENT = Usage(input=1000, cache_read=20_000, cache_write=300, output=4000, reasoning=1500, calls=1)
RAW = json.loads(pricing.TABLE.read_text())


def test_the_table_is_what_its_library_knows() -> None:
    assert make_table.text(make_table.table(RAW["date"])) == pricing.TABLE.read_text()
    assert pricing.source() == f"{RAW['source']} of {RAW['date']}"


def test_every_model_costs_what_its_library_says() -> None:
    day = datetime.fromisoformat(RAW["date"]).replace(tzinfo=UTC)
    whole = Theirs(
        input_tokens=SPENT.input + SPENT.cache_read + SPENT.cache_write,
        cache_read_tokens=SPENT.cache_read,
        cache_write_tokens=SPENT.cache_write,
        output_tokens=SPENT.output,
    )
    compared = 0
    for provider in get_snapshot().providers:
        for model in provider.models if provider.id in make_table.PROVIDERS else ():
            found = pricing.rates(f"{provider.id}/{model.id}")
            if found is not None and provider.find_model(model.id) is model:
                price = model.get_prices(day).calc_price(whole)["total_price"]
                assert abs(Decimal(found.cost(SPENT)) - price * NANO) <= 1, model.id
                compared += 1
    assert compared > 200


@pytest.mark.parametrize(
    ("model", "same"),
    [
        ("gpt-5-codex", "openai/gpt-5"),
        ("anthropic/claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("google/gemini-2.5-pro", "gemini-2.5-pro"),
    ],
)
def test_a_model_is_known_as_programs_name_it(model: str, same: str) -> None:
    assert pricing.rates(model) == pricing.rates(same) is not None


@pytest.mark.parametrize(
    "model",
    ["", "fake-model", "fake/gpt-5", "gpt-5-codex-of-mine", "claude", "claude-sonnet-4-5-mine", "GPT-5", "gpt-*"],
)
def test_a_model_that_is_not_known_has_no_price(model: str) -> None:
    assert pricing.rates(model) is None


def test_a_cost_that_the_program_says_wins() -> None:
    price = pricing.estimator(KINDS["lines"], lambda: "gpt-5")
    guessed = price(Report("call", SPENT))
    assert guessed.usage.cost == guessed.usage.estimated > 0
    assert guessed.prices == pricing.source()
    said = Report("call", Usage(input=5, cost=7), model="gpt-5")
    assert price(said) == said
    later = Report("call", Usage(input=5), model="gpt-5")
    assert price(later) == later, "who speaks of costs says what is free as well"


@pytest.mark.parametrize("protocol", sorted(name for name, kind in KINDS.items() if "cost" in kind.tells))
def test_a_program_that_tells_costs_is_believed(protocol: str) -> None:
    report = Report("call", SPENT, model="gpt-5")
    assert pricing.estimator(KINDS[protocol], lambda: "gpt-5")(report) == report


def test_a_total_costs_what_its_calls_do() -> None:
    price = pricing.estimator(KINDS["codex"], lambda: "gpt-5")
    calls = [price(Report("call", SPENT)).usage for _ in range(3)]
    assert price(Report("total", SPENT + SPENT + SPENT)).usage.cost == sum(each.cost for each in calls)


def test_what_was_reported_without_tokens_is_not_priced() -> None:
    report = Report("call", Usage(), context=12.0, model="gpt-5")
    assert pricing.estimator(KINDS["codex"], lambda: "gpt-5")(report) == report
