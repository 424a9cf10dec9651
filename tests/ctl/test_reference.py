"""The commands in the docs are the commands there are."""

from __future__ import annotations

from pathlib import Path

from supervisor.ctl.own import KNOWN
from supervisor.ctl.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


def test_the_page_of_commands_is_current() -> None:
    assert PAGE.read_text("utf-8") == reference(), "python -m supervisor.ctl.reference > docs/commands.md"


def test_the_page_has_every_verb_with_its_example() -> None:
    page = reference()
    for verb in KNOWN.values():
        assert f"### {verb.name}\n" in page
        assert verb.example in page
