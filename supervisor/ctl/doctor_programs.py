"""Doctor: each agent CLI on PATH: which version, whether it can run, whether somebody is logged in. By files and
environment alone; a program is run only to say its version, and never for long."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading

from supervisor.ctl.findings import BAD, OK, WARN, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from supervisor.ctl.place import Place
    from supervisor.kinds.programs import Program

TOPIC = "agent CLIs"
#: How long a program may take to say its version (seconds).
_WITHIN = 1.2
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?[-\w.]*")
_SCRIPT = re.compile(rb"#!\s*\S*(?:env\s+)?(?:-S\s+)?\S*node\b")


def look(place: Place) -> list[Finding]:
    """All of the table, at once."""
    from supervisor.kinds.programs import PROGRAMS

    path = place.environ.get("PATH", os.defpath)
    here = [(program, found) for program in PROGRAMS if (found := shutil.which(program.name, path=path))]
    away = [program.name for program in PROGRAMS if program.name not in {known.name for known, _ in here}]
    node = _Node(path)
    told: dict[str, list[Finding]] = {}

    def one(program: Program, found: str) -> None:
        told[program.name] = [*_examined(place.environ, program, found, node)]

    threads = [threading.Thread(target=one, args=each, daemon=True) for each in here]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    findings = [each for program, _ in here for each in told.get(program.name, ())]
    if away:
        findings.append(Finding(OK, TOPIC, f"not on PATH: {', '.join(away)}"))
    return findings


def _examined(environ: Mapping[str, str], program: Program, found: str, node: _Node) -> Iterator[Finding]:
    from supervisor.runtime.programs import version

    script = bool(program.node) and _is_script(found)
    told = version(found) or said(found, environ)
    needs = ".".join(map(str, program.node))
    if script and node.version < program.node:
        has = ".".join(map(str, node.version)) or "none"
        words = f"{program.name} {told} ({found}) needs Node.js {needs} and PATH has {has}"
        yield Finding(BAD, TOPIC, words, "put a newer node before it on PATH, then `supervisorctl up` in that shell")
    elif not told:
        words = f"{program.name} ({found}) does not say its version within {_WITHIN:g} s"
        yield Finding(WARN, TOPIC, words, f"see what it does: {program.name} --version")
    elif told != program.tested:
        words = f"{program.name} {told} ({found}); the version that was tested is {program.tested}"
        do = f"if it misbehaves: npm install -g {program.package}@{program.tested}"
        yield Finding(WARN, TOPIC, words, do, program.traps)
    else:
        yield Finding(OK, TOPIC, f"{program.name} {told} ({found})", notes=program.traps)
    if not logged_in(environ, program):
        words = f"{program.name}: no login is found, neither a key in the environment nor a file of its own"
        yield Finding(WARN, TOPIC, words, f"log in once by hand: {program.login}")


def _is_script(found: str) -> bool:
    try:
        with open(found, "rb") as source:
            return _SCRIPT.match(source.read(128)) is not None
    except OSError:
        return False


def logged_in(environ: Mapping[str, str], program: Program) -> bool:
    """Whether a key is set or a file of a login is there, wherever the person keeps it."""
    if any(value and _is_key(name, key) for name, value in environ.items() for key in program.keys):
        return True
    variable, default = program.home
    home = environ.get("HOME") or os.path.expanduser("~")
    base = environ.get(variable) or default.replace("~", home, 1)
    return any(os.path.exists(os.path.join(base, file)) for file in program.files)


def _is_key(name: str, key: str) -> bool:
    return name.endswith(key[1:]) if key.startswith("*") else name == key


def said(found: str, environ: Mapping[str, str]) -> str:
    """What a program says is its version, if it does in time. Nothing of it stays."""
    try:
        process = subprocess.Popen(  # noqa: S603  the person's own program
            [found, "--version"], cwd="/", env=dict(environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError:
        return ""
    try:
        told, _ = process.communicate(timeout=_WITHIN)
    except subprocess.TimeoutExpired:
        told = ""
    finally:
        # Its group, which is not reused while its leader is not reaped.
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    match = _VERSION.search(told)
    return match[0] if match else ""


class _Node:
    """The Node.js of PATH, asked once, when somebody wants to know."""

    def __init__(self, path: str) -> None:
        self._found = shutil.which("node", path=path)
        self._lock = threading.Lock()
        self._version: tuple[int, ...] | None = None

    @property
    def version(self) -> tuple[int, ...]:
        """Its parts; () where there is none."""
        with self._lock:
            if self._version is None:
                told = said(self._found, dict(os.environ)) if self._found else ""
                self._version = tuple(int(part) for part in re.findall(r"\d+", told)[:3])
            return self._version
