"""Writes docs/facts.md from the classes of the facts: `make docs`."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import get_args

import attrs

from supervisor.core.facts import Fact

PAGE = Path(__file__).with_name("facts.md")
HEAD = """# Facts

What a journal can hold, in the order of an agent's life. Made from `supervisor/core/facts.py` by `make docs`.

| fact | means | fields (`=` default, left out of the journal) |
|---|---|---|
"""


def shown(field: attrs.Attribute[object]) -> str:
    """A field as the table has it."""
    if field.default is attrs.NOTHING:
        return f"`{field.name}`"
    default = type(field.default).__name__ + "()" if attrs.has(type(field.default)) else repr(field.default)
    return f"`{field.name} = {default}`"


def page() -> str:
    """The whole page."""
    rows = []
    for kind in get_args(Fact):
        own = kind.__dict__.get("__doc__") or ""
        means = "" if own.startswith("Method generated") else " ".join(inspect.cleandoc(own).split())
        fields = ", ".join(map(shown, attrs.fields(kind))) or "none"
        rows.append(f"| {kind.__name__} | {means} | {fields} |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page())
