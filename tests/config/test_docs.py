"""The configuration page knows every key there is, and its examples are accepted."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest

from supervisor.config import schema
from supervisor.config.agents_toml import ConfigError, parse
from supervisor.core.grants import Grant
from supervisor.core.spec import Resources
from supervisor.runtime.environment import BASE, ORDINARY

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()


@pytest.mark.parametrize(
    "table",
    [schema.AgentTable, schema.ProjectTable, schema.LimitsTable, schema.KindTable, schema.Document, Grant, Resources],
)
def test_no_key_is_missing_from_the_page(table: type) -> None:
    known = set(re.findall(r"`\[?([a-z_]+)(?:\.NAME)?\]?`", PAGE))
    assert {field.name for field in attrs.fields(table)} <= known | {"agents", "roles", "kinds"}


def test_the_example_is_accepted() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    fleet = parse(example, "/srv/agents.toml").fleet
    assert fleet.agents[0].children[0].spec.max_tasks == 4


def test_the_shown_errors_are_those_that_are_given() -> None:
    content = "\n" * 8 + '[defaults]\nkind = "pi"\n[agents.lead]\ngrant.tokens = "7"\n\ntols = []\n'
    with pytest.raises(ConfigError) as caught:
        parse(content, "/home/you/p/agents.toml")
    assert str(caught.value) in PAGE


def test_the_page_names_every_variable_that_is_passed_unasked() -> None:
    section = PAGE.split("## Environment")[1].split("## Model")[0]
    for name in (*BASE, *ORDINARY):
        assert f"`{name.upper()}`" in section, name  # the proxies are named once for both spellings
