"""The wire: JSON-RPC 2.0, one object a line, as values both ways. Sans-IO and stdlib only: it knows what a
well-formed line is and must never know who sent it, what a verb does, or a socket."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Final, NoReturn

from supervisor.core.weight import heavy

#: A request's line may be this long (bytes, without its newline). Replies may be longer: a client's splitter says so
#: itself.
LIMIT: Final = 1 << 20

#: More values than this stand in no request of ours.
VALUES: Final = 10_000

PARSE: Final = -32700
INVALID: Final = -32600
UNKNOWN: Final = -32601
PARAMS: Final = -32602
INTERNAL: Final = -32603
REFUSED: Final = -32000
TIMED_OUT: Final = -32001
BUSY: Final = -32002

Id = int | str | None

#: No number or id of ours is longer, and converting a longer one to an int takes quadratic time.
_DIGITS: Final = 64
_ID_LENGTH: Final = 256
_MEMBERS: Final = frozenset(("jsonrpc", "id", "method", "params"))


class WireError(Exception):
    """An error as it stands on the wire. `id` is the request's where it is known."""

    def __init__(self, code: int, message: str, data: dict[str, object] | None = None, id: Id = None) -> None:  # noqa: A002 - the word of JSON-RPC
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.id = id


class BadParams(WireError):  # noqa: N818 - names what is bad
    """A parameter that is missing, unknown or of another shape."""

    def __init__(self, parameter: str, message: str, nearest: str = "") -> None:
        super().__init__(PARAMS, message, {"parameter": parameter, "nearest": nearest})


class TimedOut(WireError):  # noqa: N818 - as above
    """The caller's own time was over before what it waited for happened."""

    def __init__(self, message: str) -> None:
        super().__init__(TIMED_OUT, message)


@dataclass(frozen=True, slots=True)
class Request:
    """One question of a client."""

    id: int | str
    method: str
    params: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to request `id`."""

    id: Id
    value: object


@dataclass(frozen=True, slots=True)
class Failure:
    """The error that answers request `id`; None: no request of ours could be read."""

    id: Id
    error: WireError


@dataclass(frozen=True, slots=True)
class Notification:
    """One line of an answer that goes on."""

    method: str
    params: dict[str, object]


Reply = Result | Failure | Notification


class Splitter:
    """Bytes in, lines out. Holds at most `limit` bytes of a line that has not ended; a longer one is reported once, as
    None, and skipped up to its newline. Blank lines are nothing."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._held = bytearray()
        self._skipping = False

    @property
    def held(self) -> int:
        """Bytes of a line that has begun and not ended."""
        return len(self._held)

    def feed(self, data: bytes) -> list[bytes | None]:
        """The lines that end in `data`, without their newline."""
        lines: list[bytes | None] = []
        *ends, rest = data.split(b"\n")
        for end in ends:
            if self._skipping:
                self._skipping = False
                continue
            line = bytes(self._held) + end if self._held else end
            self._held.clear()
            if len(line) > self._limit:
                lines.append(None)
            elif line.strip():
                lines.append(line)
        if not self._skipping:
            self._held += rest
            if len(self._held) > self._limit:
                self._held = bytearray()
                self._skipping = True
                lines.append(None)
        return lines


def request(id: int | str, method: str, params: dict[str, object] | None = None) -> bytes:  # noqa: A002 - the word of JSON-RPC
    """A question's line."""
    return _line({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})


def result(id: Id, value: object) -> bytes:  # noqa: A002 - the word of JSON-RPC
    """An answer's line. Raises TypeError, ValueError or RecursionError for what JSON cannot hold."""
    return _line({"jsonrpc": "2.0", "id": id, "result": value})


def error(id: Id, code: int, message: str, data: dict[str, object] | None = None) -> bytes:  # noqa: A002 - the word of JSON-RPC
    """An error's line."""
    body: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        body["data"] = data
    return _line({"jsonrpc": "2.0", "id": id, "error": body})


def failed(id: Id, problem: WireError) -> bytes:  # noqa: A002 - the word of JSON-RPC
    """The line that carries `problem`."""
    return error(id, problem.code, problem.message, problem.data)


def notification(method: str, params: dict[str, object]) -> bytes:
    """One line of an answer that goes on."""
    return _line({"jsonrpc": "2.0", "method": method, "params": params})


def parse(line: bytes) -> Request:
    """The request on a line. Raises WireError with JSON-RPC's code for what is wrong with it."""
    if heavy(line, VALUES):
        raise WireError(INVALID, f"a request holds more than {VALUES} values")
    value = _load(line)
    if isinstance(value, list):
        raise WireError(INVALID, "a batch is not taken: write one request a line")
    if not isinstance(value, dict):
        raise WireError(INVALID, "a request is an object")
    ident = _identify(value)
    strange = value.keys() - _MEMBERS
    if strange:
        raise WireError(INVALID, f"a request has no member {brief(min(strange))}", id=ident)
    if value.get("jsonrpc") != "2.0":
        raise WireError(INVALID, 'a request says "jsonrpc": "2.0"', id=ident)
    if not isinstance(value.get("method"), str):
        raise WireError(INVALID, "a request names its method, as a string", id=ident)
    params = value.get("params", {})
    if isinstance(params, list):
        raise WireError(PARAMS, "parameters are named: write an object", id=ident)
    if not isinstance(params, dict):
        raise WireError(INVALID, "params is an object", id=ident)
    return Request(ident, value["method"], params)


def reply(line: bytes) -> Reply:
    """What a server's line says, for its client. Raises WireError for a line that is no reply."""
    value = _load(line)
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise WireError(INVALID, "the answer is no JSON-RPC 2.0 object")
    ident = value.get("id")
    if not (ident is None or isinstance(ident, str) or type(ident) is int):
        raise WireError(INVALID, "the answer's id is neither a string nor an integer")
    if "result" in value:
        return Result(ident, value["result"])
    if isinstance(value.get("error"), dict):
        return Failure(ident, _revive(value["error"]))
    if isinstance(value.get("method"), str) and isinstance(value.get("params", {}), dict):
        return Notification(value["method"], value.get("params", {}))
    raise WireError(INVALID, "the answer has neither result nor error")


def brief(word: str) -> str:
    """A stranger's word as it may stand in a message: quoted, printable, short."""
    return ascii(word if len(word) <= 60 else word[:57] + "...")


def _identify(value: dict[str, object]) -> int | str:
    """The request's id; what has none asks for no answer, and every verb answers."""
    if "method" not in value and ("result" in value or "error" in value):
        raise WireError(INVALID, "an answer is not taken here: write a request")
    if value.get("id") is None:
        raise WireError(INVALID, "a request has an id: every verb answers")
    ident = value["id"]
    if isinstance(ident, int) and not isinstance(ident, bool):
        return ident
    if isinstance(ident, str) and len(ident) <= _ID_LENGTH:
        return ident
    raise WireError(INVALID, f"an id is an integer or a string of at most {_ID_LENGTH} characters")


def _revive(body: dict[str, object]) -> WireError:
    """The exception that an error's body says."""
    code, data = body.get("code"), body.get("data")
    return WireError(
        code if type(code) is int else INTERNAL, str(body.get("message", "")), data if isinstance(data, dict) else None
    )


def _line(value: object) -> bytes:
    # A lone surrogate stands for a byte that was no UTF-8; one of them must not cost the whole answer.
    return ENCODER.encode(value).encode("utf-8", "replace") + b"\n"


class _BadValueError(ValueError):
    """Well-formed JSON that no request of ours holds."""


def _load(line: bytes) -> object:
    try:
        value = _DECODER.decode(line.decode())
        if b"\\ud" in line or b"\\uD" in line:
            json.dumps(value, ensure_ascii=False).encode()
    except _BadValueError as problem:
        raise WireError(INVALID, str(problem)) from None
    except UnicodeEncodeError:
        raise WireError(PARSE, "half a surrogate pair is no text") from None
    except UnicodeDecodeError:
        raise WireError(PARSE, "the line is not UTF-8") from None
    except RecursionError:
        raise WireError(PARSE, "the line is nested too deeply") from None
    except json.JSONDecodeError as problem:
        raise WireError(PARSE, f"the line is no JSON: {problem.msg} at character {problem.pos + 1}") from None
    return value


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]  # add answers None, which is false
        raise _BadValueError(f"the name {brief(twice)} stands twice in one object")
    return found


def _int(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise _BadValueError(f"a number has more than {_DIGITS} digits")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits) if len(digits) <= _DIGITS else math.inf
    if not math.isfinite(value):
        raise _BadValueError(f"the number {brief(digits)} is too large or too long")
    return value


def _constant(word: str) -> NoReturn:
    raise _BadValueError(f"{word} is no number")


ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_int, parse_float=_float, parse_constant=_constant)
