"""An agents.toml as a `Fleet`: read, layered over the personal file, checked whole, every fault told with its line.
It starts nothing and decides nothing about a living tree."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from attrs import frozen

from supervisor.config.build import build
from supervisor.config.layers import Origin
from supervisor.config.problems import ConfigError, Problem, Report
from supervisor.config.read import source
from supervisor.config.starter import shipped, starter
from supervisor.config.write import dump
from supervisor.core.spec import Fleet

__all__ = [
    "PROTOCOLS", "ConfigError", "Loaded", "Origin", "Problem", "dump", "explain", "load", "parse", "personal_file",
    "shipped", "starter",
]  # fmt: skip

#: The protocols there are, and whether each is a program that does one task and ends: the kinds of a fleet without any
#: `[kinds]`, but for `lines`, which needs a command.
PROTOCOLS: Final[Mapping[str, bool]] = {
    "lines": False, "scripted": False, "pi": False, "claude": False, "codex": False, "qwen": False,
    "gemini": True, "opencode": True,
}  # fmt: skip


@frozen
class Loaded:
    """The content as accepted: what it means, the hash of its bytes, and where each value comes from."""

    fleet: Fleet
    file: str
    sha256: str
    origins: tuple[Origin, ...]


def personal_file(environ: Mapping[str, str]) -> Path:
    """Where a person's own fleet and defaults are."""
    base = environ.get("XDG_CONFIG_HOME", "")
    root = Path(base) if os.path.isabs(base) else Path(os.path.expanduser("~"), ".config")
    return root / "fleet-supervisor" / "agents.toml"


def load(path: Path, *, personal: Path | None = None, protocols: Mapping[str, bool] = PROTOCOLS) -> Loaded:
    """The fleet of a file. Raises `ConfigError` with all that is wrong."""
    return _loaded(None, os.path.realpath(path), personal, protocols)


def parse(
    content: str, file: str, *, personal: Path | None = None, protocols: Mapping[str, bool] = PROTOCOLS
) -> Loaded:
    """The fleet of a content that was read elsewhere from `file` (absolute); its relative paths are relative to that
    file's directory. Raises `ConfigError` with all that is wrong."""
    return _loaded(content.encode(errors="surrogatepass"), file, personal, protocols)


def _loaded(data: bytes | None, file: str, personal: Path | None, protocols: Mapping[str, bool]) -> Loaded:
    """A `personal` file that does not exist has no say, and it has none over itself."""
    report = Report()
    own = os.path.realpath(personal) if personal is not None else ""
    alone = own == os.path.realpath(file)
    below = source("personal", own, None, report) if own and not alone and os.path.lexists(own) else None
    project = source("project", file, data, report)
    if project is None:
        raise report.error((own, file))
    fallback = "personal" if alone else os.path.basename(os.path.dirname(file))
    fleet, origins = build([below, project] if below else [project], fallback, protocols, report)
    if report.problems:
        raise report.error((own, file))
    return Loaded(fleet, file, project.sha256, origins)


def explain(loaded: Loaded) -> list[dict[str, str]]:
    """Each value in force with its origin, as `supervisorctl config` shows them."""
    return [{"key": one.key, "value": one.value, "origin": one.origin} for one in loaded.origins]
