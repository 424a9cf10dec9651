"""The directory that leads every agent's PATH. It holds the client and nothing else: no other program of ours may
shadow the agent's own."""

from __future__ import annotations

import sys
from pathlib import Path

COMMANDS = {"supervisorctl": "main", "disband": "disband"}


def lay_out(directory: Path) -> str:
    """Write the client's commands into `directory`; returns it."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, entry in COMMANDS.items():
        script = directory / name
        fresh = directory / f".{name}"
        # -I keeps an agent's working directory and PYTHON* variables out of what is imported.
        fresh.write_text(
            f"#!{sys.executable} -I\nimport sys\nfrom supervisor.ctl.main import {entry}\nsys.exit({entry}())\n",
            "utf-8",
        )
        fresh.chmod(0o755)
        fresh.replace(script)
    return str(directory)
