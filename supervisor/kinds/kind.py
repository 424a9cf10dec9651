"""What a kind is: one agent program, how it is started, read, spoken to, interrupted and stopped. Pure: bytes in,
facts and bytes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from attrs import frozen

from supervisor.core.facts import Fact, Garbled, Input
from supervisor.core.spec import KindSpec, Spec
from supervisor.kinds import fields

T = TypeVar("T")
#: A line longer than this is not decoded (bytes): its conversation is told of it by its first ones.
LINE_LIMIT = 1024 * 1024
#: How much of an over-long line is kept (bytes).
HEAD = 4096


@frozen
class Launch:
    """What the shell is asked to start. `env` is added to the run's environment. `files`, by name and text, are written
    into the seat's home before: what a program takes from a file alone."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()


@frozen
class Reopening:
    """`argv` opens the conversation in a terminal, () where there is no way; `file` is where the program keeps it, with
    `~` and `*` as a shell has them, "" where it keeps none."""

    argv: tuple[str, ...] = ()
    file: str = ""


@frozen
class Account:
    """Where a program keeps whose account it uses: the first of `files` that can be (`$NAME/…` where that variable is
    set, `~/…`), and what in it tells one account from another. That may be a secret: nobody keeps it."""

    files: tuple[str, ...]
    pattern: bytes


@frozen
class Seat:
    """Who a run is, for its program: what `whoami` answers, as plain values, and where its conversation is kept.

    `session` is the conversation's id ("" for a first run of a kind that names its own), `resume` says that it
    exists already, `home` is a private directory of the agent that outlives its runs (absolute path). `instructions` is
    the text of the file that `spec.instructions` names, as it is at this start."""

    agent: str
    run: int
    name: str
    session: str
    resume: bool
    home: str
    spec: Spec
    tools: tuple[str, ...] | None = None
    #: its program does one task and ends
    once: bool = False
    instructions: str = ""


def garbled(seat: Seat, size: int, why: str) -> Garbled:
    """One line of so many bytes that could not be taken."""
    return Garbled(seat.agent, seat.run, 1, size, fields.clip(why, fields.LAST))


def too_long(seat: Seat, size: int) -> Garbled:
    """An over-long line that could have mattered."""
    return garbled(seat, size, f"a line of {size} bytes; the limit is {LINE_LIMIT}")


def typed(
    talk: T, seat: Seat, line: bytes, readers: Mapping[str, Callable[[T, dict[str, object]], list[Fact]]]
) -> list[Fact]:
    """What the reader of a line's `type` makes of it; a line that cannot be read is told, one without a reader is
    nothing."""
    try:
        said = fields.decode(line)
        reader = readers.get(fields.words(said, "type"))
        return reader(talk, said) if reader else []
    except fields.LineError as error:
        return [garbled(seat, len(line), str(error))]


class Reader(Protocol):
    """What a program prints, as facts."""

    def read(self, line: bytes) -> list[Fact]:
        """One line of stdout. Never raises: an unreadable line is a `Garbled` fact. A `Limited` stands before the
        `TurnEnded` of its turn: that ends no task then."""

    def overlong(self, head: bytes, size: int) -> list[Fact]:
        """A line of more than `LINE_LIMIT` bytes, of which only the first are there: nothing where nobody needs it,
        else a `Garbled` fact."""

    def ended(self) -> list[Fact]:
        """stdout is at its end: the facts that only then are known (a torn last line, a call without a report)."""


class Conversation(Reader, Protocol):
    """One run's dialogue with its program, sans-IO. The host feeds complete lines (without the newline) and
    writes whatever `outgoing` returns after every call."""

    @property
    def polite(self) -> bool:
        """Whether the program is known to leave when its stdin ends; one that is not gets its SIGTERM at once."""

    @property
    def finished(self) -> bool:
        """Whether the program needs the end of its stdin, once it has what is queued, to begin: one that does a task
        and ends."""

    def open(self) -> list[Fact]:
        """The process is there: queue what must be said first. Returns what is known by that alone, such as
        `Ready` of a program that takes input as soon as it runs."""

    def hand(self, inputs: tuple[Input, ...], words: str) -> None:
        """Queue texts for the program: starts a turn when idle, joins the running one otherwise. `words` is the
        agent's introduction (who it is, what it holds), "" once it has been said."""

    def interrupt(self) -> None:
        """Queue what cuts the running turn."""

    def answer(self, prompt: str, *, allow: bool | None, text: str = "") -> None:
        """Queue the person's answer to a `Blocked.prompt` of this run; one that is not open any more is passed over.
        `text` is why not, "" where nothing was said. `allow` is None where nobody answered while the program waited
        (`Blocked.lasts`); then the prompt "" and the text are those of a question that a text would have answered."""

    def close(self) -> None:
        """Queue the polite way to stop; the host closes stdin after it."""

    def outgoing(self) -> bytes:
        """Take what is queued for the program's stdin."""


class Kind(Protocol):
    """A module under `kinds/`, as a value."""

    name: str
    #: the program takes input while a turn runs, and its turn can be cut
    interruptible: bool
    #: A complete line without these bytes is plain output, of which only the last one of many need be read; b"" where
    #: every line matters. So a host looks for it in a whole chunk before it takes lines apart.
    mark: bytes
    #: the program does one task and ends (`KindSpec.once`)
    once: bool
    #: what it says itself of each call, so that no table need be asked: `cost`, and `window`, how large its model's is
    tells: frozenset[str]
    #: Names in the person's environment that the program needs of its own, such as keys and places; `*` at an end is
    #: any rest. A grant's `env` that names nothing of it takes it away.
    env: tuple[str, ...]
    #: Those of `env` whose values tell one login from another.
    credential: tuple[str, ...]
    #: where it keeps whose account that is; None where no file tells
    account: Account | None
    #: it has a login for each provider, which a model's name begins with: `provider/model`
    by_provider: bool

    def launch(self, kind: KindSpec, seat: Seat) -> Launch:
        """argv and environment of a run."""

    def converse(self, seat: Seat) -> Conversation:
        """A new dialogue for one run."""

    def recorded(self, seat: Seat) -> Reader:
        """Reads what a program of this kind printed once, in any of its modes, to the same books as a live run."""

    def unenforced(self, seat: Seat) -> tuple[str, ...]:
        """What of its grant the program itself does not hold the agent to, a sentence each."""

    def reopen(self, kind: KindSpec, seat: Seat) -> Reopening:
        """How a person goes on with the conversation by hand."""
