"""Callers, as programs of the system's Python: what agents and people run in the tests of naming."""

from __future__ import annotations

from tests.unprivileged import SYSTEM_PYTHON

_HEAD = r"""
import json, os, socket, sys, time
door = sys.argv[1]
def connect(path=door):
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    return s
def ask(s, method="whoami"):
    s.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode() + b"\n")
    return answer(s)
def answer(s):
    line = b""
    while not line.endswith(b"\n"):
        got = s.recv(65536)
        if not got:
            return "closed"
        line += got
    body = json.loads(line)
    if "result" in body:
        return " ".join(str(body["result"][k]) for k in ("principal", "id", "run") if k in body["result"])
    return body["error"]["data"]["code"] + ": " + body["error"]["message"]
def orphan():
    '''Goes on only in a grandchild that has been adopted; the caller goes on too, as itself, and gets False.'''
    if os.fork():
        os.wait()
        return False
    os.setsid()
    middle = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == middle:
        os.sched_yield()
    return True
"""


def program(door: str, body: str, *more: str) -> list[str]:
    """argv of a program that has the helpers above."""
    return [SYSTEM_PYTHON, "-I", "-c", _HEAD + body, door, *more]


def asker(door: str) -> list[str]:
    """argv of a program that prints who the daemon says it is."""
    return program(door, "print(ask(connect()))")


def shell(argv: list[str]) -> list[str]:
    """The program as a child of a shell that stays."""
    return ["/bin/sh", "-c", '"$@"; true', "sh", *argv]
