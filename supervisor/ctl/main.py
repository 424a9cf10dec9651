"""The client's entry: reads the command line, sends the errand, and turns how it ended into words and an exit code."""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from supervisor.ctl.errand import Errand
    from supervisor.ctl.outcome import Failure

#: Modules of PyPI's `supervisor`, which installs a package and commands of the same names.
_THEIRS = ("supervisorctl.py", "options.py", "rpcinterface.py")
_PIPE_CLOSED = 141


def main(argv: Sequence[str] | None = None) -> int:
    """`supervisorctl`."""
    return _main(sys.argv[1:] if argv is None else argv, "")


def disband(argv: Sequence[str] | None = None) -> int:
    """`disband`, which is `supervisorctl disband`."""
    return _main(sys.argv[1:] if argv is None else argv, "disband")


def _main(argv: Sequence[str], verb: str) -> int:
    # What a terminal or a pipe cannot encode is shown by its number, and is no reason to fail.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    from supervisor.ctl.outcome import INTERRUPTED, Failure

    try:
        code = _run(argv, verb)
        sys.stdout.flush()
    except Failure as failure:
        return _report(failure, as_json="--json" in argv)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader had enough. Nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    return code


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


def _do(errand: Errand) -> int:
    """Each verb is imported where it is done: a cold `tree` pays for nothing else."""
    name = errand.asked.verb.name
    if name == "usage":
        from supervisor.ctl import spent

        return spent.answer(errand)
    if name == "metrics":
        from supervisor.ctl import exposed

        return exposed.answer(errand)
    if name in {"tree", "status", "whoami", "config"}:
        from supervisor.ctl import looking

        return looking.look(errand)
    if name == "about":
        from supervisor.ctl import telling

        return telling.tell(errand)
    if name == "doctor":
        from supervisor.ctl import doctor

        return doctor.examine(errand)
    if name in {"logs", "events"}:
        from supervisor.ctl import following

        return following.follow(errand)
    if name in {"up", "reload"}:
        from supervisor.ctl import bringing

        return bringing.bring(errand)
    if name in {"init", "save", "verify"}:
        from supervisor.ctl import files

        return files.do(errand)
    if name == "install-unit":
        from supervisor.ctl import installing

        return installing.install(errand)
    if name == "demo":
        from supervisor.ctl import demo

        return demo.show(errand)
    if name == "completion":
        from supervisor.ctl import completion

        return completion.complete(errand)
    from supervisor.ctl import changing

    return changing.change(errand)


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
    """Words to stderr, and with `--json` the shape to stdout. A closed stream is no second failure."""
    from supervisor.ctl import plain

    utf8 = (sys.stderr.encoding or "").lower().replace("-", "") == "utf8"
    lines = [f"supervisorctl: {failure.message}", *(f"  {line}" for line in failure.remedy)]
    try:
        if as_json:
            import json

            print(json.dumps(failure.shape), flush=True)
        for line in lines:
            print(plain.clean(line, ascii_only=not utf8, lines=True), file=sys.stderr)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return failure.code
