"""Carries out what the core decides about parked agents and stopped logins: places, alarms, and telling other projects.
It holds no rule."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from supervisor.core import facts
from supervisor.core.state import Node
from supervisor.runtime.alarms import Alarms
from supervisor.runtime.breakers import FORGOTTEN

if TYPE_CHECKING:
    from supervisor.core.facts import Fact
    from supervisor.runtime.house import House


class Parks:
    """Of one project."""

    def __init__(self, house: House) -> None:
        self._house = house
        self.alarms = Alarms()

    def holds(self, node: Node, credential: str) -> bool:
        """Whether a run with this login may not begin: it is stopped, and this is not the agent to try it."""
        return credential in self._house.desk.project.tripped and not node.trying

    def act(self, fact: facts.Ready | facts.Parked | facts.Tripped | facts.Mended | facts.Opened) -> None:
        """Carry out one durable fact."""
        project = self._house.desk.project
        match fact:
            case facts.Ready():
                node = project.agents.get(fact.agent)
                login = node.credential if node is not None else ""
                self._house.logins.starts.free(fact.agent, fact.run, login)
            case facts.Parked():
                self._park(fact)
            case facts.Tripped():
                self._house.logins.breakers.tripped(fact, project)
                self._forget(fact.credential)
            case facts.Mended():
                self._house.logins.breakers.mended(fact, project)
            case facts.Opened():
                for credential in project.tripped:
                    self._forget(credential)

    def _park(self, fact: facts.Parked) -> None:
        node = self._house.desk.project.agents.get(fact.agent)
        if node is None or node.park is None or node.until != fact.until:
            return
        # After a death of the daemon it has no run, but a place: its children stand below it.
        if node.id not in self._house.hosts and not self._house.closing:
            self._house.settle_in(node)
        self.alarms.set(f"agent {node.id}", fact.until, lambda: self._due(node))

    def _due(self, node: Node) -> None:
        if node.park is not None and not self._house.logins.breakers.put_off(node.credential, self._house):
            self._observe(facts.Due(node.id, node.run))

    def _forget(self, credential: str) -> None:
        """Nobody may be left to try it: at some time it is over all the same."""
        trip = self._house.desk.project.tripped.get(credential)
        if trip is not None:
            until = max(trip.until, time.time()) + FORGOTTEN
            self.alarms.set(f"login {credential}", until, lambda: self._over(credential, trip.until))

    def _over(self, credential: str, until: float) -> None:
        trip = self._house.desk.project.tripped.get(credential)
        if trip is not None and trip.until == until:
            self._house.logins.breakers.forget(credential)

    def _observe(self, fact: Fact) -> None:
        try:
            self._house.desk.observe(fact)
        except Exception as error:  # noqa: BLE001  # shown, and goes no further: the alarms are everybody's
            self._house.fault(f"alarm of {self._house.directory.name}", error)
