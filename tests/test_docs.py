"""Pages that are made from the source say what the source says now."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAKERS = sorted((ROOT / "docs").glob("make_*.py"))


@pytest.mark.parametrize("maker", MAKERS, ids=lambda path: str(path.stem))
def test_a_generated_page_is_current(maker: Path) -> None:
    made = runpy.run_path(str(maker))
    assert made["PAGE"].read_text() == made["page"](), "`make docs` writes it anew"


def test_every_dependency_is_used_and_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    page = (ROOT / "docs/dependencies.md").read_text()
    source = "\n".join(path.read_text() for path in (ROOT / "supervisor").rglob("*.py"))
    used = [re.split(r"[^\w-]", each)[0] for each in project["project"]["dependencies"]]
    for name in used:
        assert re.search(rf"^\s*(import|from) {name.replace('-', '_')}\b", source, re.MULTILINE), f"{name} is not used"
    listed = re.findall(r"^\| ([a-z][\w, -]*) \|", page, re.MULTILINE)
    named = {name for row in listed for name in row.split(", ")}
    developed = {re.split(r"[^\w-]", each)[0] for each in project["dependency-groups"]["dev"]}
    assert {*used, *developed} == named - {"at run time", "in development"}


def test_every_promise_has_a_test_with_the_name_it_gives() -> None:
    page = (ROOT / "docs/promises.md").read_text()
    source = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert rows
    for row in rows:
        named = re.findall(r"`(test_\w+)`", row)
        assert named, f"no test is named: {row}"
        for name in named:
            assert re.search(rf"\bdef {name}\(", source), f"{name} is no test"


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda path: path.name
)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"
