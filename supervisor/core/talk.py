"""What is known of the dialogue with an agent's program: which texts it has begun with, and whether its conversation
can be gone on with. Changed by facts alone, through `apply`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from attrs import evolve, frozen

if TYPE_CHECKING:
    from supervisor.core import facts
    from supervisor.core.state import Node, Project

Turn = Literal["", "runs", "over"]


@frozen
class Talk:
    """The first five are of one run: it resumes a conversation, is ready, tells what it begins with, a turn of it ended
    well; the last handing introduced the agent. So are `once` (its program does one task and ends), `turn` (what became
    of the last turn it was handed), `answering` (it was started with the answer to what the one before had asked) and
    `spoke` (it printed a line for people), and `silent` (it is ended for having been so for so many seconds).
    `unread`: the program has begun with nothing of the last turn that was handed. `owed`: a turn was charged that never
    began. `resumed` counts the runs in a row that resumed this conversation and failed; `abandoned` says why the one
    before it was given up."""

    resuming: bool = False
    ready: bool = False
    tells: bool = False
    fruitful: bool = False
    introducing: bool = False
    once: bool = False
    turn: Turn = ""
    answering: bool = False
    spoke: bool = False
    silent: float = 0.0
    unread: bool = False
    owed: bool = False
    resumed: int = 0
    abandoned: str = ""


def unread(node: Node) -> tuple[str, ...]:
    """The texts that the program is known not to have begun with; what one that never tells has read is not known."""
    return tuple(item.id for item in node.handed) if node.talk.tells else ()


def full(node: Node) -> bool:
    """Whether the run has been given all that it takes: a program that does one task and ends takes one turn."""
    return node.talk.once and node.talk.turn != ""


def plain(node: Node) -> bool:
    """Whether the program has told nothing of the turn it was given: then its own end is the turn's."""
    return node.talk.turn == "runs" and node.talk.unread and not node.talk.tells


def served(node: Node, fact: facts.Exited) -> bool:
    """Whether a run of a program that does one task and ends has ended as such runs do: its turn is over, or it tells
    nothing of turns and has ended by itself, well or not."""
    if node.talk.silent:
        return False
    return node.talk.turn == "over" or (plain(node) and fact.code is not None)


def proven(node: Node, fact: facts.Exited) -> bool:
    """Whether the run of a program that does one task and ends has shown that it can."""
    return node.talk.once and served(node, fact) and (node.talk.fruitful or fact.code == 0)


def starting(project: Project, node: Node, fact: facts.Starting) -> None:
    """A run begins a dialogue anew; what it was handed before is settled."""
    node.handed.clear()
    old = node.talk
    resumed = old.resumed if fact.resume else 0
    answering = node.stands and node.asks
    node.talk = Talk(
        resuming=fact.resume, once=project.once(node), answering=answering,
        owed=old.owed, resumed=resumed, abandoned=old.abandoned,
    )  # fmt: skip


def ready(node: Node, fact: facts.Ready) -> None:
    """The program takes input."""
    node.talk = evolve(node.talk, ready=True, tells=fact.tells)


def handed(node: Node, fact: facts.Handed) -> bool:
    """Texts are on their way; whether they cost a turn."""
    paid = node.talk.owed
    turn: Turn = "runs" if fact.turn else node.talk.turn
    node.talk = evolve(node.talk, introducing=fact.introduce, turn=turn, unread=fact.turn, owed=paid and not fact.turn)
    return fact.turn and not paid


def read(_project: Project, node: Node, fact: facts.Read) -> None:
    """The program has begun with some of them."""
    node.handed = [item for item in node.handed if item.id not in fact.inputs]
    begun(node)


def last(node: Node) -> str:
    """The last line for people of this run."""
    return node.last if node.talk.spoke else ""


def spoke(node: Node) -> None:
    """The run printed a line for people."""
    if not node.talk.spoke:
        node.talk = evolve(node.talk, spoke=True)


def started(node: Node) -> None:
    """The program began a turn by itself."""
    node.talk = evolve(node.talk, turn="runs")


def begun(node: Node) -> None:
    """The turn is no longer one that nobody has seen begin."""
    if node.talk.unread or node.talk.introducing:
        node.talk = evolve(node.talk, unread=False, introducing=False)


def ended(node: Node, fact: facts.TurnEnded) -> None:
    """A turn is over; one that ended well says that this conversation can be gone on with."""
    begun(node)
    node.talk = evolve(node.talk, turn="over")
    if fact.outcome == "ok" and not (node.talk.fruitful and node.talk.resumed == 0):
        node.talk = evolve(node.talk, fruitful=True, resumed=0)


def returned(_project: Project, node: Node, fact: facts.Returned) -> None:
    """What was not begun with waits again; a turn of which nothing was is not charged a second time."""
    back = [item for item in node.handed if item.id in fact.inputs]
    node.handed = [item for item in node.handed if item.id not in fact.inputs]
    node.inbox = [evolve(item, again=True) for item in back] + node.inbox
    if node.task is not None and node.task.id in fact.inputs:
        node.task = None
    if node.talk.introducing:
        node.introduced = False
    node.talk = evolve(node.talk, introducing=False, unread=False, owed=node.talk.owed or node.talk.unread)


def abandoned(_project: Project, node: Node, fact: facts.Abandoned) -> None:
    """The next run begins a fresh conversation."""
    node.session, node.introduced = "", False
    node.talk = evolve(node.talk, resumed=0, abandoned=fact.why)
    node.last = f"begins a fresh conversation: {fact.why}"[:200]
