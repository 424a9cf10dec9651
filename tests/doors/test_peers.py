"""Whoever cannot be named to the end is nobody: gone, hidden, too deep, changed, or named by nothing that runs."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import evolve

from supervisor.core.authority import Agent, Nobody, Operator, Principal
from supervisor.runtime import peers
from supervisor.runtime.peers import Caller, Identity, Link, Peers, identity, read_link
from tests.doors.programs import program

A1 = Agent("p-1", "a1", 1)
A2 = Agent("p-1", "a2", 1)


class Room:
    """A socket that others connect to, and how they are judged there."""

    def __init__(self, directory: Path) -> None:
        self.path = str(directory / "door")
        self.runs: dict[Identity, Agent] = {}
        self.peers = Peers(os.geteuid(), self.runs, set())
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(self.path)
        self._socket.listen()

    def close(self) -> None:
        self._socket.close()

    @contextmanager
    def meets(self, body: str, *, first: Callable[[subprocess.Popen[bytes]], None] = lambda _: None) -> Iterator[Met]:
        """A program that connects as `s`; `first` happens between its connecting and its naming. It ends when its
        connection does."""
        body = f"s = connect()\nprint('connected', flush=True)\n{body}\nsys.stdin.read()"
        process = subprocess.Popen(program(self.path, body), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        connection, _ = self._socket.accept()
        caller = None
        try:
            assert process.stdout.readline() == b"connected\n"
            first(process)
            caller = self.peers.resolve(connection)
            yield Met(process, caller)
        finally:
            if caller is not None:
                caller.close()
            connection.close()
            process.stdin.close()
            process.stdout.close()
            process.wait()


class Met:
    """A caller and its process."""

    def __init__(self, process: subprocess.Popen[bytes], caller: Caller) -> None:
        self.process = process
        self.caller = caller

    def line(self) -> int:
        """A number that the program prints."""
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def ends(self) -> None:
        """Lets the program end, and reaps it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    made = Room(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    yield made
    assert len(os.listdir("/proc/self/fd")) == before
    made.close()


def _why(principal: Principal) -> str:
    assert isinstance(principal, Nobody)
    return principal.why


def _known(pid: int) -> Identity:
    found = identity(pid)
    assert found is not None
    return found


def test_a_person_is_the_operator_at_the_end_of_a_full_walk(room: Room) -> None:
    with room.meets("") as met:
        assert met.caller.principal == met.caller.check() == Operator()


def test_a_caller_that_was_reaped_before_the_walk_is_nobody(room: Room) -> None:
    def reap(process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()

    with room.meets("", first=reap) as met:
        assert _why(met.caller.principal).endswith("has exited")


def test_a_caller_that_exited_and_is_not_reaped_is_nobody(room: Room) -> None:
    def kill(process: subprocess.Popen[bytes]) -> None:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    with room.meets("", first=kill) as met:
        assert _why(met.caller.principal).endswith("has exited")


def test_a_caller_that_exits_after_it_was_named_is_nobody_at_its_next_request(room: Room) -> None:
    with room.meets("") as met:
        assert met.caller.principal == Operator()
        met.process.kill()
        os.waitid(os.P_PID, met.process.pid, os.WEXITED | os.WNOWAIT)
        assert _why(met.caller.check()).endswith("has exited")


def test_its_pid_given_to_another_does_not_make_a_caller_another(room: Room) -> None:
    """The kernel cannot be made to reuse a pid on demand; books that say so come to the same."""
    with room.meets("") as met:
        room.runs[met.process.pid, _known(met.process.pid)[1] + 1] = A1
        assert met.caller.check() == Operator()


def test_an_agent_is_known_by_pid_and_start_time_together(room: Room) -> None:
    pid, start = _known(os.getpid())
    room.runs[pid, start + 1] = A1
    with room.meets("") as met:
        assert met.caller.principal == Operator()
    room.runs[pid, start] = A2
    with room.meets("") as met:
        assert met.caller.principal == A2


def test_the_nearest_run_above_names_the_caller(room: Room) -> None:
    room.runs[_known(os.getpid())] = A1
    with room.meets("") as met:
        assert met.caller.principal == A1
        room.runs[_known(met.process.pid)] = A2
        # Its old connection is neither the one's nor the other's.
        assert _why(met.caller.check()) == "it was a1 when it connected and is a2 now"
        assert room.peers.writer(met.process.pid, os.geteuid()) == A2


def test_below_the_daemon_without_a_run_is_nobody(room: Room) -> None:
    room.peers = evolve(room.peers, daemon={_known(os.getpid())})
    with room.meets("") as met:
        assert _why(met.caller.principal).startswith("adopted by the daemon")


def test_the_warden_counts_as_the_daemon(room: Room) -> None:
    room.peers = evolve(room.peers, daemon={(1, _known(1)[1])})
    with room.meets("") as met:
        assert _why(met.caller.principal).startswith("adopted by the daemon")


def test_the_daemon_itself_is_no_caller(room: Room) -> None:
    room.peers = evolve(room.peers, daemon={_known(os.getpid())})
    assert _why(room.peers.writer(os.getpid(), os.geteuid())).startswith("adopted by the daemon")


def test_an_ended_run_is_refused_while_its_process_lives(room: Room) -> None:
    room.runs[_known(os.getpid())] = A1
    with room.meets("") as met:
        room.runs[_known(os.getpid())] = Agent("p-1", "a1", 2)
        assert _why(met.caller.check()) == "run 1 of a1 has ended"


def test_a_caller_never_becomes_another_by_losing_its_parent(room: Room) -> None:
    body = """
if os.fork() == 0:
    s = connect()
    print(os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
"""
    with room.meets(body) as met:
        child = met.line()
        connection, _ = room._socket.accept()
        room.runs[_known(met.process.pid)] = A1
        caller = room.peers.resolve(connection)
        try:
            assert (caller.pid, caller.principal) == (child, A1)
            met.process.kill()
            met.process.wait()
            del room.runs[next(iter(room.runs))]
            # By its ancestry alone it would be the operator now.
            assert room.peers.writer(child, os.geteuid()) == Operator()
            assert _why(caller.check()) == "run 1 of a1 has ended"
            room.runs[(1, 1)] = A1
            assert isinstance(caller.check(), Nobody)
        finally:
            caller.close()
            connection.close()


def test_an_ancestry_that_changes_under_the_walk_is_walked_again(room: Room) -> None:
    body = """
if os.fork() == 0:
    s = connect()
    print(os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
"""
    with room.meets(body) as met:
        child = met.line()
        connection, _ = room._socket.accept()
        with connection:

            def orphans(_pid: int) -> None:
                met.process.kill()
                met.process.wait()

            room.runs[_known(met.process.pid)] = A1
            # All that is above is ours, so that wherever the orphan falls, it falls to the daemon.
            above = {(link.pid, link.start) for link in _above(os.getpid())}
            room.peers = evolve(room.peers, cell_of=orphans, daemon=above)
            caller = room.peers.resolve(connection)
            caller.close()
            assert caller.pid == child
            assert _why(caller.principal).startswith("adopted by the daemon")


def _above(pid: int) -> Iterator[Link]:
    link = read_link(pid)
    while link is not None:
        yield link
        link = read_link(link.parent)


def test_a_new_parent_of_the_same_name_does_not_disturb_the_operator(room: Room) -> None:
    body = """
r, w = os.pipe()
if os.fork() == 0:
    os.close(w)
    os.read(r, 1)
    s = connect()
    print(os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
os.close(w)
"""
    with room.meets(body) as met:
        child = met.line()
        connection, _ = room._socket.accept()
        caller = room.peers.resolve(connection)
        try:
            assert (caller.pid, caller.check()) == (child, Operator())
            met.process.kill()
            met.process.wait()
            assert caller.check() == Operator()
        finally:
            caller.close()
            connection.close()


def test_a_writer_of_another_run_is_told_apart_from_the_caller(room: Room) -> None:
    """A connection inherited over fork, by what the books call another agent."""
    body = """
child = os.fork()
if child == 0:
    sys.stdin.read()
    os._exit(0)
print(child, flush=True)
"""
    with room.meets(body) as met:
        child = met.line()
        room.runs[_known(met.process.pid)] = A1
        met.caller.close()
        caller = evolve(met.caller, pidfd=os.pidfd_open(met.process.pid), principal=A1)
        try:
            assert caller.writes(met.process.pid, os.geteuid()) is None
            assert caller.writes(child, os.geteuid()) is None
            room.runs[_known(child)] = A2
            assert caller.writes(child, os.geteuid()) == A2
            assert isinstance(caller.writes(child, os.geteuid() + 1), Nobody)
            assert isinstance(caller.writes(0, os.geteuid()), Nobody)
        finally:
            caller.close()


def test_another_user_is_nobody_whatever_its_ancestry(room: Room) -> None:
    room.peers = evolve(room.peers, uid=os.geteuid() + 1)
    room.runs[_known(os.getpid())] = A1
    with room.meets("") as met:
        assert "another user" in _why(met.caller.principal)


def test_what_cannot_be_read_is_nobody(room: Room) -> None:
    def hidden(_pid: int) -> str | None:
        raise PermissionError(13, "Permission denied")

    for peers_ in (evolve(room.peers, mark_of=hidden), evolve(room.peers, cell_of=hidden)):
        room.peers = peers_
        with room.meets("") as met:
            assert _why(met.caller.principal).endswith("cannot be read: Permission denied")


def test_a_process_in_an_agents_cgroup_is_not_the_operator(room: Room) -> None:
    room.peers = evolve(room.peers, cell_of=lambda _pid: "a1")
    with room.meets("") as met:
        assert _why(met.caller.principal).endswith("lies in the cgroup of a1")


def test_a_cgroup_alone_never_names_a_caller(room: Room) -> None:
    room.peers = evolve(room.peers, cell_of=lambda _pid: "a1", daemon={_known(os.getpid())})
    with room.meets("") as met:
        assert isinstance(met.caller.principal, Nobody)


def test_a_cgroup_that_agrees_changes_nothing(room: Room) -> None:
    room.runs[_known(os.getpid())] = A1
    room.peers = evolve(room.peers, cell_of=lambda _pid: "a1")
    with room.meets("") as met:
        assert met.caller.check() == A1


def test_a_bottomless_ancestry_is_nobody_and_bounded(room: Room) -> None:
    body = f"""
for _ in range({peers.DEEPEST + 5}):
    if os.fork():
        os.wait()
        os._exit(0)
s = connect()
print(os.getpid(), flush=True)
"""
    with room.meets(body) as met:
        met.line()
        connection, _ = room._socket.accept()
        caller = room.peers.resolve(connection)
        try:
            assert "ancestors" in _why(caller.principal)
        finally:
            caller.close()
            connection.close()


def test_without_peer_pidfds_callers_are_named_by_pid_and_start(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """An option that no kernel knows answers as SO_PEERPIDFD does before Linux 6.5."""
    monkeypatch.setattr(peers, "SO_PEERPIDFD", 9999)
    room.runs[_known(os.getpid())] = A1
    with room.meets("") as met:
        assert met.caller.check() == A1

    def reap(process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()

    with room.meets("", first=reap) as met:
        assert "gone or hidden" in _why(met.caller.principal)


def test_a_name_full_of_parentheses_does_not_confuse_the_reading() -> None:
    argv = program("", "open('/proc/self/comm', 'w').write(') R 1 (x) 7'); print('set', flush=True); sys.stdin.read()")
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        link = read_link(process.pid)
        assert link is not None
        assert (link.pid, link.parent) == (process.pid, os.getpid())


def test_no_process_has_no_identity() -> None:
    with subprocess.Popen(["/bin/true"]) as process:
        process.wait()
    assert identity(process.pid) is None
    assert identity(-1) is None
