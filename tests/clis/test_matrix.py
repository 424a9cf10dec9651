"""The page that tells which test drives which CLI through what: every test that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent.parent
PAGE = TESTS.parent / "docs" / "cli-matrix.md"


def test_every_cell_of_the_matrix_is_a_test_that_is_there() -> None:
    rows = [line.strip("|").split("|") for line in PAGE.read_text().splitlines() if line.startswith("| ")][1:]
    there = "".join(
        file.read_text() for place in ("clis", "kinds", "once", "pi") for file in TESTS.glob(f"{place}/*.py")
    )
    for what, *cells in rows:
        for cell in cells:
            named = re.findall(r"`(\w+)`", cell)
            assert named, what
            assert not [name for name in named if f"def test_{name}(" not in there], what
