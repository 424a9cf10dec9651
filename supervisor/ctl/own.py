"""The client's own words: verbs that no daemon answers, and options that never reach the wire."""

from __future__ import annotations

from supervisor.doors.verbs import METHODS, VERBS, Param, Verb

#: Answered by the client alone.
CLIENT: tuple[Verb, ...] = (
    Verb("init", "write an agents.toml to start from, for what is found on PATH", "supervisorctl init", (
        Param("file", "path", "the file to write (default: ./agents.toml); never overwritten", positional=True),
        Param("personal", "flag", "write the personal one, for whoever stands in no project"),
        Param("stdout", "flag", "print it, write nothing"),
    )),
    Verb("demo", "see a scripted fleet at work in throw-away directories", "supervisorctl demo", (
        Param("once", "flag", "draw its tree once, then end it"),
    )),
    Verb("verify", "read journals record by record and say whether they are whole; needs no daemon",
         "supervisorctl verify", (
        Param("path", "path", "a journal or its directory (default: all of this user's)", positional=True),
        Param("replay", "flag", "apply the facts too: they must come to each snapshot made of them"),
    )),
    Verb("install-unit", "keep the daemon by a systemd user unit: write it, enable it",
         "supervisorctl install-unit --now", (
        Param("now", "flag", "start it too; a daemon that runs without it leaves first, and what is wanted comes back"),
        Param("force", "flag", "overwrite a unit that was changed by hand"),
        Param("print", "flag", "print the unit, write nothing"),
    ), waits=True, whole=True),
    Verb("doctor", "look at installation, machine, daemon and agent CLIs, and say what to do; needs no daemon",
         "supervisorctl doctor", whole=True),
    Verb("completion", "print what your shell completes with",
         'supervisorctl completion bash > ~/.local/share/bash-completion/completions/supervisorctl', (
        Param("shell", "text", "bash, zsh or fish", positional=True),
        Param("names", "flag", "", hidden=True),
    )),
)  # fmt: skip

#: Options of the wire's verbs that the client keeps for itself.
EXTRA: dict[str, tuple[Param, ...]] = {
    "tree": (
        Param("watch", "flag", "go on drawing as it changes; q or Ctrl-C ends"),
        Param("all", "flag", "fold nothing: every agent, gone ones too"),
    ),
    "usage": (
        Param("csv", "flag", "a line a row, for a spreadsheet"),
        Param(
            "transcript",
            "texts",
            "book what a program printed once, without a daemon: a file, or - for stdin; "
            "repeat for a conversation in several files",
        ),
        Param("kind", "text", "the program that printed it"),
        Param("after", "texts", "an earlier transcript of the same conversation, which is not counted", flag="--after"),
    ),
    "metrics": (
        Param("textfile", "path", "write this file, whole or not at all, for node-exporter's textfile collector"),
    ),
    "logs": (Param("raw", "flag", "as it was printed, with whatever that does to a terminal"),),
    "instruct": (Param("raw", "flag", "the final text as it is, with whatever that does to a terminal"),),
}

#: Every command takes these.
COMMON: tuple[Param, ...] = (
    Param("json", "flag", "answer with one JSON value"),
    Param("project", "text", "the project: its name, id or file (default: the one you stand in)"),
)


def common(verb: Verb) -> tuple[Param, ...]:
    """What this command takes of it."""
    return COMMON[:1] if verb.whole else COMMON


KNOWN: dict[str, Verb] = {**METHODS, **{verb.name: verb for verb in CLIENT}}

#: How the overview groups them. What is named nowhere stands in the last group.
GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("begin", ("demo", "init", "up", "reload", "down")),
    ("look", ("tree", "status", "usage", "logs", "events", "about", "whoami", "config", "metrics")),
    ("agents", ("fork", "instruct", "stop", "start", "restart", "disband", "grant", "rename")),
    ("daemon and files", ("doctor", "install-unit", "save", "verify", "shutdown", "completion")),
)


def grouped() -> list[tuple[str, list[Verb]]]:
    """Every verb once, in the overview's order."""
    named = {name for _, names in GROUPS for name in names}
    rest = [verb for verb in (*VERBS, *CLIENT) if verb.name not in named]
    groups = [(title, [KNOWN[name] for name in names if name in KNOWN]) for title, names in GROUPS]
    return [(title, verbs + (rest if title == GROUPS[-1][0] else [])) for title, verbs in groups]
