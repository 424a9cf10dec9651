"""A cold command costs a few standard modules and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.ctl import fleets
from tests.ctl.server import serve

HEAVY = {"asyncio", "attr", "attrs", "cattrs", "dataclasses", "decimal", "importlib.metadata", "inspect", "logging"}
HEAVY |= {
    "pathlib",
    "psutil",
    "shutil",
    "subprocess",
    "tempfile",
    "tomli_w",
    "tomllib",
    "trio",
    "typing",
    "unicodedata",
}
PROGRAM = """
import sys
from supervisor.ctl.main import main
code = main(sys.argv[1:])
print("\\n" + " ".join(sorted(sys.modules)))
sys.exit(code)
"""


def loaded(*args: str, code: int = 0) -> set[str]:
    """The modules that a command had imported at its end. Without site-packages, whose hooks import what they like."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    environ = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-Sc", PROGRAM, *args], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_help_imports_nothing_heavy() -> None:
    assert not loaded("--help") & HEAVY


@pytest.mark.parametrize("args", [("tree",), ("tree", "--json"), ("usage",), ("status",), ("stop", "lead")])
def test_a_call_imports_nothing_heavy(args: tuple[str, ...]) -> None:
    fleet = fleets.small()
    fleet["agents"][0]["last"] = "plain words"
    answers = {"tree": fleet, "usage": {}, "status": {}, "stop": {"agent": {"id": "a1", "name": "lead"}}}
    with serve(answers):
        found = loaded(*args)
    assert not found & HEAVY
    mine = {name for name in found if name.startswith("supervisor.") and name.count(".") == 2}
    assert {name.split(".")[1] for name in mine} <= {"ctl", "doors", "core"}
    assert {name for name in mine if ".core." in name} <= {"supervisor.core.units"}
    assert {name for name in mine if ".doors." in name} <= {"supervisor.doors.verbs", "supervisor.doors.paths"}
