"""What acts for a test inside a user manager's namespaces: runs commands, passes a socket on. Standard library only;
given to an interpreter as text, since the user inside may not be able to read this file.

usage: python -c TEXT DIRECTORY. `commands` in the directory takes a JSON line {"argv", "stdin"} and answers with
{"code", "out", "err"}; `daemon` passes on to the daemon's control socket. It ends when its stdin does."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable

CONTROL = os.path.join(os.environ["XDG_RUNTIME_DIR"], "fleet-supervisor", "control.sock")


def command(client: socket.socket) -> None:
    with client, client.makefile("rwb") as stream:
        asked = json.loads(stream.readline())
        try:
            done = subprocess.run(
                asked["argv"], input=asked.get("stdin", "").encode(), capture_output=True, check=False, cwd=asked["cwd"]
            )
            answer = {"code": done.returncode, "out": done.stdout.decode(), "err": done.stderr.decode()}
        except OSError as error:
            answer = {"code": 127, "out": "", "err": str(error)}
        stream.write(json.dumps(answer).encode() + b"\n")


def pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for end, how in ((source, socket.SHUT_RD), (target, socket.SHUT_WR)):
        with contextlib.suppress(OSError):
            end.shutdown(how)


def passing(client: socket.socket) -> None:
    with client, socket.socket(socket.AF_UNIX) as daemon:
        try:
            daemon.connect(CONTROL)
        except OSError:
            return
        there = threading.Thread(target=pump, args=(client, daemon))
        there.start()
        pump(daemon, client)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)  # a daemon that has died is not asked any more
        there.join()


def serve(listening: socket.socket, each: Callable[[socket.socket], None]) -> None:
    while True:
        client, _ = listening.accept()
        threading.Thread(target=each, args=(client,), daemon=True).start()


def main(directory: str) -> None:
    for name, each in (("commands", command), ("daemon", passing)):
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(os.path.join(directory, name))
        listening.listen(64)
        threading.Thread(target=serve, args=(listening, each), daemon=True).start()
    print("open", flush=True)
    sys.stdin.read()


main(sys.argv[1])
