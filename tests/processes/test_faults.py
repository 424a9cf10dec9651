"""A fault of the supervisor's own is shown by `status` so that it can be found."""

from __future__ import annotations

from pathlib import Path

import trio

from supervisor.runtime.containment.cell import Containment
from supervisor.runtime.projects import Projects


async def test_a_fault_out_of_nested_tasks_is_shown_by_what_it_is_and_its_line(
    containment: Containment, nursery: trio.Nursery, tmp_path: Path
) -> None:
    projects = Projects(tmp_path, containment, 1, "", nursery)
    try:
        async with trio.open_nursery(), trio.open_nursery():
            raise ValueError("no good")  # noqa: TRY301  the fault is the test's own
    except* ValueError as group:
        projects.fault("host of a1", group)
    (fault,) = projects.faults
    assert fault["where"] == "host of a1"
    assert str(fault["what"]).startswith("ValueError: no good (test_faults.py:")
