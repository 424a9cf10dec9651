"""`demo`: a scripted fleet with a daemon of its own in throw-away directories. It touches no daemon and no file of the
person's, and leaves neither behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from supervisor.ctl import bringing, daemon, options
from supervisor.ctl.branches import Fold, below, tokens
from supervisor.ctl.errand import Errand
from supervisor.ctl.outcome import NO_DAEMON, Failure
from supervisor.ctl.place import Place
from supervisor.ctl.tree import draw
from supervisor.doors import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType
    from typing import Any

#: `--once` waits until something is to be seen, but no longer than this.
_CURTAIN = 15.0
_LEAVING = 20.0
_STEP = 0.1
#: The daemon ends when this command does, even by SIGKILL: PR_SET_PDEATHSIG is 1, SIGTERM is 15; then it looks whether
#: that came too late.
_SHIM = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15, 0, 0, 0); "
    "os.getppid() == int(sys.argv[1]) or sys.exit(1); os.execv(sys.argv[2], sys.argv[2:])"
)


def show(errand: Errand) -> int:
    """Set up, show, and take all away again on every way out."""
    errand.place.outside("demo")
    handlers = {number: signal.signal(number, _leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    home = _directory()
    process: subprocess.Popen[bytes] | None = None
    try:
        inner = _environment(home, errand.place.environ)
        process = _daemon(home, inner)
        place = Place(inner, errand.place.uid, os.path.join(home, "project"), home)
        _up(place, process, os.path.join(home, "daemon.log"))
        return _once(place, as_json=errand.asked.json) if errand.params.get("once") else _live(place, errand)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        _end(process)
        shutil.rmtree(home, ignore_errors=True)


def _leave(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _directory() -> str:
    """A short one: sockets lie in it."""
    home = tempfile.mkdtemp(prefix="fleet-demo-")
    longest = paths.door(os.path.join(home, "run", paths.APP), paths.project_id("demo", home), "a99999")
    if len(os.fsencode(longest)) > paths.SOCKET_LIMIT:
        os.rmdir(home)
        home = tempfile.mkdtemp(prefix="fleet-demo-", dir="/tmp")  # made anew, 0700, and short
    return home


def _environment(home: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The person's own, but for where things lie. Its socket is named, so that no other daemon can be met."""
    inner = dict(environ)
    for name, below_home in (("RUNTIME_DIR", "run"), ("STATE_HOME", "state"), ("CONFIG_HOME", "config")):
        inner["XDG_" + name] = os.path.join(home, below_home)
        os.mkdir(inner["XDG_" + name], 0o700)
    inner[paths.SOCKET_VARIABLE] = paths.control_socket(os.path.join(inner["XDG_RUNTIME_DIR"], paths.APP))
    return inner


def _daemon(home: str, inner: Mapping[str, str]) -> subprocess.Popen[bytes]:
    # The shim needs a path to execute, which a script of ours has and `python` too.
    command = daemon.command()
    log = os.path.join(home, "daemon.log")
    shim = [sys.executable, "-Ic", _SHIM, str(os.getpid()), *command]
    return daemon.launch(shim, log, inner)[0]


def _up(place: Place, process: subprocess.Popen[bytes], log: str) -> None:
    """Copy the shipped example to where a project would be, and run it once the daemon answers."""
    from importlib.resources import files

    shipped = files("supervisor.demo")
    os.mkdir(place.cwd)
    for item in shipped.iterdir():
        if item.is_file() and not item.name.endswith((".py", ".pyc")):
            with open(os.path.join(place.cwd, item.name), "wb") as target:
                target.write(item.read_bytes())
    client = daemon.wait(place, process, log, 0)
    file = os.path.join(place.cwd, paths.FILE)
    params = {"file": file, "content": bringing.content(file), "path": place.environ.get("PATH", ""), "cwd": place.cwd}
    with client:
        client.call("up", params, _CURTAIN)


def _inside(place: Place, *words: str) -> Errand:
    """An errand as if one stood in the demo's project."""
    return Errand(options.parse(words), place)


def _live(place: Place, errand: Errand) -> int:
    if not errand.screen.tty:
        raise Failure(2, "the demo is live on a terminal", "elsewhere: supervisorctl demo --once")
    from supervisor.ctl.watch import watch

    return watch(_inside(place, "tree", "--watch"))


def _once(place: Place, *, as_json: bool) -> int:
    """Wait until a child of a child has spent something, which is when there is a tree to see; then draw once."""
    inside = _inside(place, "tree", *(["--json"] if as_json else []))
    answer: dict[str, Any] = {}
    for answer in _answers(inside):
        children = [child for main in answer.get("agents") or () for child in main["children"]]
        if any(tokens(agent, "own") for child in children for agent in below(child["children"])):
            break
    return inside.answer(answer, draw(answer, inside.screen, Fold()))


def _answers(inside: Errand) -> Iterator[dict[str, Any]]:
    """The tree, again and again, for as long as the curtain may stay down."""
    begun = time.monotonic()
    while True:
        yield inside.ask({})
        if time.monotonic() - begun > _CURTAIN:
            return
        time.sleep(_STEP)


def _end(process: subprocess.Popen[bytes] | None) -> None:
    """The daemon leaves in order; its directories must not vanish below it."""
    if process is None:
        return
    process.terminate()
    try:
        process.wait(_LEAVING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise Failure(NO_DAEMON, f"the demo's daemon (pid {process.pid}) had to be killed") from None
