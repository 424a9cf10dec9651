"""Facts: what happened and can no longer be refused. State is nothing but these, applied in order.

Every fact is a frozen value. `agent` is an id (`a17`), `run` the number of one process of that agent (1, 2, …)."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from supervisor.core.grants import Grant
from supervisor.core.ledger import Report
from supervisor.core.spec import Fleet, Spec

Outcome = Literal["ok", "error", "aborted"]
#: Why a provider takes no more for now.
Limit = Literal["rate", "quota", "auth", "overload"]
Resumed = Literal["standing", "starting", "working", "waiting"]
Sort = Literal["brief", "task", "digest"]
Away = Literal["stopped", "gone"]
#: What of the tree can be full.
Cap = Literal["children", "descendants", "agents"]
Cause = Literal[
    "asked", "disband", "down", "shutdown", "parent", "tasks", "wall", "exit", "crash", "unstarted", "reload"
]


@frozen
class Input:
    """One text for an agent: its brief, a task (`instruct`), or a digest from `fleet`."""

    id: str
    sort: Sort
    text: str
    by: str
    #: starts a turn of an idle agent; otherwise it waits for the next one
    wake: bool = True
    #: it was handed before, to a run that ended before it was seen to begin with it
    again: bool = False


@frozen
class Killed:
    """A process that had to be ended after its run's leader: `how` is the last thing done to it
    (`TERM`, `KILL`), `escaped` says that it had left containment."""

    pid: int
    argv0: str
    how: str
    escaped: bool = False


# --- the project


@frozen
class Accepted:
    """A person's `up` or `reload` for exactly this content. `sha256` is of the file's bytes; `path` the PATH
    that agents are started with."""

    file: str
    sha256: str
    path: str
    fleet: Fleet


@frozen
class Opened:
    """A daemon took the project up: `instance` names it, `tier` is how it contains."""

    instance: str
    tier: str


@frozen
class Dawned:
    """What is spent from now on is spent on this local day (`2026-11-30`): said before the first usage of a day."""

    day: str


@frozen
class Closing:
    """The daemon leaves in order; what is wanted stays wanted."""


@frozen
class Downed:
    """The project is no longer wanted."""


@frozen
class Repaired:
    """A torn tail of the journal was cut."""

    bytes: int


@frozen
class Refused:
    """A request was refused and changed nothing. `times` counts it and those of its caller before it that, being many,
    were not recorded one by one."""

    verb: str
    code: str
    message: str = ""
    field: str = ""
    asked: int | float | str | None = None
    held: int | float | str | None = None
    used: int | float | str | None = None
    reserved: int | float | str | None = None
    ask: str = ""
    times: int = 1
    holder: str = ""


@frozen
class LinedUp:
    """A fork waits in line, because there is no room: `field` of `holder` is full ("": of the project). `by` asked for
    it, an agent in its run `run`; `parent` is whom it would stand under ("": a main), `seats` how many `descendants` it
    would take. With a `place` that is known, it waits for something else from now on."""

    place: str
    by: str
    run: int
    parent: str
    field: Cap
    holder: str
    seats: int


@frozen
class OutOfLine:
    """A fork waits no longer: it was `born`, or `why` not: its `asker` is gone, its `parent` leaves, the project is
    `down`, or the code of its refusal."""

    place: str
    why: str


# --- an agent


@frozen
class Born:
    """An agent is. `parent` None is a main; `grant` is what was carved for it; `replaces` names the id it follows."""

    agent: str
    name: str
    parent: str | None
    spec: Spec
    grant: Grant = Grant()
    declared: bool = False
    by: str = "operator"
    replaces: str = ""


@frozen
class Renamed:
    agent: str
    name: str
    was: str


@frozen
class Respecified:
    """A reload changed how the agent is kept, not its run. `entry` is the name it is declared under from now on
    ("": as before)."""

    agent: str
    spec: Spec
    entry: str = ""


@frozen
class Granted:
    """The agent now holds `grant` (the whole of it, not a difference)."""

    agent: str
    grant: Grant


@frozen
class Warned:
    """A budget crossed 80 or 100 percent for the first time since it was last granted."""

    agent: str
    field: str
    percent: int


@frozen
class Starting:
    """A run is to be spawned; `resume` with the conversation of the run before."""

    agent: str
    run: int
    resume: bool = False


@frozen
class Stood:
    """The agent, whose program does one task and ends, stands by without a process: the next text that wakes starts
    one."""

    agent: str


@frozen
class Started:
    """The process is there. `start` is its start time in clock ticks since boot (/proc/PID/stat field 22). `credential`
    tells logins apart without saying anything of them ("" where it is not known). `model` and `tools` are what it was
    told to use, "" and None where that is its program's own choice; `model_from`, `tools_from` whose word."""

    agent: str
    run: int
    pid: int
    start: int
    credential: str = ""
    model: str = ""
    model_from: str = ""
    tools: tuple[str, ...] | None = None
    tools_from: str = ""


@frozen
class Unstarted:
    """The process could not be spawned, or is not to be for now: `credential` is then the login that is stopped."""

    agent: str
    run: int
    reason: str
    credential: str = ""


@frozen
class Ready:
    """The program answered and takes input. `session` is what its conversation is resumed by; `fresh` says that
    nothing was said in it yet; `tells`, that it tells which texts it has begun with, so that those it has not are
    known."""

    agent: str
    run: int
    session: str = ""
    model: str = ""
    fresh: bool = False
    tells: bool = False


@frozen
class Queued:
    """A text waits for the agent."""

    agent: str
    input: Input


@frozen
class Handed:
    """Texts go to the program in this order. `turn` says that a turn starts with them, `introduce` that the
    conversation is new and the agent is told first who it is."""

    agent: str
    run: int
    inputs: tuple[str, ...]
    turn: bool
    introduce: bool = False


@frozen
class Read:
    """The program has begun with these texts."""

    agent: str
    run: int
    inputs: tuple[str, ...]


@frozen
class Returned:
    """Texts that were handed to a run which ended before it had begun with them: they wait again, first in line."""

    agent: str
    inputs: tuple[str, ...]


@frozen
class TurnStarted:
    """The program says that a turn runs."""

    agent: str
    run: int


@frozen
class TurnEnded:
    """A turn is over, and nothing of it is left queued in the program. `text` is the agent's final words."""

    agent: str
    run: int
    outcome: Outcome = "ok"
    text: str = ""
    error: str = ""


@frozen
class Spent:
    """Usage, in the order it was reported. `incomplete` counts the model calls that began and of which no whole report
    came: what is known of them is booked, and is less than the bill."""

    agent: str
    run: int
    reports: tuple[Report, ...]
    incomplete: int = 0


@frozen
class Outside:
    """The agent's program says that it uses what the agent does not hold: `used`, of the right `field`. Told once."""

    agent: str
    run: int
    field: str
    used: str


@frozen
class Spoke:
    """The agent's last line for people (at most 200 characters)."""

    agent: str
    run: int
    last: str


@frozen
class Said:
    """The agent said that its task is done."""

    agent: str
    run: int
    status: str = "done"
    verdict: str = ""
    summary: str = ""
    waiting_on: str = ""


@frozen
class Blocked:
    """The agent waits on a person or another agent. `prompt` names what `approve` and `deny` answer ("" where a text
    answers)."""

    agent: str
    run: int
    on: str
    question: str = ""
    prompt: str = ""
    #: how long the program waits (seconds) before it goes on without an answer; 0 is for ever
    lasts: float = 0.0


@frozen
class Awaiting:
    """The agent's turn ended well and its task goes on: these children of it have tasks of their own under way (none:
    what they ended with is yet to be told). What they have to tell starts its next turn."""

    agent: str
    children: tuple[str, ...]


@frozen
class Answered:
    """A person's answer to a `Blocked.prompt` goes to the program. `text` says why not, or what instead."""

    agent: str
    run: int
    prompt: str
    allow: bool
    text: str = ""


@frozen
class Withdrawn:
    """Nobody needs to answer this prompt any more, or with "" the question that a text would answer: the program takes
    it back, or its turn is over."""

    agent: str
    run: int
    prompt: str


@frozen
class Limited:
    """The agent's provider takes no more for now, as its program says: `until` in Unix seconds, None where it is not
    named; `text` is the program's own."""

    agent: str
    run: int
    sort: Limit
    until: float | None = None
    text: str = ""


@frozen
class Parked:
    """The agent takes no turn until then (Unix seconds), its run may live on. `named` says that the provider named that
    time; `shared`, that not this agent met the limit but one with the same login."""

    agent: str
    until: float
    sort: Limit
    text: str = ""
    named: bool = False
    shared: bool = False


@frozen
class Unparked:
    """It is tried again, its run goes on where it was: the time is over, or a person said so."""

    agent: str
    to: Resumed = "standing"


@frozen
class Tripped:
    """A login takes no more until then (Unix seconds): nobody who has it starts a run or a turn. `elsewhere` says that
    another project met it."""

    credential: str
    until: float
    sort: Limit
    text: str = ""
    elsewhere: bool = False


@frozen
class Mended:
    """The login takes more again, or nothing is known against it any more. Those who wait for it come back so many
    seconds `after` that: others do before."""

    credential: str
    elsewhere: bool = False
    after: float = 0.0


@frozen
class Garbled:
    """Output that no one could read: `lines` of them, `bytes` in all, `why` of the last."""

    agent: str
    run: int
    lines: int
    bytes: int
    why: str


@frozen
class TaskEnded:
    """A task is over: by `done`, else by the turn that left nothing queued, else by the end of its run. The parent is
    told; `wake` says whether it is woken."""

    agent: str
    status: str
    summary: str = ""
    wake: bool = True


@frozen
class Leaving:
    """The agent leaves; its branch goes before it."""

    agent: str
    to: Away
    cause: Cause
    by: str = ""


@frozen
class Silent:
    """A turn runs in which for so many seconds nothing was printed and nothing worked, which is longer than the agent's
    `quiet_kill`: the run is ended, and has failed."""

    agent: str
    run: int
    seconds: float


@frozen
class Rerun:
    """Its run is to end and another to follow; the agent does not leave, its children stay."""

    agent: str
    run: int
    resume: bool = True


@frozen
class Interrupted:
    """The running turn is to be cut at the next model call: `why`."""

    agent: str
    run: int
    why: str


@frozen
class Exited:
    """The run is empty. Exactly one of `code` and `signal` is set where the leader's status is known;
    `lasted` is in seconds on the monotonic clock, `stood` how long the agent stood by without a process before;
    `killed` names what had to be ended after the leader."""

    agent: str
    run: int
    code: int | None = None
    signal: int | None = None
    lasted: float = 0.0
    killed: tuple[Killed, ...] = ()
    unkillable: tuple[int, ...] = ()
    #: so many processes of the run the kernel ended because its memory was used up
    oom: int = 0
    stood: float = 0.0


@frozen
class Lost:
    """The daemon died with this run alive; nothing of it lives now."""

    agent: str
    run: int


@frozen
class BackedOff:
    """The next run waits `delay` seconds; `crashes` were counted within the window. `resumed` is how many runs in a row
    resumed the same conversation and failed."""

    agent: str
    delay: float
    crashes: int
    resumed: int = 0


@frozen
class Abandoned:
    """The agent's conversation is not resumed any more: `why`. Its next run begins a fresh one, and is told of the
    old."""

    agent: str
    session: str
    why: str


@frozen
class Due:
    """The wait of a backoff or of a park is over; `run` is the agent's last."""

    agent: str
    run: int


@frozen
class Expired:
    """The agent's wall time is over."""

    agent: str


@frozen
class Left:
    """The agent has left: nothing of it or below it is alive."""

    agent: str
    to: Away


@frozen
class Forgotten:
    """A gone agent leaves the state; its ledger stays in its parent's."""

    agent: str


Fact = (
    Accepted | Opened | Dawned | Closing | Downed | Repaired | Refused | LinedUp | OutOfLine | Born | Renamed
    | Respecified | Granted | Warned | Starting | Stood | Started | Unstarted | Ready | Queued | Handed | Read
    | Returned | TurnStarted | TurnEnded | Spent | Outside | Spoke | Said | Blocked | Awaiting | Answered | Withdrawn
    | Limited | Parked | Unparked | Tripped | Mended | Garbled | TaskEnded | Interrupted | Silent | Leaving | Rerun
    | Exited | Lost | BackedOff | Abandoned | Due | Expired | Left | Forgotten
)  # fmt: skip
