"""Makes supervisor/prices/table.json of the installed genai-prices: `python -m tests.prices.make_table DATE`, with the
date of that release."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from genai_prices.data_snapshot import get_snapshot

TABLE = Path(__file__).parents[2] / "supervisor" / "prices" / "table.json"
#: Those who sell their own models, under names that are theirs. Who sells everybody's has prices of his own.
PROVIDERS = ("anthropic", "deepseek", "google", "meta", "minimax", "mistral", "moonshotai", "openai", "x-ai", "zai")
FIELDS = ("input_mtok", "cache_read_mtok", "cache_write_mtok", "output_mtok")


def names(model: Any) -> Iterator[str]:
    """What a model is called; with a `*` where its name may go on with a date."""
    yield model.id
    clauses = [model.match]
    while clauses:
        clause = clauses.pop()
        clauses += getattr(clause, "or_", ())
        if hasattr(clause, "equals"):
            yield clause.equals
        if hasattr(clause, "starts_with"):
            yield clause.starts_with.rstrip("-@") + "*"


def rates(model: Any, day: datetime) -> list[int] | None:
    """Nano-USD for a million tokens of input, cache reads, cache writes and output; None without a price for tokens."""
    price = model.get_prices(day)
    found = [_base(getattr(price, field)) for field in FIELDS]
    if found[0] is None or found[3] is None:
        return None
    # What has no price of its own is input like any other.
    return [int((found[0] if each is None else each) * 1_000_000_000) for each in found]


def _base(price: Any) -> Decimal | None:
    """Without what long contexts cost more."""
    return cast("Decimal | None", getattr(price, "base", price))


def table(date: str) -> dict[str, Any]:
    """The whole file."""
    day = datetime.fromisoformat(date).replace(tzinfo=UTC)
    models: dict[str, dict[str, list[int]]] = {}
    windows: dict[str, dict[str, int]] = {}
    for provider in get_snapshot().providers:
        if provider.id in PROVIDERS:
            for model in provider.models:
                found = rates(model, day)
                if found is not None:
                    models.setdefault(provider.id, {}).update(dict.fromkeys(names(model), found))
                if model.context_window:
                    windows.setdefault(provider.id, {}).update(dict.fromkeys(names(model), model.context_window))
    source = f"genai-prices {version('genai-prices')}"
    return {"source": source, "date": date, "models": models, "windows": windows}


def text(made: dict[str, Any]) -> str:
    """A line a name, so that another release is read as a difference."""
    head = "".join(f"{json.dumps(key)}: {json.dumps(made[key])},\n" for key in ("source", "date"))
    return "{" + head + ",\n".join(part(key, made[key]) for key in ("models", "windows")) + "}\n"


def part(name: str, made: dict[str, dict[str, Any]]) -> str:
    """What is known of each provider's models."""
    providers = []
    for provider, known in sorted(made.items()):
        lines = ",\n".join(f"  {json.dumps(model)}: {value}" for model, value in sorted(known.items()))
        providers.append(f" {json.dumps(provider)}: {{\n{lines}\n }}")
    return f'"{name}": {{\n' + ",\n".join(providers) + "\n}"


if __name__ == "__main__":
    TABLE.write_text(text(table(sys.argv[1])))
