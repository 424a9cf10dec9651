"""`tree --watch` draws on a terminal as things happen, and gives it back as it was on every way out."""

from __future__ import annotations

import contextlib
import os
import pty
import queue
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from fcntl import ioctl
from typing import Any

import pytest

from tests.ctl import fleets
from tests.ctl.server import HangUpError, ctl, serve
from tests.house import PATIENCE

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"

#: The terminal is the client's own, so that its keys are signals.
PROGRAM = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from supervisor.ctl.main import main
sys.exit(main())
"""


class Daemon:
    """A tree that the test changes, and the events that tell of it."""

    def __init__(self) -> None:
        self.last = "first words"
        self.asked = 0
        self.events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()

    def answer(self, method: str, params: dict[str, Any]) -> Any:
        if method == "events":
            assert params["follow"] is True
            return self._notes()
        self.asked += 1
        return {"project": "p", "tier": "warden", "agents": [fleets.agent("a1", "lead", last=self.last)]}

    def _notes(self) -> Iterator[dict[str, Any]]:
        while (event := self.events.get()) is not None:
            yield event
        raise HangUpError

    def say(self, last: str) -> None:
        self.last = last
        self.events.put({"seq": 1, "fact": "Spoke"})


class Window:
    """The client on a pseudo terminal of its own."""

    def __init__(self, *args: str, columns: int = 80, env: dict[str, str] | None = None) -> None:
        self.master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.modes = termios.tcgetattr(slave)
        environ = {**os.environ, "TERM": "xterm", "TZ": "UTC", "PYTHONIOENCODING": "utf-8", **(env or {})}
        environ = {name: value for name, value in environ.items() if name not in {"COLUMNS", "NO_COLOR"} or env}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *args],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environ,
            start_new_session=True,
        )
        self.slave = slave
        self.seen = ""

    def until(self, condition: Callable[[str], object], within: float = PATIENCE) -> str:
        """Read until what was written meets the condition."""
        end = time.monotonic() + within
        while not condition(self.seen):
            left = end - time.monotonic()
            assert left > 0, f"not within {within} s; seen last: {self.seen[-400:]!r}"
            if select.select([self.master], [], [], left)[0]:
                self.seen += os.read(self.master, 1 << 16).decode(errors="replace")
        return self.seen

    def end(self) -> int:
        """Wait for the client's end, reading all that it still writes."""
        os.close(self.slave)
        with contextlib.suppress(OSError):  # EIO: nobody holds the other end any more
            while chunk := os.read(self.master, 1 << 16):
                self.seen += chunk.decode(errors="replace")
        return self.process.wait(20)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            os.close(self.slave)
        os.close(self.master)


@contextlib.contextmanager
def window(*args: str, **more: Any) -> Iterator[Window]:
    opened = Window(*args, **more)
    try:
        yield opened
    finally:
        opened.close()


@contextlib.contextmanager
def watching(daemon: Daemon) -> Iterator[Window]:
    with serve(daemon.answer):
        try:
            with window("tree", "--watch") as opened:
                opened.until(lambda seen: "first words" in seen)
                yield opened
        finally:
            daemon.events.put(None)
            daemon.events.put(None)


def assert_given_back(seen: str) -> None:
    assert seen.count(ENTER) == seen.count(LEAVE)
    assert seen.rindex(LEAVE) > seen.rindex(ENTER)
    assert seen.rindex(SHOW) > seen.rindex(HIDE)
    assert seen.rindex("\x1b[?7h") > seen.rindex("\x1b[?7l")


WAYS: dict[str, tuple[Callable[[Window], object], int]] = {
    "q": (lambda opened: os.write(opened.master, b"q"), 0),
    "ctrl-c": (lambda opened: os.write(opened.master, b"\x03"), 0),
    "SIGINT": (lambda opened: opened.process.send_signal(signal.SIGINT), 0),
    "SIGTERM": (lambda opened: opened.process.send_signal(signal.SIGTERM), 143),
    "SIGHUP": (lambda opened: opened.process.send_signal(signal.SIGHUP), 129),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_terminal_is_given_back_on_every_way_out(way: str) -> None:
    leave, code = WAYS[way]
    with watching(Daemon()) as opened:
        assert termios.tcgetattr(opened.slave)[3] & termios.ECHO == 0
        leave(opened)
        opened.until(lambda seen: LEAVE in seen)
        assert opened.process.wait(20) == code
        assert termios.tcgetattr(opened.slave) == opened.modes
        assert_given_back(opened.seen)


def test_the_terminal_is_given_back_when_the_daemon_goes_and_that_is_said() -> None:
    daemon = Daemon()
    with serve(daemon.answer) as server, window("tree", "--watch") as opened:
        opened.until(lambda seen: "first words" in seen)
        server.path.unlink()
        daemon.events.put(None)
        assert opened.process.wait(20) == 69
        assert termios.tcgetattr(opened.slave) == opened.modes
        opened.end()
        assert_given_back(opened.seen)
        assert opened.seen.index("no daemon") > opened.seen.rindex(LEAVE)


def test_what_happens_is_drawn_without_clearing_the_screen_first() -> None:
    daemon = Daemon()
    with watching(daemon) as opened:
        daemon.say("second words")
        seen = opened.until(lambda seen: "second words" in seen)
        assert "\x1b[2J" not in seen
        assert seen.count("\x1b[H") == seen.count("\x1b[?2026h")
        assert seen.count(ENTER) == 1


def test_the_picture_says_how_to_leave_it() -> None:
    with watching(Daemon()) as opened:
        opened.until(lambda seen: "q leaves" in seen)


def test_ages_go_on_without_asking_the_daemon_again() -> None:
    daemon = Daemon()
    with watching(daemon) as opened:
        opened.until(lambda seen: re.search("1m(1[7-9]|[2-5][0-9])s", seen))  # a busy machine skips one
        assert daemon.asked == 1


def test_a_storm_of_events_is_drawn_as_a_few_changes() -> None:
    daemon = Daemon()
    with watching(daemon) as opened:
        for at in range(500):
            daemon.say(f"word {at}.")
        opened.until(lambda seen: "word 499." in seen)
        assert daemon.asked < 100


def frames(seen: str) -> list[str]:
    """The pictures that were drawn from begin to end."""
    return re.findall("\x1b\\[\\?2026h\x1b\\[H(.*?)\x1b\\[\\?2026l", seen, re.DOTALL)


def width(frame: str) -> int:
    """Of its longest line, in signs."""
    return max(len(re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", line)) for line in frame.split("\r\n"))


def test_a_window_that_grows_is_filled() -> None:
    daemon = Daemon()
    with watching(daemon) as opened:
        assert "BRANCH" in opened.seen
        ioctl(opened.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
        opened.process.send_signal(signal.SIGWINCH)
        opened.seen = ""
        # What was drawn before may come first, and only its end.
        opened.until(lambda seen: any(width(frame) < 30 for frame in frames(seen)))


def test_stopping_and_going_on_gives_the_terminal_back_meanwhile() -> None:
    with watching(Daemon()) as opened:
        opened.process.send_signal(signal.SIGTSTP)
        os.waitpid(opened.process.pid, os.WUNTRACED)
        opened.until(lambda seen: LEAVE in seen)
        assert termios.tcgetattr(opened.slave) == opened.modes
        opened.process.send_signal(signal.SIGCONT)
        opened.until(lambda seen: seen.count(ENTER) == 2)
        os.write(opened.master, b"q")
        assert opened.process.wait(20) == 0
        opened.until(lambda seen: seen.count(LEAVE) == 2)
        assert_given_back(opened.seen)


def test_watch_is_for_a_terminal() -> None:
    with serve({"tree": fleets.small()}):
        done = ctl("tree", "--watch")
        assert done.returncode == 2
        assert "supervisorctl events --follow --json" in done.stderr


def test_colour_is_for_terminals_that_want_it() -> None:
    with serve({"tree": fleets.small()}):
        with window("tree") as opened:
            assert opened.end() == 0
            assert "\x1b[1mlead\x1b[0m" in opened.seen
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            with window("tree", env=env) as opened:
                assert opened.end() == 0
                assert "\x1b" not in opened.seen
                assert "├─ tests" in opened.seen
        assert "\x1b" not in ctl("tree").stdout


def test_a_terminal_without_utf8_gets_a_tree_of_ascii() -> None:
    with serve({"tree": fleets.small()}), window("tree", env={"PYTHONIOENCODING": "ascii"}) as opened:
        assert opened.end() == 0
        assert "|- tests" in opened.seen
        assert opened.seen.isascii()


def test_a_long_wait_says_what_it_waits_for_and_takes_that_away() -> None:
    go: queue.SimpleQueue[None] = queue.SimpleQueue()

    def answer(_method: str, _params: dict[str, Any]) -> Any:
        go.get()
        return {"agent": {"id": "a1", "name": "lead"}, "ended": [], "seq": 1}

    with serve(answer), window("stop", "lead") as opened:
        opened.until(lambda seen: re.search("waiting: stop, [1-9]s", seen))  # a busy machine skips one
        go.put(None)
        assert opened.end() == 0
        assert opened.seen.endswith("\r\x1b[Klead (a1) stopped\r\n")
