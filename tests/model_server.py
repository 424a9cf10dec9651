"""A model provider on loopback, played by a script, that keeps a bill: tests compare what was booked with it.

The last `[[mark]]` in what the user said decides the answer: `[[ok]]`, `[[say:WORDS]]`, `[[bash:COMMAND]]`
(one tool call, then words), `[[call:TOOL {JSON}]]` (of any tool), `[[slow:SECONDS]]`, `[[hold:NAME]]`, which is
answered when the test calls `release(NAME)`, and `[[err:CODE]]`, `[[err:CODE,TIMES]]` or `[[err:CODE,TIMES,NAME]]`,
which is held like that once it has failed so often. It must bill exactly what it told the client."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from tests.model_wires import WIRES, Talk, Wire

if TYPE_CHECKING:
    from types import TracebackType

#: What agent CLIs call the tool that runs a command.
_SHELLS = {"bash", "run_shell_command"}
#: What a bill tells, in the ledger's words.
BILLED = ("input", "cache_read", "cache_write", "output", "reasoning", "calls")
_MARK = re.compile(r"\[\[(\w+)(?::(.*?))?\]\]", re.DOTALL)


@frozen
class Call:
    """One answered request. `n` is the number of answers that the conversation had before."""

    wire: str
    model: str
    key: str
    n: int
    said: str
    input: int
    cache_read: int
    cache_write: int
    output: int
    reasoning: int

    @property
    def tokens(self) -> int:
        return self.input + self.cache_read + self.cache_write + self.output


@define
class ModelServer:
    """`with ModelServer() as server:`; `server.bill` is what was told, in order."""

    bill: list[Call] = field(factory=list)
    #: each request's last user text, failed ones included; whoever sees one here finds it in the lists below
    asked: list[str] = field(factory=list)
    #: each request's tools, by name
    tools: list[list[str]] = field(factory=list)
    #: what tools answered, as each request that ends with it brought it
    results: list[tuple[str, ...]] = field(factory=list)
    #: each request, whole, as JSON
    bodies: list[str] = field(factory=list)
    url: str = ""
    #: what a failure says of when to ask again (seconds); 0: nothing
    retry_after: int = 0
    _failed: Counter[str] = field(factory=Counter)
    _released: set[str] = field(factory=set)
    _changed: threading.Condition = field(factory=threading.Condition)
    _closing: bool = False
    _http: ThreadingHTTPServer | None = None
    _thread: threading.Thread | None = None

    def __enter__(self) -> ModelServer:
        owner = self

        class Handler(_Handler):
            server_of_test = owner

        self._http = _Http(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._http and self._thread:
            self._http.shutdown()
            self._thread.join()
            self._http.server_close()

    def release(self, name: str) -> None:
        """Let the requests go on that `[[hold:NAME]]` holds."""
        with self._changed:
            self._released.add(name)
            self._changed.notify_all()

    def total(self, model: str | None = None, key: str | None = None) -> dict[str, int]:
        """The bill in the ledger's words, of all calls or of one model's or key's."""
        calls = [c for c in self.bill if model in {None, c.model} and key in {None, c.key}]
        return {name: sum(getattr(c, name) for c in calls) for name in BILLED[:-1]} | {"calls": len(calls)}

    # --- for the handler

    def note(self, talk: Talk, tools: list[str], body: str) -> None:
        """A request has come: it has the same place in each list."""
        with self._changed:
            self.tools.append(tools)
            self.bodies.append(body)
            self.results.append(talk.results)
            self.asked.append(talk.said)

    def book(self, call: Call) -> None:
        with self._changed:
            self.bill.append(call)

    def fails(self, mark: str, times: int) -> bool:
        """Whether a request with this mark is one of the first so many."""
        with self._changed:
            self._failed[mark] += 1
            return self._failed[mark] <= times

    def pause(self, seconds: float) -> bool:
        """Wait a moment; False when the server closes."""
        with self._changed:
            return not self._changed.wait_for(lambda: self._closing, timeout=seconds)

    def held(self, name: str) -> bool:
        """Still to be held, after a moment's wait for its release."""
        with self._changed:
            return not self._changed.wait_for(lambda: self._closing or name in self._released, timeout=0.05)


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # closing it joins the threads of its requests


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5
    server_of_test: ModelServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing on the tests' stderr."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        wire = next((kind for end, kind in WIRES.items() if path.endswith(end)), None)
        if wire is None:
            self._fail(404, {"error": {"message": f"no wire is spoken at {self.path}"}})
            return
        talk = wire.read(body)
        self.server_of_test.note(talk, wire.tools(body), json.dumps(body, ensure_ascii=False))
        found = _MARK.findall(talk.said)
        mark, given = found[-1] if found else ("ok", "")
        if mark == "err":
            code, times, name = [*given.split(","), "", ""][:3]
            if self.server_of_test.fails(talk.said, int(times or 10**9)):
                self._fail(int(code), wire.failure(int(code)))
                return
            mark, given = ("hold", name) if name else ("ok", "")
        # A Gemini request names its model in its path: /v1beta/models/NAME:streamGenerateContent
        model = body.get("model") or path.rpartition("/")[2].partition(":")[0]
        shell = next((name for name in wire.tools(body) if name.lower() in _SHELLS), "bash")
        self._answer(wire(self._send, talk, model), mark, given, shell)

    def _answer(self, answer: Wire, mark: str, given: str, shell: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self._tell(answer, mark, given, shell, tooled=bool(answer.talk.results))
            self._book(answer, answer.numbers)  # before its end: the client may be read before we go on
            answer.finish()
        except (BrokenPipeError, ConnectionResetError):  # the client cut its turn
            if answer.told and not answer.finished:
                self._book(answer, answer.told)

    def _book(self, answer: Wire, numbers: dict[str, int]) -> None:
        answer.finished = True
        bearer = (self.headers.get("authorization") or "").removeprefix("Bearer ")
        key = self.headers.get("x-api-key") or self.headers.get("x-goog-api-key") or bearer
        talk = answer.talk
        call = Call(wire=answer.name, model=answer.model, key=key, n=talk.n, said=talk.said, **numbers)
        self.server_of_test.book(call)

    def _tell(self, answer: Wire, mark: str, given: str, shell: str, *, tooled: bool) -> None:
        test = self.server_of_test
        answer.begin()
        if mark == "bash" and not tooled:
            answer.words("I will run it.")
            answer.tool(shell, {"command": given})
        elif mark == "call" and not tooled:
            name, _, arguments = given.partition(" ")
            answer.tool(name, json.loads(arguments))
        elif mark == "slow":
            for count in range(int(float(given) * 10)):
                if not test.pause(0.1):
                    break
                answer.words(f"slowly {count} ")
        elif mark == "hold":
            answer.words("held ")
            count = 0
            while test.held(given):
                count += 1  # gemini takes the same words again and again for a loop, and ends its turn
                answer.words(f"still {count} ")  # a client that has left is noticed by this
            answer.words("released")
        elif mark == "say":
            answer.words(given)
        else:
            answer.words("It has run." if tooled else "Very well.")

    def _send(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()

    def _fail(self, code: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        if self.server_of_test.retry_after:
            self.send_header("retry-after", str(self.server_of_test.retry_after))
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        self.wfile.write(data)
