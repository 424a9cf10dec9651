"""Starts the scripted agent: by its path and without the site directory, in two thirds of the time."""

from __future__ import annotations

import sys

if not __package__:
    sys.path.append(__file__.removesuffix("/supervisor/scripted/__main__.py"))

from supervisor.scripted.agent import main  # the path has to be there first

main()
