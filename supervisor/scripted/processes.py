"""The scripted agent's children: tools it waits for, `supervisorctl`, and processes that it leaves behind."""

from __future__ import annotations

import os
import signal
import time
from typing import NoReturn

from supervisor.scripted.agent import Agent
from supervisor.scripted.inbox import CutError, StopError
from supervisor.scripted.script import ScriptError

#: What is kept of a child's output.
_KEPT = 1 << 16


def pause(seconds: float) -> None:
    """Stand still, whatever comes."""
    time.sleep(seconds)


def run(agent: Agent, argv: list[str]) -> tuple[int, str]:
    """A child in a session of its own, as agent CLIs start their tools: (exit code, stdout).

    An interruption ends it."""
    read, write = os.pipe()
    actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, write, 1)]
    try:
        pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions, setsid=True)
    except OSError as error:
        os.close(read)
        raise ScriptError(f"cannot run {argv[0]}: {error.strerror}") from None
    finally:
        os.close(write)
    handle = os.pidfd_open(pid)
    try:
        output = _listen(agent, read, handle)
    except (CutError, StopError):
        os.killpg(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        raise
    finally:
        os.close(read)
        os.close(handle)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), output.decode("utf-8", "replace")


def _listen(agent: Agent, read: int, handle: int) -> bytes:
    """Until the child has ended; what it left running may hold its stdout for ever."""
    output = b""
    watched = [read, handle]
    while True:
        ready = agent.inbox.wait(None, *watched)
        if read in ready:
            chunk = os.read(read, 1 << 16)
            output = (output + chunk)[-_KEPT:]
            if not chunk:
                watched.remove(read)
        elif handle in ready:
            return output


def control(agent: Agent, argv: list[str]) -> None:
    """Ask the supervisor, by the same client that a person uses; remember what it said."""
    import json  # noqa: PLC0415 - see inbox

    code, output = run(agent, ["supervisorctl", argv[0], "--json", *argv[1:]])
    try:
        answer = json.loads(output)
    except ValueError:
        answer = {}
    refused = answer.get("refused") if isinstance(answer, dict) else None
    if refused:
        agent.outcome = ("refused", refused.get("code") or "", refused.get("field") or "")
        agent.say("status", text=f"{argv[0]} refused: {refused.get('message') or ' '.join(agent.outcome)}")
    elif code:
        agent.outcome = ("failed", str(code))
        agent.say("status", text=f"{argv[0]} failed with {code}")
    else:
        agent.outcome = ("ok",)
        started = answer.get("agent") if isinstance(answer, dict) else None
        told = f"{started['name']} ({started['id']})" if isinstance(started, dict) else output.strip()
        agent.say("status", text=f"{argv[0]}: {told}")
    noted = f"{argv[0]} {' '.join(agent.outcome)} {output.strip()}"
    agent.memory.note("ctl", noted[:2000].replace("\n", " "))


def leave(way: str, argv: list[str]) -> int:
    """Start a process and do not look after it; its pid."""
    if way not in WAYS:
        raise ScriptError(f"no way to leave a process: {way}; known are {', '.join(WAYS)}")
    read, write = os.pipe()
    first = os.fork()
    if first == 0:
        _become(way, argv, write)
    os.close(write)
    with open(read, "rb") as told:
        pid = int(told.read(32) or b"0")
    if pid != first:
        os.waitpid(first, 0)
    return pid


#: How a process is left: in the agent's own group; in a session of its own; twice forked and with an empty
#: environment; deaf to SIGHUP and twice forked; with the agent's stdout in its hands; deaf to SIGTERM.
WAYS = ("child", "setsid", "daemon", "nohup", "stdout", "stubborn")


def _become(way: str, argv: list[str], write: int) -> NoReturn:
    """In the forked child: never comes back."""
    try:
        if way in {"setsid", "daemon"}:
            os.setsid()
        if way in {"daemon", "nohup"} and os.fork():
            os._exit(0)
        if way in {"nohup", "stubborn"}:
            signal.signal(signal.SIGHUP if way == "nohup" else signal.SIGTERM, signal.SIG_IGN)
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 2) if way == "stdout" else (0, 1, 2):
            os.dup2(null, fd)
        os.write(write, str(os.getpid()).encode())
        os.execvpe(argv[0], argv, {} if way == "daemon" else os.environ)  # noqa: S606 - a shell would be one more
    finally:
        os._exit(127)
