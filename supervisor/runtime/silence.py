"""Tells when an agent has been silent in a turn for longer than it may (`quiet_kill`): one bell at most for each agent
that works, and none for one that may be silent. It ends nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from supervisor.core.facts import Silent

if TYPE_CHECKING:
    from supervisor.runtime.host import Host

#: Within the silence that an agent may keep it is looked so often whether anything of it works.
LOOKS = 4
#: No two looks are closer (seconds).
LEAST = 0.05
#: A bell that rings so late (seconds) says nothing: the daemon was stopped, and nobody can have heard the agent.
LATE = 5.0


class Silence:
    """One host's."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._set = False

    def listen(self) -> None:
        """A turn runs: see to it that a bell is set."""
        run, most = self._host.run, self._host.node.spec.quiet_kill
        if most and run is not None and not self._set:
            self._set = True
            run.pulse.look(run.cell)
            self._ring_after(most / LOOKS)

    def _ring_after(self, delay: float) -> None:
        due = trio.current_time() + delay
        self._host.after(delay, lambda: self._ring(due))

    def _ring(self, due: float) -> None:
        run, node = self._host.run, self._host.node
        most = node.spec.quiet_kill
        self._set = False
        if run is None or not most or node.state != "working":
            return
        run.pulse.look(run.cell)
        if trio.current_time() > due + LATE:
            run.pulse.overslept()
        still = run.pulse.still
        if still >= most:
            self._host.house.desk.observe(Silent(self._host.agent, run.number, round(still, 3)))
            return
        self._set = True
        self._ring_after(max(LEAST, min(most / LOOKS, most - still)))
