"""Pages that are made from the source say what the source says now."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

MAKERS = sorted((Path(__file__).parents[1] / "docs").glob("make_*.py"))


@pytest.mark.parametrize("maker", MAKERS, ids=lambda path: str(path.stem))
def test_a_generated_page_is_current(maker: Path) -> None:
    made = runpy.run_path(str(maker))
    assert made["PAGE"].read_text() == made["page"](), "`make docs` writes it anew"
