"""Reads a command line against the table of verbs. It builds the parser of one verb, and does nothing."""

from __future__ import annotations

import argparse
import os

from supervisor.core import units
from supervisor.ctl.outcome import MEANING, USAGE, Failure
from supervisor.ctl.own import EXTRA, KNOWN, common, grouped
from supervisor.doors.verbs import TIMEOUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, NoReturn

    from supervisor.doors.verbs import Param, Verb

PROGRAM = "supervisorctl"
_LONGEST = 64
_WIDTH = 100
#: What stands for a value in help, by the parameter's name or by its shape.
_METAVAR = {
    "may_fork": "yes|no",
    "restart": "WHEN",
    "duration": "TIME",
    "money": "USD",
    "count": "N",
    "agent": "AGENT",
}


class Asked:
    """What a person asked for. `params` go onto the wire, `own` stays here."""

    __slots__ = ("json", "own", "params", "project", "verb")

    def __init__(self, verb: Verb, values: dict[str, Any]) -> None:
        self.verb = verb
        self.json: bool = bool(values.pop("json", False))
        self.project: str = values.pop("project", None) or ""
        kept = {param.name for param in EXTRA.get(verb.name, ())}
        given = {name: value for name, value in values.items() if value is not None and value is not False}
        self.own: dict[str, Any] = {name: value for name, value in given.items() if name in kept}
        self.params: dict[str, Any] = {name: value for name, value in given.items() if name not in kept}


class Told(Exception):  # noqa: N818  not an error: the text that was asked for instead of an act
    """`--help` or `--version`: the text, and nothing more to do."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class _Parser(argparse.ArgumentParser):
    """argparse that neither prints nor exits."""

    def error(self, message: str) -> NoReturn:
        raise Failure(USAGE, message, f"see: {self.prog} --help")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:  # noqa: ARG002  the base class has it
        raise Told(message or "")

    def print_help(self, file: object = None) -> NoReturn:  # noqa: ARG002  the base class has it
        raise Told(self.format_help())


def parse(argv: Sequence[str], verb: str = "") -> Asked:
    """What the command line asks for. `verb` is given where the program's own name says it (`disband`)."""
    program = verb or PROGRAM
    leading, rest = ([], list(argv)) if verb else _split(argv)
    if not verb:
        if not rest:
            _without_verb(leading)
        verb, *rest = rest
        program = f"{PROGRAM} {verb}"
    if verb == "help":
        named = next((word for word in rest if word in KNOWN), "")
        raise Told(parser(KNOWN[named], f"{PROGRAM} {named}").format_help() if named else overview())
    known = KNOWN.get(verb)
    if known is None:
        raise Failure(USAGE, f"there is no verb {verb[:_LONGEST]!r}", _nearest(verb, KNOWN), f"see: {PROGRAM} --help")
    built = parser(known, program)
    values, unknown = built.parse_known_args([*leading, *rest])
    if unknown:
        _refuse(unknown, built)
    return Asked(known, vars(values))


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Options before the verb, and from the verb on."""
    at = 0
    while at < len(argv) and argv[at].startswith("-") and argv[at] != "-":
        at += 2 if argv[at] == "--project" else 1
    return list(argv[:at]), list(argv[at:])


def _without_verb(leading: Sequence[str]) -> NoReturn:
    if "--version" in leading or "-V" in leading:
        from importlib.metadata import version

        raise Told(f"{PROGRAM} {version('fleet-supervisor')}\n")
    if not leading or "-h" in leading or "--help" in leading:
        raise Told(overview())
    raise Failure(USAGE, "name a verb", f"see: {PROGRAM} --help")


def _refuse(unknown: Sequence[str], built: argparse.ArgumentParser) -> NoReturn:
    word = unknown[0]
    # argparse shows its options no other way.
    options = [option for action in built._actions for option in action.option_strings]
    kind = "option" if word.startswith("-") else "argument"
    hint = _nearest(word.partition("=")[0], options) if kind == "option" else ""
    raise Failure(USAGE, f"unknown {kind} {word[:_LONGEST]!r}", hint, f"see: {built.prog} --help")


def _nearest(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    found = get_close_matches(word[:_LONGEST].lower(), list(known), 1, 0.6)
    return f"did you mean {found[0]}?" if found else ""


def parser(verb: Verb, program: str) -> argparse.ArgumentParser:
    """The parser of one verb."""
    built = _Parser(
        prog=program,
        description=verb.summary,
        epilog=f"example:\n  {verb.example}",
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    timeout = (TIMEOUT,) if verb.waits else ()
    for param in (*verb.params, *EXTRA.get(verb.name, ()), *timeout, *common(verb)):
        _add(built, param, shown=not param.hidden)
    return built


def _formatter(prog: str) -> argparse.HelpFormatter:
    """With a width given: argparse makes one of these for each option, and would import `shutil` to measure."""
    return argparse.RawDescriptionHelpFormatter(prog, width=_WIDTH, max_help_position=28)


def _add(built: argparse.ArgumentParser, param: Param, *, shown: bool) -> None:
    text = param.help.replace("%", "%%") if shown else argparse.SUPPRESS
    if not shown and param.shape != "flag":
        return
    if param.positional:
        kind = _reader(param.shape)
        built.add_argument(
            param.name,
            nargs=None if param.required else "?",
            type=kind,
            help=text,
            metavar=param.name.upper(),
        )
        return
    names = [param.option] if param.option.startswith("--") else [param.option, "--" + param.name]
    if param.shape == "flag":
        built.add_argument(*names, dest=param.name, action="store_true", help=text)
        return
    metavar = _METAVAR.get(param.name) or _METAVAR.get(param.shape) or param.name.removeprefix("allow_").upper()
    action = "append" if param.shape == "texts" else "store"
    built.add_argument(
        *names,
        dest=param.name,
        action=action,
        type=_reader(param.shape),
        required=param.required,
        help=text,
        metavar=metavar,
    )


def _reader(shape: str) -> Callable[[str], object]:
    readers: dict[str, Callable[[str], object]] = {
        "count": units.count,
        "duration": units.duration,
        "money": units.money,
        "path": _path,
    }
    read = readers.get(shape, str)

    def value(text: str) -> object:
        try:
            text.encode()
            return read(text)
        except UnicodeEncodeError:
            raise argparse.ArgumentTypeError("it is not UTF-8") from None
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return value


def _path(text: str) -> str:
    """Absolute: a daemon stands elsewhere."""
    if not text:
        raise ValueError("a path must not be empty")
    try:
        return os.path.abspath(os.path.expanduser(text))
    except OSError:
        raise ValueError("the working directory is gone: give an absolute path") from None


def overview() -> str:
    """What `--help` prints."""
    lines = [
        f"usage: {PROGRAM} VERB [--json] [--project P]",
        "",
        "Every agent on this machine, under one tree.",
        "",
    ]
    for title, verbs in grouped():
        lines.append(f"{title}:")
        lines += [f"  {verb.name:<12} {verb.summary}" for verb in verbs]
        lines.append("")
    codes = ", ".join(f"{code} {words}" for code, words in MEANING.items())
    lines += [f"{PROGRAM} VERB --help shows a verb's options and an example.", f"exit codes: {codes}", ""]
    return "\n".join(lines)
