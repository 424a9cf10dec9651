"""The closed list of verbs: one plain table that the doors check against and the client is drawn from.

Stdlib only, and little of it: the client reads this at every start, and `dataclasses` alone would cost it as much
as all else together. Its values are never changed once made."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    #: What a parameter is on the wire: `text`, `agent`, `path`: str; `count`: int; `duration`: seconds; `money`:
    #: nano-USD (int); `flag`: bool; `texts`: list of str; `content`: str, which the client reads from a file.
    Shape = Literal["text", "agent", "path", "count", "duration", "money", "flag", "texts", "content"]
else:
    Shape = str


class Param:
    """One parameter. `positional` is how a person writes it; `hidden` ones are filled in by the client."""

    __slots__ = ("flag", "help", "hidden", "name", "positional", "required", "shape")

    def __init__(
        self,
        name: str,
        shape: Shape,
        help: str,  # noqa: A002  the word of the table, of argparse and of the reference
        *,
        positional: bool = False,
        required: bool = False,
        hidden: bool = False,
        flag: str = "",
    ) -> None:
        self.name = name
        self.shape: Shape = shape
        self.help = help
        self.positional = positional
        self.required = required
        self.hidden = hidden
        self.flag = flag

    def __repr__(self) -> str:
        return f"Param({self.name!r}, {self.shape!r})"

    @property
    def option(self) -> str:
        """The option a person writes (`--max-tasks`)."""
        return self.flag or "--" + self.name.replace("_", "-")


class Verb:
    """One method of the wire and one command of the client. `streams`: answers with notifications until the
    caller leaves; `waits`: takes `--timeout` (wire: `timeout`, in seconds); `whole`: is about machine or daemon,
    and offers no `--project`."""

    __slots__ = ("example", "name", "params", "streams", "summary", "waits", "whole")

    def __init__(
        self,
        name: str,
        summary: str,
        example: str,
        params: tuple[Param, ...] = (),
        *,
        streams: bool = False,
        waits: bool = False,
        whole: bool = False,
    ) -> None:
        self.name = name
        self.summary = summary
        self.example = example
        self.params = params
        self.streams = streams
        self.waits = waits
        self.whole = whole

    def __repr__(self) -> str:
        return f"Verb({self.name!r})"


_TARGET = Param("agent", "agent", "id, exact name, or unique part of a name", positional=True, required=True)
_EXACT = Param("agent", "agent", "id or exact name", positional=True, required=True)
_PLAN = Param("plan", "flag", "show who, which processes and what unsettled; end nothing")
#: What every verb that waits takes besides its own parameters.
TIMEOUT = Param("timeout", "duration", "give up waiting after this long")
_GRANT = (
    Param("tokens", "count", "tokens it may spend, cached ones included"),
    Param("turns", "count", "turns it may start"),
    Param("cost", "money", "US dollars it may spend"),
    Param("descendants", "count", "agents that may live below it at once"),
    Param("children", "count", "children it may have at once"),
    Param("depth", "count", "levels below it"),
    Param("wall", "duration", "how long it may live"),
    Param("tool", "texts", "a tool it may use; repeat for more", flag="--tool"),
    Param("allow_model", "texts", "a model it may use, `*` at the end is a pattern; repeat for more"),
    Param("allow_kind", "texts", "a kind it may fork; repeat for more"),
    Param("may_fork", "text", "`yes` or `no`: may it fork"),
)

VERBS: tuple[Verb, ...] = (
    Verb("up", "accept an agents.toml and run it", "supervisorctl up", (
        Param("file", "path", "the agents.toml (default: the nearest upwards, else the personal one)", positional=True),
        Param("content", "content", "", hidden=True),
        Param("path", "text", "", hidden=True),
    ), waits=True),
    Verb("down", "the whole project is no longer wanted: end it", "supervisorctl down --plan", (_PLAN,), waits=True),
    Verb("reload", "accept the changed agents.toml; restart only what changed", "supervisorctl reload --plan", (
        Param("file", "path", "the agents.toml", positional=True),
        Param("content", "content", "", hidden=True),
        Param("path", "text", "", hidden=True),
        Param("plan", "flag", "show what would change; change nothing"),
    ), waits=True),
    Verb("status", "is the daemon well: pid, tier, projects, faults", "supervisorctl status"),
    Verb("tree", "who started whom, what they do and what they spent", "supervisorctl tree --watch", (
        Param("agent", "agent", "only this branch", positional=True),
    )),
    Verb("fork", "start an agent under another, or a main",
         'supervisorctl fork "Write the tests" --kind pi --parent lead --tokens 300k', (
        Param("task", "text", "its first task", positional=True),
        Param("role", "text", "a declared role, or a label beside --kind"),
        Param("kind", "text", "the program it is"),
        Param("name", "text", "its name (default: SubAgent-NN)"),
        Param("description", "text", "what it is for"),
        Param("parent", "agent", "the agent to fork under (default: the caller; a person's is a main)"),
        Param("model", "text", "the model it uses"),
        Param("max_tasks", "count", "tasks after which it is released (1 to 32)"),
        Param("replace", "flag", "at its last task a fresh one takes its name and what remains of its grant"),
        Param("directory", "path", "where it stands (default: the parent's)"),
        Param("restart", "text", "never, on-failure or always"),
        *_GRANT,
        Param("queue", "flag", "where the tree is full, wait in line for room instead of being refused"),
        Param("wait", "flag", "wait until it is ready"),
    ), waits=True),
    Verb("instruct", "give an agent a task", 'supervisorctl instruct lead "Go" --wait', (
        _TARGET,
        Param("text", "text", "the task", positional=True, required=True),
        Param("wait", "flag", "wait for the task's end and print the final text"),
    ), waits=True),
    Verb("approve", "say yes to what an agent's program asks", "supervisorctl approve lead", (
        _EXACT,
        Param("prompt", "text", "which, where it asks more than one thing (`tree --json` has it)", positional=True),
    )),
    Verb("deny", "say no to what an agent's program asks", 'supervisorctl deny lead p1 --text "Not today"', (
        _EXACT,
        Param("prompt", "text", "which, where it asks more than one thing (`tree --json` has it)", positional=True),
        Param("text", "text", "why not, or what instead; the program is told"),
    )),
    Verb("stop", "end its run and its branch; keep its name, conversation and reservation",
         "supervisorctl stop tests --plan", (_EXACT, _PLAN), waits=True),
    Verb("start", "revive a stopped or disbanded agent, and its declared children; try a parked one at once",
         "supervisorctl start tests", (_EXACT,), waits=True),
    Verb("restart", "end its run and start it again with its conversation", "supervisorctl restart tests", (
        _EXACT,
        Param("branch", "flag", "the whole branch"),
        _PLAN,
    ), waits=True),
    Verb("disband", "end a branch for good: names and reservations are released",
         "supervisorctl disband lead --plan", (_EXACT, _PLAN), waits=True),
    Verb("grant", "let an agent hold more, up to what its parent holds",
         "supervisorctl grant tests --tokens 500k", (_EXACT, *_GRANT)),
    Verb("rename", "give an agent another name", "supervisorctl rename SubAgent-01 tests", (
        _EXACT,
        Param("name", "text", "the new name", positional=True, required=True),
    )),
    Verb("about", "one agent: program, model and tools and whose word they are, conversation, files, limits, last exit",
         "supervisorctl about lead", (_TARGET,)),
    Verb("whoami", "who the kernel says you are, who started you, what you hold", "supervisorctl whoami"),
    Verb("usage", "who spent the tokens, costliest first, gone agents included",
         "supervisorctl usage --by model --since 7d", (
        Param("agent", "agent", "only this branch", positional=True),
        Param("by", "text", "agent (the default), branch, model, role or day"),
        Param("since", "text", "today (the default), yesterday, 7d, 2026-11-01 or all"),
    )),
    Verb("metrics", "counts for Prometheus and the like, as OpenMetrics text",
         "supervisorctl metrics --textfile /var/lib/node_exporter/fleet.prom"),
    Verb("logs", "what an agent printed", "supervisorctl logs tests --follow", (
        _TARGET,
        Param("lines", "count", "how many of the last lines (default 40)", flag="-n"),
        Param("stderr", "flag", "its stderr instead"),
        Param("follow", "flag", "go on as it prints"),
    ), streams=True),
    Verb("events", "the facts of the journal, as they are recorded", "supervisorctl events --follow", (
        Param("since", "count", "from this seq on (default: the last 40)"),
        Param("follow", "flag", "go on as they come"),
    ), streams=True),
    Verb("config", "each value in force and where it comes from", "supervisorctl config"),
    Verb("save", "the live tree's agents as the content of a file that `up` accepts", "supervisorctl save fleet.toml", (
        Param("file", "path", "the file to write; an existing one is kept", positional=True, required=True),
    )),
    Verb("shutdown", "stop the daemon, and wait until it has left; what is wanted runs again at its next start",
         "supervisorctl shutdown", (_PLAN,), waits=True, whole=True),
)  # fmt: skip

METHODS: dict[str, Verb] = {verb.name: verb for verb in VERBS}
