"""The cells of one project's agents, from their first run until they are empty. Where something cannot be ended,
nothing else starts under its name; whoever else there is goes on."""

from __future__ import annotations

import errno

from supervisor.core.state import Project, fold
from supervisor.runtime.containment.cell import Cell, Containment


class Places:
    """Gives each agent its cell, and takes it back when it is empty."""

    def __init__(self, containment: Containment) -> None:
        self._containment = containment
        self._left: dict[str, tuple[str, Cell]] = {}  # by agent, with the name it had: where something still lives

    def cell(self, agent: str, parent: Cell | None) -> Cell:
        """The agent's cell; the one that it left, where that is not empty. Raises OSError where there can be none."""
        _, left = self._left.pop(agent, ("", None))
        return left or self._containment.cell(agent, parent)

    def leave(self, cell: Cell, project: Project) -> None:
        """The agent leaves its cell."""
        node = project.agents.get(cell.agent)
        self._left[cell.agent] = node.name if node is not None else "", cell
        self._take_back()

    def check(self, name: str) -> None:
        """Raise OSError where a process of an agent of this name could not be ended yet."""
        self._take_back()
        for agent, (known, left) in self._left.items():
            if fold(known) == fold(name):
                pids = ", ".join(str(member.pid) for member in left.members())
                raise OSError(errno.EBUSY, f"process {pids} of {agent}, which could not be ended, still lives", name)

    def _take_back(self) -> None:
        for agent, (_, left) in list(self._left.items()):
            if not left.living():
                del self._left[agent]
                left.close()
