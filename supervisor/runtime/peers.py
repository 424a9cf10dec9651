"""Names the caller at the other end of a Unix socket, by what the kernel says of it and nothing else. It reads,
decides and must never signal, wait, or take a caller's word; whatever it cannot read to the end is nobody."""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
from collections.abc import Callable, Collection, Mapping
from typing import Final

from attrs import define, field, frozen

from supervisor.core.authority import Agent, Nobody, Operator, Principal

#: <asm-generic/socket.h>; Python names it from 3.14 on. A pidfd of the peer that connected, Linux 6.5.
SO_PEERPIDFD: Final = 77
#: struct ucred: pid, uid, gid.
CREDENTIALS: Final = struct.Struct("=iII")
#: A person's shell has some ten ancestors. Whoever hides behind more is nobody, and costs us no more than this many
#: reads.
DEEPEST: Final = 256
_ATTEMPTS: Final = 4

#: Who a process is for good: its pid and its start time (/proc/PID/stat field 22).
Identity = tuple[int, int]


@frozen
class Link:
    """One process of an ancestry, as it was read: itself, and its parent's pid."""

    pid: int
    start: int
    parent: int


def read_link(pid: int) -> Link | None:
    """The process as it is now; None if there is none, or it is hidden from us. Raises OSError where we are short of
    something ourselves."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            stat = os.read(fd, 4096)
        finally:
            os.close(fd)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    # The name stands in parentheses and may hold anything, these included.
    fields = stat[stat.rfind(b")") + 2 :].split(b" ", 20)
    return Link(pid, int(fields[19]), int(fields[1])) if len(fields) > 20 else None


def identity(pid: int) -> Identity | None:
    """(pid, start time) of a process that lives."""
    link = read_link(pid)
    return None if link is None else (pid, link.start)


class _UnsettledError(Exception):
    """The ancestry changed under the walk."""


def _nothing(_pid: int) -> str | None:
    return None


@frozen
class Peers:
    """Everything a caller is judged by. `runs` names the leader of each living run; `daemon` are our own processes,
    the warden's included; `mark_of` and `cell_of` answer the mark a process carries and the agent whose cell it lies
    in, None if neither. A mapping may change at any time: it is read afresh."""

    uid: int
    runs: Mapping[Identity, Agent]
    daemon: Collection[Identity]
    mark_of: Callable[[int], str | None] = _nothing
    cell_of: Callable[[int], str | None] = _nothing

    def resolve(self, sock: socket.socket) -> Caller:
        """Who connected. The caller is closed by whoever closes the socket."""
        pid, uid, _ = CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
        try:
            pidfd = -1 if self.stranger(pid, uid) else _pidfd(sock, pid)
        except OSError as problem:
            return Caller(self, pid, -1, Nobody(f"process {pid} is gone or hidden: {problem.strerror}"))
        return self._meet(pid, uid, pidfd)

    def writer(self, pid: int, uid: int) -> Principal:
        """Who a process is that wrote on another's connection."""
        try:
            pidfd = -1 if self.stranger(pid, uid) else os.pidfd_open(pid)
        except OSError as problem:
            return Nobody(f"process {pid} is gone or hidden: {problem.strerror}")
        caller = self._meet(pid, uid, pidfd)
        caller.close()
        return caller.principal

    def _meet(self, pid: int, uid: int, pidfd: int) -> Caller:
        why = self.stranger(pid, uid)
        if why:
            return Caller(self, pid, -1, Nobody(why))
        principal, chain = self.walk(pid, pidfd)
        return Caller(self, pid, pidfd, principal, chain)

    def stranger(self, pid: int, uid: int) -> str:
        """Why a caller is nobody whatever its ancestry, "" if it may be somebody."""
        if pid <= 0:
            return "it lives outside this pid namespace"
        return "" if uid == self.uid else f"it runs as another user (uid {uid}, ours is {self.uid})"

    def walk(self, pid: int, pidfd: int) -> tuple[Principal, tuple[Link, ...]]:
        """The caller's name and the ancestry that gave it, bottom first."""
        why = f"the ancestry of process {pid} changes as it is read"
        for _ in range(_ATTEMPTS):
            try:
                principal, chain = self._climb(pid)
                settled = intact(chain)
            except _UnsettledError:
                continue
            except OSError as problem:
                why = f"the ancestry of process {pid} cannot be read: {problem.strerror}"
                continue
            # While the pidfd's process lives its pid is its own, so what was read under that number was read of it.
            # A link that is what it was has the parent it had: an orphan falls to an ancestor, never to one younger.
            # So reading all the links once more, after everything else, vouches for all that was read in between.
            if exited(pidfd):
                break
            if settled:
                return principal, chain
        return Nobody(f"process {pid} has exited" if exited(pidfd) else why), ()

    def _climb(self, pid: int) -> tuple[Principal, tuple[Link, ...]]:
        link = read_link(pid)
        if link is None:
            return Nobody(f"process {pid} is gone or hidden"), ()
        chain = [link]
        while len(chain) <= DEEPEST:
            me = (link.pid, link.start)
            if me in self.daemon:
                return Nobody("adopted by the daemon: no living run of an agent is above it"), tuple(chain)
            agent = self.runs.get(me)
            if agent is not None:
                return self._agent(agent, chain), tuple(chain)
            if link.parent == 0:
                return self._operator(chain), tuple(chain)
            above = read_link(link.parent)
            if above is None or above.start > link.start:
                if read_link(link.pid) != link:
                    raise _UnsettledError
                return Nobody(f"the parent {link.parent} of process {link.pid} cannot be read"), tuple(chain)
            link = above
            chain.append(link)
        return Nobody(f"it has more than {DEEPEST} ancestors"), tuple(chain)

    def _agent(self, agent: Agent, chain: list[Link]) -> Principal:
        cell = self.cell_of(chain[0].pid)
        if cell is not None and cell != agent.agent:
            return Nobody(f"its ancestry says {agent}, its cgroup says {cell}")
        return agent

    def _operator(self, chain: list[Link]) -> Principal:
        for link in chain:
            mark = self.mark_of(link.pid)
            if mark is not None:
                return Nobody(
                    f"process {link.pid} above it carries the mark of {mark}"
                    if link is not chain[0]
                    else f"it carries the mark of {mark}"
                )
            cell = self.cell_of(link.pid)
            if cell is not None:
                return Nobody(f"process {link.pid} lies in the cgroup of {cell}")
        return Operator()


@define
class Caller:
    """One connection's caller: `principal` is who it was when it connected, `check` who it is now."""

    peers: Peers
    pid: int
    _pidfd: int
    principal: Principal
    _chain: tuple[Link, ...] = field(default=(), repr=False)

    def check(self) -> Principal:
        """The principal, if all that named it still holds; else nobody. It never becomes another."""
        was = self.principal
        if isinstance(was, Nobody):
            return was
        if exited(self._pidfd):
            return Nobody(f"process {self.pid} has exited")
        runs = self.peers.runs
        if isinstance(was, Agent) and runs.get((self._chain[-1].pid, self._chain[-1].start)) != was:
            return Nobody(f"run {was.run} of {was} has ended")
        below = self._chain[:-1] if isinstance(was, Agent) else self._chain
        nearer = any((link.pid, link.start) in runs for link in below)
        if not nearer and self._undisturbed(was):
            return was
        now, chain = self.peers.walk(self.pid, self._pidfd)
        if now == was:
            self._chain = chain
            return was
        return now if isinstance(now, Nobody) else Nobody(f"it was {was} when it connected and is {now} now")

    def writes(self, pid: int, uid: int) -> Principal | None:
        """Who wrote, if it was someone else than the caller: None if a process of the same principal did."""
        # Nobody's requests are refused whoever wrote them.
        if isinstance(self.principal, Nobody) or (pid == self.pid and uid == self.peers.uid):
            return None
        other = self.peers.writer(pid, uid)
        return None if other == self.principal else other

    def close(self) -> None:
        """Gives the pidfd back."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def _undisturbed(self, was: Principal) -> bool:
        try:
            cell = self.peers.cell_of(self.pid)
            return intact(self._chain) and (cell is None or (isinstance(was, Agent) and cell == was.agent))
        except OSError:
            return False


def intact(chain: tuple[Link, ...]) -> bool:
    """Every process of the chain lives and has the parent it had."""
    return all(read_link(link.pid) == link for link in chain)


def exited(pidfd: int) -> bool:
    """The pidfd's process is over, reaped or not."""
    if pidfd < 0:
        return True
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def _pidfd(sock: socket.socket, pid: int) -> int:
    """A pidfd of who connected. A reaped peer's reads as exited; before Linux 6.5 its pid may by then be another's,
    and what is left is that such a process has to hold the connection open."""
    try:
        return sock.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
    except OSError as problem:
        if problem.errno != errno.ENOPROTOOPT:
            raise
        return os.pidfd_open(pid)
