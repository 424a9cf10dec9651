"""`usage` and `metrics` as people, spreadsheets and collectors get them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from supervisor.core import facts, metrics, spending
from supervisor.core.ledger import NANO, Report, Usage
from tests.core.play import OPERATOR, Play, agent, fleet
from tests.ctl.server import ctl, serve

WIDE = {"COLUMNS": "200"}


def project(role: str = "integrator", model: str = "big") -> Play:
    """`lead` and `second` spent something; a call of `lead` never ended."""
    play = Play(fleet(agent("lead", role=role), agent("second", role="=cmd()")))
    play.ready("lead", "second")
    lead = Report("call", Usage(1000, 200, 30, 40, 7, 1, cost=NANO // 4, estimated=NANO // 4), model=model, prices="T")
    play.tell(facts.Spent("a1", 1, (lead,), incomplete=1))
    play.tell(facts.Spent("a2", 1, (Report("call", Usage(input=18_014_399 * 10**9, calls=1), model="odd"),)))
    return play


def told(play: Play, **asked: Any) -> dict[str, Any]:
    return spending.spending(play.project, OPERATOR, 5000.0, **asked)


def test_the_table_says_what_is_estimated_at_least_and_without_a_price() -> None:
    with serve({"usage": told(project())}):
        lines = ctl("usage", env=WIDE).stdout.splitlines()
    assert lines[0] == "project, all that was ever spent"
    assert lines[2].split()[:5] == ["lead", "a1", "integrator", "big", "standing"]
    assert "≥1.3k" in lines[2]
    assert "≥~$0.2500" in lines[2]
    assert "18P" in lines[3]
    assert lines[4].split()[:2] == ["total", "≥18P"]
    assert lines[5:] == [
        "≥ at least: 1 call ended before the whole usage was told",
        "~ estimated where the program says no cost: T",
        "without a known price: odd",
    ]


@pytest.mark.parametrize("by", spending.BY)
def test_every_grouping_is_drawn_and_its_lines_add_up(by: spending.By) -> None:
    play = project()
    answer = told(play, group=by)
    with serve({"usage": answer}) as daemon:
        text = ctl("usage", "--by", by, "--since", "7d", env=WIDE).stdout
        assert daemon.params("usage")["by"] == by
        assert daemon.params("usage")["since"] == "7d"
        rows = list(csv.DictReader(io.StringIO(ctl("usage", "--by", by, "--csv").stdout)))
        assert json.loads(ctl("usage", "--by", by, "--json").stdout) == answer
    assert text.splitlines()[1].split()[0] == ("AGENT" if by in ("agent", "branch") else by.upper())
    for key in ("input", "output", "calls", "incomplete"):
        assert sum(int(row[key]) for row in rows) == answer["total"][key]
    assert sum(float(row["cost"]) for row in rows) == pytest.approx(answer["total"]["cost"])


def test_a_spreadsheet_runs_nothing() -> None:
    with serve({"usage": told(project())}):
        rows = list(csv.DictReader(io.StringIO(ctl("usage", "--csv").stdout)))
    assert {row["role"] for row in rows} == {"integrator", "'=cmd()"}


def test_csv_and_json_are_not_both() -> None:
    assert ctl("usage", "--csv", "--json").returncode == 2


HOSTILE = 'in"te\\gra\ntor\x1b[2J é \ud800'


def samples(families: Iterator[Any]) -> dict[tuple[str, ...], float]:
    return {
        (each.name, *(value for _, value in sorted(each.labels.items()))): each.value
        for family in families
        for each in family.samples
    }


def test_a_parser_of_openmetrics_reads_what_metrics_writes() -> None:
    play = project(HOSTILE)
    with serve({"metrics": {"families": metrics.families([play.project])}}):
        done = ctl("metrics")
    assert done.returncode == 0, done.stderr
    found = samples(openmetrics(done.stdout))  # type: ignore[no-untyped-call]  # as it is
    role = 'in"te\\gra\ntor\x1b[2J é \\ud800'
    assert found["fleet_tokens_total", "big", "project", "project-1", role, "input"] == 1000
    assert found["fleet_cost_usd_total", "big", "project", "project-1", role] == 0.25
    assert found["fleet_incomplete_calls_total", "big", "project", "project-1", role] == 1
    assert found["fleet_agents", "project", "project-1", "standing"] == 2


def test_the_collector_of_text_files_reads_what_it_is_given(tmp_path: Path) -> None:
    file = tmp_path / "fleet.prom"
    with serve({"metrics": {"families": metrics.families([project(HOSTILE).project])}}):
        for _ in range(2):
            assert ctl("metrics", "--textfile", str(file)).stdout == f"wrote {file}\n"
    families = {family.name: family for family in prometheus(file.read_text())}
    assert families["fleet_tokens"].type == "counter"
    assert sum(each.value for each in families["fleet_calls"].samples) == 2
    assert file.stat().st_mode & 0o777 == 0o644
    assert [*tmp_path.iterdir()] == [file], "nothing half written lies beside it"


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with serve({"metrics": {"families": []}}):
        done = ctl("metrics", "--textfile", str(tmp_path / "no" / "fleet.prom"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot be written: No such file" in done.stderr


def test_no_agent_can_make_more_labels_than_there_may_be() -> None:
    play = project()
    for number in range(1000):
        play.tell(facts.Spent("a1", 1, (Report("call", Usage(input=1), model=f"m{number}"),)))
    families = {family["name"]: family for family in metrics.families([play.project])}
    assert len(families["fleet_calls"]["samples"]) <= 129
    assert sum(value for _, value in families["fleet_tokens"]["samples"]) == sum(
        node.own.tokens for node in play.project.agents.values()
    )
    assert {key for family in families.values() for labels, _ in family["samples"] for key in labels} == {
        "project", "project_id", "state", "role", "model", "type",
    }  # fmt: skip
