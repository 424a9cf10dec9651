"""Grants as values: rights (sets), budgets (conserved numbers) and bounds."""

from __future__ import annotations

from attrs import frozen

RIGHTS = ("tools", "models", "kinds", "paths", "env", "fork", "talk")
BUDGETS = ("tokens", "turns", "cost", "descendants")
BOUNDS = ("children", "depth", "wall")


@frozen
class Grant:
    """What an agent holds, or what is asked for. None is "not named": the parent's, or everything at a main.

    `tokens`, `turns`, `descendants`, `children`, `depth` are counts; `cost` is in nano-USD; `wall` in seconds.
    `paths` are absolute. `models` may end in `*`, the only pattern."""

    tools: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None
    paths: tuple[str, ...] | None = None
    env: tuple[str, ...] | None = None
    fork: bool | None = None
    talk: bool | None = None
    tokens: int | None = None
    turns: int | None = None
    cost: int | None = None
    descendants: int | None = None
    children: int | None = None
    depth: int | None = None
    wall: float | None = None
