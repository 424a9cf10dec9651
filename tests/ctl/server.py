"""A small real Unix-socket server that speaks the wire by hand: the client is tested against lines, not itself."""

from __future__ import annotations

import contextlib
import json
import os
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

#: What a method answers: a value; or an iterator whose items are notifications and whose return is the result.
Answer = Callable[[str, dict[str, Any]], Any]
MAIN = [sys.executable, "-c", "import sys; from supervisor.ctl.main import main; sys.exit(main())"]


class WireError(Exception):
    """An error answer."""

    def __init__(self, number: int, words: str, /, **data: object) -> None:
        super().__init__(words)
        self.body: dict[str, Any] = {"code": number, "message": words, **({"data": data} if data else {})}


class HangUpError(Exception):
    """Close the connection instead of an answer."""


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError, HangUpError, ValueError):
            for line in self.rfile:
                self._answer(json.loads(line))

    def _answer(self, request: dict[str, Any]) -> None:
        self.server.requests.append(request)
        try:
            value = self.server.answer(request["method"], request["params"])
            while isinstance(value, Iterator):
                try:
                    note = next(value)
                except StopIteration as end:
                    value = end.value
                else:
                    self._send({"method": request["method"], "params": note})
            self._send({"id": request["id"], "result": value})
        except WireError as error:
            self._send({"id": request["id"], "error": error.body})

    def _send(self, message: dict[str, Any]) -> None:
        self.wfile.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = False
    answer: Answer
    requests: list[dict[str, Any]]


class Fake:
    """A listening server. `requests` are all it was asked, in order."""

    def __init__(self, path: Path, answer: Answer) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._server = _Server(str(path), _Handler)
        self._server.answer = answer
        self._server.requests = []
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def requests(self) -> list[dict[str, Any]]:
        return self._server.requests

    def __enter__(self) -> Fake:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self.path.unlink(missing_ok=True)

    def params(self, method: str) -> dict[str, Any]:
        """What the method was asked with, once, without what every method takes."""
        (found,) = [request["params"] for request in self.requests if request["method"] == method]
        return {name: value for name, value in found.items() if name not in {"cwd", "project"}}


def socket_path() -> Path:
    """Where this test's client looks first."""
    return Path(os.environ["XDG_RUNTIME_DIR"]) / "fleet-supervisor" / "control.sock"


def serve(answer: Answer | dict[str, Any]) -> Fake:
    """A daemon for this test's client; a mapping has the result of each method."""
    if isinstance(answer, dict):
        values = answer
        return Fake(socket_path(), lambda method, _: values[method])
    return Fake(socket_path(), answer)


def ctl(
    *args: str, stdin: str = "", env: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """The real client process."""
    environ = {**os.environ, "TZ": "UTC", "PYTHONIOENCODING": "utf-8", **(env or {})}
    return subprocess.run(
        [*MAIN, *args], input=stdin, env=environ, cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )
