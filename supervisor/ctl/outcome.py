"""How a command ends: the exit codes, and the one exception that carries words, remedy and JSON out."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DONE = 0
REFUSED = 1
USAGE = 2
TIMED_OUT = 4
NO_DAEMON = 69
BAD_CONFIG = 78
INTERRUPTED = 130

#: What the exit codes mean, for help and for the reference.
MEANING = {
    DONE: "done",
    REFUSED: "refused or failed",
    USAGE: "used wrongly",
    TIMED_OUT: "timed out",
    NO_DAEMON: "no daemon",
    BAD_CONFIG: "bad configuration",
}


class Failure(Exception):  # noqa: N818  it is how a command ends, an error or not
    """A command that did not do what was asked. `remedy` lines say what to do; `shape` is what `--json`
    prints (default: `{"error": {"exit", "message"}}`)."""

    def __init__(
        self,
        code: int,
        message: str,
        *remedy: str,
        shape: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = tuple(line for line in remedy if line)
        self.shape: Mapping[str, object] = shape or {"error": {"exit": code, "message": message}}
