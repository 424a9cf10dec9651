"""The client's entry: reads the command line, sends the errand, and turns how it ended into words and an exit code."""

from __future__ import annotations

import errno
import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TextIO

    from supervisor.ctl.errand import Errand
    from supervisor.ctl.outcome import Failure

#: Modules of PyPI's `supervisor`, which installs a package and commands of the same names.
_THEIRS = ("supervisorctl.py", "options.py", "rpcinterface.py")
_PIPE_CLOSED = 141
#: What a full disk or a broken device says to a write.
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main(argv: Sequence[str] | None = None) -> int:
    """`supervisorctl`."""
    return _main(sys.argv[1:] if argv is None else argv, "")


def disband(argv: Sequence[str] | None = None) -> int:
    """`disband`, which is `supervisorctl disband`."""
    return _main(sys.argv[1:] if argv is None else argv, "disband")


def _main(argv: Sequence[str], verb: str) -> int:
    _open_streams()
    # What a terminal or a pipe cannot encode is shown by its number, and is no reason to fail.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    from supervisor.ctl.outcome import INTERRUPTED, REFUSED, Failure

    try:
        code = _run(argv, verb)
        sys.stdout.flush()
    except Failure as failure:
        return _report(failure, as_json="--json" in argv)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _silence(sys.stdout)  # the reader had enough
        return _PIPE_CLOSED
    except OSError as error:
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        _silence(sys.stdout)
        return _report(Failure(REFUSED, f"the answer cannot be written: {error.strerror}"), as_json=False)
    return code


def _open_streams() -> None:
    """Where a caller closed one of the three there is none at all, and the next file that is opened gets its number."""
    fd = os.open(os.devnull, os.O_RDWR)
    while fd <= 2:
        fd = os.dup(fd)
    os.close(fd)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  it stays open for as long as we are


def _silence(stream: TextIO) -> None:
    """Nothing more is written to it, nor at exit what it still holds."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(argv: Sequence[str], verb: str) -> int:
    _no_clash()
    from supervisor.ctl import options
    from supervisor.ctl.errand import Errand
    from supervisor.ctl.place import Place

    try:
        asked = options.parse(argv, verb)
    except options.Told as told:
        sys.stdout.write(told.text)
        return 0
    return _do(Errand(asked, Place.here(os.environ)))


#: The module of each verb and its function, where it is not `changing`.
_DOES = {
    **dict.fromkeys(("tree", "status", "whoami", "config"), ("looking", "look")),
    **dict.fromkeys(("logs", "events"), ("following", "follow")),
    **dict.fromkeys(("up", "reload"), ("bringing", "bring")),
    **dict.fromkeys(("init", "save", "verify"), ("files", "do")),
    "usage": ("spent", "answer"),
    "metrics": ("exposed", "answer"),
    "about": ("telling", "tell"),
    "doctor": ("doctor", "examine"),
    "install-unit": ("installing", "install"),
    "demo": ("demo", "show"),
    "completion": ("completion", "complete"),
}


def _do(errand: Errand) -> int:
    """Each verb is imported where it is done: a cold `tree` pays for nothing else."""
    from importlib import import_module

    module, function = _DOES.get(errand.asked.verb.name, ("changing", "change"))
    does: Callable[[Errand], int] = getattr(import_module(f"supervisor.ctl.{module}"), function)
    return does(errand)


def _no_clash() -> None:
    """Two packages cannot share one directory: what runs then is a mixture that neither of them meant."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    found = [name for name in _THEIRS if os.path.exists(os.path.join(package, name))]
    if found:
        from supervisor.ctl.outcome import BAD_CONFIG, Failure

        raise Failure(
            BAD_CONFIG,
            f"PyPI's package `supervisor` is installed over this one: {os.path.join(package, found[0])} is not ours",
            "both are called `supervisor` and bring a `supervisorctl`",
            "give this one an environment of its own: pipx install fleet-supervisor",
        )


def _report(failure: Failure, *, as_json: bool) -> int:
    """Words to stderr, and with `--json` the shape to stdout. A stream that takes nothing is no second failure."""
    from supervisor.ctl import plain

    utf8 = (sys.stderr.encoding or "").lower().replace("-", "") == "utf8"
    lines = [f"supervisorctl: {failure.message}", *(f"  {line}" for line in failure.remedy)]
    try:
        if as_json:
            import json

            print(json.dumps(failure.shape), flush=True)
        for line in lines:
            print(plain.clean(line, ascii_only=not utf8, lines=True), file=sys.stderr)
    except OSError:
        for stream in (sys.stdout, sys.stderr):
            _silence(stream)
    return failure.code
