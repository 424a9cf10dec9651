"""Another package of the same name is noticed before it can do anything strange."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import supervisor.ctl.main
from tests.ctl.server import ctl

PACKAGE = Path(supervisor.ctl.main.__file__).parents[1]


def test_pypis_supervisor_in_the_same_directory_is_named_with_the_way_out(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "supervisor", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "supervisor" / "supervisorctl.py").write_text("# theirs\n")
    program = "import sys; from supervisor.ctl.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, "tree"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 78
    assert "PyPI's package `supervisor`" in done.stderr
    assert "an environment of its own" in done.stderr


def test_nothing_is_said_where_there_is_no_clash() -> None:
    assert ctl("--help").returncode == 0
