"""Starts a daemon of our own package and waits until it answers. It never picks a `supervisord` by name alone: another
program is called so too."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from supervisor.ctl.call import connect
from supervisor.ctl.errand import Progress
from supervisor.ctl.outcome import NO_DAEMON, TIMED_OUT, Failure
from supervisor.doors import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from supervisor.ctl.call import Client
    from supervisor.ctl.place import Place

#: A cold disk and a loaded machine, and still no reason to wait for ever.
PATIENCE = 30.0
#: How long after our own daemon's end another one, started at the same moment, may take to answer.
_OTHER = 3.0
_STEP = 0.02
_TAIL = 12
_PROGRAM = "import sys; from supervisor.warden import main; sys.exit(main())"


def command() -> list[str]:
    """How to start our daemon: the script that was installed beside this one, else the module itself."""
    named = sys.argv[0] if os.sep in sys.argv[0] else sys.executable
    for program in (os.path.realpath(named), sys.executable):
        script = os.path.join(os.path.dirname(program), "supervisord")
        if os.access(script, os.X_OK) and _ours(script):
            return [script]
    return [sys.executable, "-Pc", _PROGRAM]


def _ours(script: str) -> bool:
    """Whether a `supervisord` is the one of this package."""
    try:
        with open(script, "rb") as source:
            return b"supervisor.warden" in source.read(4096)
    except OSError:
        return False


def start(place: Place, *, quiet: bool = False) -> Client:
    """A daemon in a session of its own, which outlives this command; its output goes to `daemon.log`."""
    log = paths.daemon_log(place.state)
    process, begun_at = launch(command(), log, place.environ)
    return wait(place, process, log, begun_at, quiet=quiet)


def wait(place: Place, process: subprocess.Popen[bytes], log: str, begun_at: int, *, quiet: bool = False) -> Client:
    """A connection, once it answers. When it dies its last words are in the failure."""
    begun = time.monotonic()
    ended: float | None = None
    with Progress("the daemon to start", quiet=quiet) as progress:
        while True:
            try:
                return connect(place.sockets, place.uid)
            except Failure as failure:
                if failure.code != NO_DAEMON:
                    raise
            now = time.monotonic()
            if ended is None and process.poll() is not None:
                ended = now
            if ended is not None and now - ended > _OTHER:
                raise _dead(log, begun_at, f"the daemon ended with {_status(process.returncode)} before it answered")
            if now - begun > PATIENCE:
                words = f"the daemon (pid {process.pid}) did not answer within {PATIENCE:g} s"
                raise _dead(log, begun_at, words, TIMED_OUT)
            progress.tick(now - begun)
            time.sleep(_STEP)


def launch(argv: Sequence[str], log: str, environ: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], int]:
    """Start it detached. Also where its part of the log begins."""
    try:
        os.makedirs(os.path.dirname(log), mode=0o700, exist_ok=True)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Failure(NO_DAEMON, f"the daemon's log cannot be written: {error.filename}: {error.strerror}") from None
    try:
        at = os.fstat(out).st_size
        process = subprocess.Popen(  # noqa: S603  our own script, or our own interpreter
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd="/",
            env=dict(environ),
            start_new_session=True,
        )
    except OSError as error:
        raise Failure(NO_DAEMON, f"{argv[0]} cannot be started: {error.strerror}") from None
    finally:
        os.close(out)
    return process, at


def _status(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def tail(log: str, begun_at: int) -> list[str]:
    """The last lines that this daemon wrote."""
    try:
        with open(log, "rb") as source:
            source.seek(begun_at)
            lines = source.read(1 << 20).decode(errors="replace").splitlines()
    except OSError:
        return []
    return lines[-_TAIL:]


def _dead(log: str, begun_at: int, words: str, code: int = NO_DAEMON) -> Failure:
    lines = tail(log, begun_at)
    said = [f"| {line}" for line in lines] or ["it wrote nothing"]
    return Failure(code, words, *said, f"its log: {log}")
