"""`tree --watch`: draws again whenever something happened, on a screen of its own, and gives the terminal back as it
was on every way out."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty

from supervisor.ctl.branches import Fold
from supervisor.ctl.call import PATIENCE, result
from supervisor.ctl.outcome import NO_DAEMON, USAGE, Failure
from supervisor.ctl.screen import Screen
from supervisor.ctl.tree import draw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from supervisor.ctl.call import Client
    from supervisor.ctl.errand import Errand

#: Ages are seconds: a picture is never older than this.
_TICK = 1.0
#: What happens within this time is drawn as one change, so that a storm of events costs little.
_CALM = 0.1
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME, _LINE_END, _REST, _BEGIN, _END = "\x1b[H", "\x1b[K", "\x1b[J", "\x1b[?2026h", "\x1b[?2026l"
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_QUIT = b"qQ\x03\x04"
_LEAVES = "q leaves"
#: A window of no more lines than this has none to spare for that.
_LOW = 4


def watch(errand: Errand) -> int:
    """Draw until the person leaves. Exit code 0 for `q` and Ctrl-C."""
    if errand.asked.json or not errand.screen.tty:
        raise Failure(USAGE, "--watch draws on a terminal", "for a program: supervisorctl events --follow --json")
    # Asked first: that there is no daemon is said on the screen that one stands on.
    with _View(errand) as view, _Terminal() as terminal:
        view.run(terminal)
    if terminal.ended and terminal.ended != signal.SIGINT:
        return 128 + terminal.ended
    return 0


class _View:
    """The picture, and the two connections that keep it true: one tells that something happened, one asks what is.
    Neither is ever waited for: a daemon that is stuck must not take the keys with it."""

    def __init__(self, errand: Errand) -> None:
        self.errand = errand
        self.everything = bool(errand.own.get("all"))
        self.params = errand.wire(errand.params)
        self.asking = errand.client()
        self.answer: Any = self.asking.call("tree", self.params)
        self.fetched = time.monotonic()
        self.telling = self._follow()
        self.asked: float | None = None

    def __enter__(self) -> _View:
        return self

    def __exit__(self, *_: object) -> None:
        self.asking.sock.close()
        self.telling.sock.close()

    def _follow(self) -> Client:
        client = self.errand.client()
        client.ask("events", self.errand.wire({"follow": True}))
        return client

    def run(self, terminal: _Terminal) -> None:
        """Wait for something to happen, an answer, a key, a signal, or the tick; then draw."""
        stale, drawn = False, 0.0
        while True:
            now = time.monotonic()
            if stale and self.asked is None and now - self.fetched >= _CALM:
                stale = False
                self._ask()
            if now - drawn >= _TICK or not drawn:
                self.paint(terminal)
                drawn = now
            wait = _CALM if stale else max(0.0, drawn + _TICK - time.monotonic())
            sources: list[Any] = [self.telling, self.asking, *terminal.sources]
            readable, _, _ = select.select(sources, [], [], wait)
            if self.telling in readable:
                stale = self._happened() or stale
            if self.asking in readable:
                drawn = 0.0 if self._answered() else drawn
            if terminal.wants_out(readable):
                return
            if terminal.resized:
                terminal.resized, drawn = False, 0.0
            if self.asked is not None and time.monotonic() - self.asked > PATIENCE:
                raise self.asking.silent(PATIENCE)

    def _ask(self) -> None:
        self.asking.ask("tree", self.params)
        self.asked = time.monotonic()

    def _answered(self) -> bool:
        """Take the answer. A connection that broke is made anew: the daemon may have been restarted."""
        try:
            for message in self.asking.ready():
                self.answer = result(message)
                self.fetched, self.asked = time.monotonic(), None
        except Failure as failure:
            if failure.code != NO_DAEMON:
                raise
            self.asking.sock.close()
            self.asking = self.errand.client()
            self._ask()
            return False
        return self.asked is None

    def _happened(self) -> bool:
        """Whether anything did. A follower that was dropped follows again."""
        try:
            messages = list(self.telling.ready())
        except Failure as failure:
            if failure.code != NO_DAEMON:
                raise
            self.telling.sock.close()
            self.telling = self._follow()
            return True
        for message in messages:
            if "error" in message:
                result(message)
        return bool(messages)

    def paint(self, terminal: _Terminal) -> None:
        """The whole picture in one write: home, each line with what follows it cleared, then all below."""
        screen = Screen.of(sys.stdout, _without_size(self.errand.place.environ))
        screen.width -= 1  # a line that reaches the last column would lose its last sign to what clears the rest
        room = max(1, screen.height - 1)
        said = [screen.style(_LEAVES, "dim")] if terminal.keys >= 0 and room > _LOW else []
        room -= len(said)
        fold = Fold(everything=self.everything, rows=max(4, room - 4))
        lines = draw(self.answer, screen, fold, since=time.monotonic() - self.fetched)
        if len(lines) > room:
            hidden = len(lines) - room + 1
            lines = [*lines[: room - 1], screen.style(f"{hidden} more lines than this window has", "dim")]
        picture = "".join(f"{line}{_LINE_END}\r\n" for line in (*lines, *said))
        terminal.write(_BEGIN + _HOME + picture + _REST + _END)


def _without_size(environ: Any) -> dict[str, str]:
    """A window's size changes; COLUMNS says what it was."""
    return {name: value for name, value in environ.items() if name not in {"COLUMNS", "LINES"}}


class _Terminal:
    """The alternate screen, without echo or cursor, until it is left. Signals arrive as bytes on a descriptor."""

    def __init__(self) -> None:
        self.ended = 0
        self.resized = False
        self.keys = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else -1
        self._modes: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._pipe = (-1, -1)
        self._wakeup = -1

    @property
    def sources(self) -> list[int]:
        return [self._pipe[0], *([self.keys] if self.keys >= 0 else [])]

    def __enter__(self) -> _Terminal:
        self._pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wakeup = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        for number in (*_ENDING, signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT):
            self._handlers[number] = signal.signal(number, _noted)
        try:
            self._take()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        for end in self._pipe:
            os.close(end)

    def write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def wants_out(self, readable: list[Any]) -> bool:
        """Take what came by key or by signal; whether one of them ends the watch."""
        if self._pipe[0] in readable:
            for number in os.read(self._pipe[0], 512):
                self._signalled(number)
        if self.keys in readable:
            pressed = os.read(self.keys, 512)
            if not pressed:
                self.keys = -1  # stdin was closed; signals still end the watch
            if any(key in _QUIT for key in pressed):
                return True
        return bool(self.ended)

    def _signalled(self, number: int) -> None:
        if number in _ENDING:
            self.ended = number
        elif number == signal.SIGTSTP:
            self._give_back()
            os.kill(os.getpid(), signal.SIGSTOP)
        elif number == signal.SIGCONT:
            self._take()
        self.resized = True

    def _take(self) -> None:
        if self._modes is None and self.keys >= 0:
            self._modes = termios.tcgetattr(self.keys)
            tty.setcbreak(self.keys)
        self.write(_ENTER)

    def _give_back(self) -> None:
        # A terminal that is gone needs nothing back.
        with contextlib.suppress(OSError, ValueError, termios.error):
            if self._modes is not None:
                modes, self._modes = self._modes, None
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, modes)
        with contextlib.suppress(OSError, ValueError):
            self.write(_LEAVE)


def _noted(_number: int, _frame: FrameType | None) -> None:
    """A signal is handled in the loop, where the byte that it leaves arrives."""
