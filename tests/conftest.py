"""Fixtures that several test packages use."""

from __future__ import annotations

from tests.unprivileged import unprivileged

__all__ = ["unprivileged"]
