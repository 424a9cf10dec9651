"""The warden: nothing of a dead daemon lives, a daemon that died starts again, and neither goes on for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.runtime.containment import marks
from tests.house import eventually_sync
from tests.processes.stage import alive
from tests.processes.standin import numbers

ROOT = Path(__file__).parents[2]
COMMAND = (
    "import sys; from supervisor.warden import watch; sys.exit(watch('tests.processes.standin:run', sys.argv[1:]))"
)


class Kept:
    """A warden with a stand-in for the daemon."""

    def __init__(self, room: Path) -> None:
        self.room = room
        self.process: subprocess.Popen[str] | None = None

    def start(self, *ways: str, after: str = "", log: str = "") -> subprocess.Popen[str]:
        """Start it in a session of its own; `after` is what a careless parent did to its signals, `log` its stderr."""
        careless = f"import os, signal, sys\n{after}\nos.execv(sys.executable, sys.argv[1:])"
        with Path(log or os.devnull).open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", careless, sys.executable, "-c", COMMAND, str(self.room), *ways],
                cwd=ROOT,
                stderr=file if log else subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        return self.process

    def starts(self, many: int) -> int:
        """Wait until the daemon is there for the n-th time; its pid."""
        eventually_sync(lambda: len(numbers(self.room, "ready")) >= many, what=f"start {many}")
        return numbers(self.room, "ready")[many - 1]

    def ended(self) -> tuple[int, str]:
        """Its status, and what it said."""
        assert self.process is not None
        _, said = self.process.communicate(timeout=20)
        return self.process.returncode, said


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    """A warden to start."""
    made = Kept(tmp_path)
    yield made
    if made.process is not None:
        if made.process.poll() is None:
            made.process.terminate()
            for pid in numbers(made.room, "starts")[-1:]:
                eventually_sync(lambda pid=pid: not alive(pid) or _kill(pid), what="the stand-in to end")  # type: ignore[misc]  # a lambda in a loop
        made.process.communicate(timeout=20)


def _kill(pid: int) -> bool:
    os.kill(pid, signal.SIGKILL)
    return False


def test_killing_the_daemon_ends_all_it_had_and_starts_it_again(kept: Kept) -> None:
    warden = kept.start("tree")
    daemon = kept.starts(1)
    left = numbers(kept.room, "tree")
    assert len(left) == 6
    assert all(map(alive, left))
    os.kill(daemon, signal.SIGKILL)
    again = kept.starts(2)
    assert again != daemon
    assert not any(map(alive, left)), "before the next one is ready nothing of the last one lives"
    assert warden.poll() is None
    assert again in marks.children(warden.pid)


def test_the_daemon_is_told_of_its_warden_and_hands_nothing_on(kept: Kept) -> None:
    warden = kept.start()
    kept.starts(1)
    assert (kept.room / "post").read_text() == f"{warden.pid} False"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on_once_and_the_daemons_status_is_the_wardens(kept: Kept, number: int) -> None:
    warden = kept.start("stubborn", "tree")
    daemon = kept.starts(1)
    left = numbers(kept.room, "tree")
    for _ in range(3):
        warden.send_signal(number)
    eventually_sync(lambda: numbers(kept.room, "signals"))
    warden.send_signal(signal.SIGHUP)  # passed on behind it: what came before it came
    eventually_sync(lambda: signal.SIGHUP in numbers(kept.room, "signals"))
    assert numbers(kept.room, "signals") == [number, signal.SIGHUP]
    os.kill(daemon, signal.SIGKILL)  # told to leave, it is not started again, however it ends
    assert kept.ended()[0] == 128 + signal.SIGKILL
    assert not any(map(alive, left))
    assert len(numbers(kept.room, "starts")) == 1


def test_a_daemon_that_leaves_when_told_gives_its_status(kept: Kept) -> None:
    warden = kept.start()
    kept.starts(1)
    warden.terminate()
    assert kept.ended() == (5, "")


def test_killing_the_warden_makes_the_daemon_leave_in_order(kept: Kept) -> None:
    warden = kept.start()
    daemon = kept.starts(1)
    warden.kill()
    warden.wait()
    eventually_sync(lambda: not alive(daemon))
    assert numbers(kept.room, "signals") == [signal.SIGTERM]


@pytest.mark.parametrize("status", [0, 2, 75, 78])
def test_some_endings_are_final(kept: Kept, status: int) -> None:
    kept.start("leave", str(status))
    assert kept.ended() == (status, "")
    assert len(numbers(kept.room, "starts")) == 1


def test_a_daemon_that_never_gets_ready_is_given_up_with_the_reason(kept: Kept) -> None:
    kept.start("leave", "1")
    status, said = kept.ended()
    assert status == 1
    assert len(numbers(kept.room, "starts")) == 5
    assert "ended 5 times within 60 s before it was ready, at last with 1" in said


def test_a_daemon_that_was_ready_is_started_more_often_than_that(kept: Kept) -> None:
    warden = kept.start()
    for many in range(1, 7):
        os.kill(kept.starts(many), signal.SIGKILL)
    kept.starts(7)
    assert warden.poll() is None


def test_a_daemon_that_its_disk_failed_is_tried_for_as_long_as_it_takes(kept: Kept) -> None:
    kept.start("spent", "74")
    os.kill(kept.starts(1), signal.SIGKILL)
    eventually_sync(lambda: len(numbers(kept.room, "starts")) > 6, what="more than five starts in vain")


def test_a_daemon_that_cannot_start_for_another_reason_is_given_up_though_one_was_ready(kept: Kept) -> None:
    kept.start("spent", "1")
    os.kill(kept.starts(1), signal.SIGKILL)
    assert kept.ended()[0] == 1
    assert len(numbers(kept.room, "starts")) == 6


def test_a_log_that_takes_nothing_ends_no_warden(kept: Kept) -> None:
    warden = kept.start(log="/dev/full")
    os.kill(kept.starts(1), signal.SIGKILL)
    kept.starts(2)
    assert warden.poll() is None


#: What a Python program that was started in the usual way blocks and ignores.
USUAL = (set[int](), {signal.SIGPIPE, signal.SIGXFSZ})
IGNORE = "signal.signal(signal.{0}, signal.SIG_IGN)\n"
BLOCK = "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"


PUBLIC = {*range(1, 65)} - {32, 33}


def settings(pid: int) -> tuple[set[int], set[int]]:
    """The signals that a process blocks, and those that it ignores, but for the C library's own: these nobody can set,
    and `make` hands them on ignored."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    masks = {name: int(value, 16) for name, _, value in (line.partition(":") for line in lines) if name[:3] == "Sig"
             and name != "SigQ"}  # fmt: skip
    blocked, ignored = ({n for n in PUBLIC if masks[name] >> n - 1 & 1} for name in ("SigBlk", "SigIgn"))
    return blocked, ignored


def test_signals_that_a_careless_parent_blocked_or_ignored_are_as_they_are_for_anyone(kept: Kept) -> None:
    careless = "".join(IGNORE.format(name) for name in ("SIGCHLD", "SIGTERM", "SIGUSR1", "SIGALRM", "SIGRTMIN"))
    warden = kept.start("tree", after=careless + BLOCK)
    daemon = kept.starts(1)
    agent = numbers(kept.room, "tree")[0]
    assert settings(agent) == USUAL
    os.kill(daemon, signal.SIGKILL)  # a warden with SIGCHLD ignored would never hear of it
    kept.starts(2)
    warden.terminate()
    assert kept.ended()[0] == 5


@pytest.mark.parametrize("name", ["SIGHUP", "SIGINT"])
def test_what_was_set_aside_on_purpose_stays_so_for_the_service_and_not_for_agents(kept: Kept, name: str) -> None:
    warden = kept.start("tree", after=IGNORE.format(name))
    daemon = kept.starts(1)
    assert settings(numbers(kept.room, "tree")[0]) == USUAL
    for pid in (warden.pid, daemon):
        os.kill(pid, getattr(signal, name))
    warden.terminate()  # it comes last, and is the only one that is heard
    assert kept.ended()[0] == 5
    assert numbers(kept.room, "signals") == [signal.SIGTERM]


def test_a_warden_that_waits_to_start_again_leaves_when_told(kept: Kept) -> None:
    warden = kept.start()
    for many in range(1, 7):  # the pause grows with each: the last one is seen in time
        os.kill(kept.starts(many), signal.SIGKILL)
    eventually_sync(lambda: not marks.children(warden.pid))
    warden.terminate()
    assert kept.ended()[0] == 0
    assert len(numbers(kept.room, "starts")) == 6


def test_without_a_warden_the_daemon_is_this_process(kept: Kept) -> None:
    process = kept.start("--no-warden")
    assert kept.starts(1) == process.pid
    assert (kept.room / "post").read_text() == "None False"
    process.terminate()
    assert kept.ended() == (5, "")


def test_a_broken_daemon_says_why(kept: Kept, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", COMMAND.replace("standin:run", "standin:nonesuch"), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert kept.process is None
    assert ran.returncode == 1
    assert "AttributeError" in ran.stderr


def test_the_warden_is_small() -> None:
    """What it imports before it forks is there for as long as the daemon is."""
    program = "import sys; old = set(sys.modules); import supervisor.warden; print(*sorted(set(sys.modules) - old))"
    ran = subprocess.run([sys.executable, "-Sc", program], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {"trio", "attrs", "attr", "subprocess", "asyncio", "json", "inspect", "dataclasses", "socket"}
    assert not heavy & set(ran.stdout.split())
