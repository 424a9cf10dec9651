"""Installs the pinned agent CLIs from the npm registry into a cache outside git, once for all tests."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_ROOT = Path(__file__).parent.parent
_PINS = _ROOT / "tests" / "agent-clis" / "package.json"
_CACHE = _ROOT / ".cache" / "npm"


@cache
def agent_cli(package: str) -> str:
    """A PATH led by the package's commands and its node; skips the test where npm cannot give it."""
    pins: dict[str, str] = json.loads(_PINS.read_text())["dependencies"]
    node = _installed("node", pins["node"], os.environ["PATH"]) / "node" / "bin"
    path = f"{node}:{os.environ['PATH']}"
    commands = _installed(package, pins[package], path) / ".bin"
    return f"{commands}:{path}"


def _installed(package: str, version: str, path: str) -> Path:
    """The `node_modules` of one package in a directory of its own."""
    name = hashlib.sha256(f"{package}@{version}".encode()).hexdigest()[:12]
    place = _CACHE / f"{package.rpartition('/')[2]}-{version}-{name}"
    _CACHE.mkdir(parents=True, exist_ok=True)
    with (_CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            _install(f"{package}@{version}", place, path)
    return place / "node_modules"


def _install(what: str, place: Path, path: str) -> None:
    npm = shutil.which("npm", path=path)
    if npm is None:
        pytest.skip(f"no npm to install {what} with")
    fresh = place.with_name(f"{place.name}.part")
    shutil.rmtree(fresh, ignore_errors=True)
    argv = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock", "--prefix", str(fresh), what]
    # Programs that are run after they are installed leave files in TMPDIR, and a test would be blamed for them.
    with TemporaryDirectory(dir=_CACHE) as scratch:
        environment = {**os.environ, "PATH": path, "TMPDIR": scratch, "NODE_DISABLE_COMPILE_CACHE": "1"}
        # S603: the argv is npm and a pin of our own
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        pytest.skip(f"npm cannot install {what}: {said[-1] if said else done.returncode}")
    fresh.rename(place)
