"""A process number is nobody's identity: it is given to a stranger as soon as it is free."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
import trio

from tests.e2e.wrapped import FREE
from tests.house import PATIENCE

ROOT = Path(__file__).parents[2]


async def test_no_stranger_is_signalled_where_numbers_are_given_away_at_once(tier: str, tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("takes root to have a pid namespace with few numbers")
    if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 14):
        pytest.skip("before Linux 6.14 the highest number is the whole machine's")
    room = ["unshare", "--pid", "--fork", "--mount", "--kill-child"]
    with trio.fail_after(3 * PATIENCE):
        done = await trio.run_process(
            [*room, sys.executable, "-m", "tests.e2e.wrapped", tier, str(tmp_path)],
            cwd=ROOT, capture_stdout=True, capture_stderr=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert int(done.stdout) > 2 * FREE  # so each number was somebody else's
