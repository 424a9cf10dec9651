"""The client's end of the wire: blocking, one JSON-RPC object a line. It speaks to a daemon of its own uid
only, and draws nothing."""

from __future__ import annotations

import json
import os
import socket
import struct
import time

from supervisor.ctl.outcome import NO_DAEMON, REFUSED, TIMED_OUT, USAGE, Failure
from supervisor.ctl.refusal import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    #: Decoded JSON: whatever the daemon answered.
    Json = Any

REFUSAL = -32000
TIMEOUT = -32001
BAD_PARAMS = -32602
UNKNOWN_METHOD = -32601
#: How long a daemon may take for an answer that waits for nothing. A busy machine is no dead daemon.
PATIENCE = 30.0
#: What is added to a person's own `--timeout`, so that the daemon's answer "timed out" comes first.
SLACK = 5.0
_CHUNK = 1 << 16
#: A daemon that was killed leaves its socket behind; its warden, or systemd, has started it again within so long
#: (seconds). A call that comes in between waits, looking again every so often.
RETURN, _AGAIN = 2.0, 0.02
#: A daemon that is seen standing still so often, a second apart, is wedged.
_LOOKS = 2


class Client:
    """One connection. `pid` is the process that listens at the other end, as the kernel names it."""

    def __init__(self, sock: socket.socket, path: str, pid: int) -> None:
        self.sock = sock
        self.path = path
        self.pid = pid
        self._buffer = bytearray()
        self._seen = 0
        self._next = 0

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def fileno(self) -> int:
        return self.sock.fileno()

    def call(
        self,
        method: str,
        params: Mapping[str, object],
        within: float | None = PATIENCE,
        tick: Callable[[float], None] | None = None,
    ) -> Json:
        """The method's result. `within` None waits for ever; `tick` is told each second how long it has been."""
        asked = self.ask(method, params)
        for message in self._messages(within, tick):
            if message.get("id") == asked or "error" in message:
                return result(message)
        raise self._broken(None)

    def ask(self, method: str, params: Mapping[str, object]) -> int:
        """Send a request and return its id. A line is ASCII: no sign inside a text can end it early."""
        self._next += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        try:
            self.sock.settimeout(PATIENCE)
            self.sock.sendall(line.encode("ascii") + b"\n")
        except TimeoutError:
            raise self.silent(PATIENCE) from None
        except OSError as error:
            raise self._broken(error) from None
        return self._next

    def stream(self, method: str, params: Mapping[str, object]) -> Iterator[Json]:
        """The params of each notification as it comes, and last the result, until either side leaves."""
        asked = self.ask(method, params)
        for message in self._messages(None):
            if "method" in message:
                yield message.get("params")
            elif message.get("id") == asked or "error" in message:
                yield result(message)
                return
        raise self._broken(None)

    def ready(self) -> Iterator[Json]:
        """Whatever has arrived, without waiting. Raises when the daemon hung up."""
        self.sock.settimeout(0)
        while True:
            try:
                chunk = self.sock.recv(_CHUNK)
            except BlockingIOError:
                break
            except OSError as error:
                raise self._broken(error) from None
            if not chunk:
                raise self._broken(None)
            self._buffer += chunk
        while (line := self._line()) is not None:
            yield _decode(line)

    def _messages(self, within: float | None, tick: Callable[[float], None] | None = None) -> Iterator[dict[str, Json]]:
        begun = time.monotonic()
        frozen = 0
        while True:
            while (line := self._line()) is not None:
                yield _decode(line)
            gone = time.monotonic() - begun
            left = None if within is None else within - gone
            if left is not None and left <= 0:
                raise self.silent(within or 0.0)
            try:
                self.sock.settimeout(None if left is None and tick is None else min(1.0, 1.0 if left is None else left))
                chunk = self.sock.recv(_CHUNK)
            except TimeoutError:
                frozen = frozen + 1 if _is_stopped(self.pid) else 0
                if frozen == _LOOKS:
                    raise self.silent(time.monotonic() - begun) from None
                if tick is not None:
                    tick(time.monotonic() - begun)
                continue
            except OSError as error:
                raise self._broken(error) from None
            if not chunk:
                return
            self._buffer += chunk

    def _line(self) -> bytes | None:
        """One complete line. `_seen` keeps a long line from being searched again at every chunk."""
        at = self._buffer.find(b"\n", self._seen)
        if at < 0:
            self._seen = len(self._buffer)
            return None
        line = bytes(self._buffer[:at])
        del self._buffer[: at + 1]
        self._seen = 0
        return line

    def silent(self, within: float) -> Failure:
        """The failure for a daemon that lives and says nothing."""
        if _is_stopped(self.pid):
            return Failure(
                TIMED_OUT,
                f"the daemon is wedged: pid {self.pid} lives, was stopped (SIGSTOP) and gives no answer",
                f"what was asked is not done unless it was under way; let it go on: kill -CONT {self.pid}",
            )
        return Failure(
            TIMED_OUT,
            f"the daemon is wedged: pid {self.pid} lives and gave no answer within {within:g} s",
            f"look at its log; end it, and what is wanted runs again at its next start: kill {self.pid}",
        )

    def _broken(self, error: OSError | None) -> Failure:
        why = f": {error.strerror}" if error is not None and error.strerror else ""
        return Failure(
            NO_DAEMON,
            f"the daemon (pid {self.pid}) closed the connection before it answered{why}",
            "see whether it lives: supervisorctl status",
        )


def _is_stopped(pid: int) -> bool:
    """Does the process stand still, by a signal or a debugger?"""
    try:
        with open(f"/proc/{pid}/stat", "rb") as source:
            return source.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False


def _decode(line: bytes) -> dict[str, Json]:
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise Failure(REFUSED, "the daemon answered with something that is no JSON-RPC: it is of another version")
    return message


def result(message: Mapping[str, Json]) -> Json:
    """What an answer holds; a failure for what is none."""
    if "error" not in message:
        return message.get("result")
    error = message["error"] if isinstance(message["error"], dict) else {}
    code, words = error.get("code"), str(error.get("message", "the daemon gave no reason"))
    given: Json = error.get("data")
    data = given if isinstance(given, dict) else {}
    if code == REFUSAL:
        raise refused(data, words)
    if code == TIMEOUT:
        raise Failure(TIMED_OUT, words)
    if code == BAD_PARAMS:
        raise Failure(USAGE, words)
    if code == UNKNOWN_METHOD:
        raise Failure(REFUSED, words, "the daemon is of another version: supervisorctl shutdown, then up")
    raise Failure(REFUSED, words)


def connect(sockets: Sequence[str], uid: int, within: float = PATIENCE) -> Client:
    """A connection to the first daemon that answers. One of another uid is not ours, whatever it says; one that was
    killed a moment ago is given the time to come back."""
    given_up = time.monotonic() + RETURN
    while True:
        stale = False
        seen: list[str] = []
        for path in sockets:
            try:
                return _open(path, uid, within)
            except FileNotFoundError:
                continue
            except BlockingIOError:
                raise Failure(
                    TIMED_OUT,
                    f"a daemon listens at {path} and took no connection within {within:g} s",
                    "it is stopped or stuck: see who it is with `ss -xlp`, and end it",
                ) from None
            except OSError as error:
                stale = stale or isinstance(error, ConnectionRefusedError)
                seen.append(f"{path}: {_why(error)}")
        if not stale or time.monotonic() >= given_up:
            raise Failure(NO_DAEMON, "no daemon runs here", *seen, "start it: supervisorctl up")
        time.sleep(_AGAIN)


def _why(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "stale: nobody listens"
    return error.strerror or str(error)


def _open(path: str, uid: int, within: float) -> Client:
    if len(os.fsencode(path)) > 107:
        raise OSError(0, "longer than the 107 bytes of a socket path")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Blocking, with the kernel's own time limit: a socket that does not block is refused at once by a daemon
        # whose queue is full for a moment.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", *divmod(int(within * 1e6), 10**6)))
        sock.connect(path)
        peer = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, owner, _ = struct.unpack("3i", peer)
    except BaseException:
        sock.close()
        raise
    if owner != uid:
        sock.close()
        raise PermissionError(0, f"the uid that answers is {owner} and this one is {uid}")
    return Client(sock, path, pid)
