"""How full the window of an agent's conversation is. It shows what was reported: what nobody says is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from supervisor.core.ledger import Report
    from supervisor.core.state import Node


def take(node: Node, report: Report) -> None:
    """Take what a report says of it, before the report's model is the agent's."""
    if report.window:
        node.window, node.sized = report.window, report.sized
    elif report.held is not None and report.model and report.model != node.model:
        node.window, node.sized = None, ""  # that was another model's
    context = report.context if report.context is not None and report.context >= 0 else None  # not a number is neither
    if report.held is not None:
        node.held = report.held if report.held >= 0 else None
        if context is None and node.window and node.held is not None:
            context = min(100.0, 100 * node.held / node.window)
        node.context = context
    elif context is not None:
        node.context, node.held = context, None
