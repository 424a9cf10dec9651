"""Limits: when an agent whose provider takes no more is tried again, and who shares its fate. The only rules about
logins; what crosses projects is told as facts by `runtime/breakers`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from supervisor.core.decide import stand
from supervisor.core.decide.moment import Moment
from supervisor.core.facts import Fact, Limit, Limited, Mended, Parked, Resumed, Tripped, Unparked, Unstarted
from supervisor.core.parking import held, place
from supervisor.core.refusals import refuse
from supervisor.core.state import Node, Project
from supervisor.core.units import show_duration
from supervisor.core.words import called

#: Where no time is named: the first wait (seconds), which doubles each time in a row, and the longest.
WAITS: dict[Limit, tuple[float, float]] = {
    "rate": (15.0, 900.0),
    "overload": (30.0, 900.0),
    "quota": (3600.0, 3600.0),
    "auth": (21600.0, 21600.0),
}
#: What stops a whole login. A rate or an overload is over soon, and each agent meets it for itself.
TRIPS = ("quota", "auth")
#: A time that is named is waited for at most this long (seconds): weekly limits end within seven days.
FURTHEST = 8 * 86400.0
#: However soon a provider says to come back, in a row it is not more often than this: a second, doubled up to a minute.
LEAST, MOST = 1.0, 60.0
#: The first one that comes back to a stopped login has this long (seconds) before the next one is tried.
PROBE = 30.0
#: When a login is mended, those that wait for it come back one by one, so many seconds apart.
APART = 0.5
#: A login that is stopped already is stopped anew only for so much longer (seconds).
GRAIN = 60.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = 253_402_300_799  # of the year 9999: a clock may show anything


def after_limit(project: Project, fact: Limited, moment: Moment) -> list[Fact]:
    """The agent is parked; the first quota or failed login stops the login for all who have it."""
    node, now = project.agents[fact.agent], moment.stamp.at
    if not node.live:
        return []
    end, named = _end(node, fact, now)
    text, facts = _one_line(fact.text), list[Fact]()
    if node.park is None or (named, end) > (node.park.named, node.until or 0.0):
        facts += _park(project, node, Parked(node.id, end, fact.sort, text, named), moment)
    trip = project.tripped.get(node.credential)
    if fact.sort in TRIPS and node.credential and (trip is None or trip.until <= now or end > trip.until + GRAIN):
        facts.append(Tripped(node.credential, end, fact.sort, text))
    return facts


def _end(node: Node, fact: Limited, now: float) -> tuple[float, bool]:
    """When it is tried again, and whether the provider said so. There always is an end."""
    before = node.parks - (node.park is not None)  # in a row
    if fact.until is not None and fact.until - now <= FURTHEST and fact.until > now - FURTHEST:
        return round(max(fact.until, now + min(LEAST * 2.0 ** min(before, 16), MOST)), 3), True
    first, longest = WAITS[fact.sort]
    return round(now + min(first * 2.0 ** min(before, 16), longest), 3), False


def _park(project: Project, node: Node, fact: Parked, moment: Moment) -> list[Fact]:
    """Its parent is told once, until a model has answered again."""
    parent = project.above(node)
    if parent is None or node.park is not None or node.parks:
        return [fact]
    whose = "the login that it shares" if fact.shared else "its provider"
    wait = show_duration(round(max(1.0, fact.until - moment.stamp.at)))
    text = (
        f"{called(node)} is parked for {wait}, until {_utc(fact.until)}: {whose} takes no more for now ({fact.sort}). "
        "What it was given waits and goes on then."
    )
    return [fact, *moment.tell(parent, f"{text} {fact.text}".strip(), wake=False)]


def after_trip(project: Project, fact: Tripped, moment: Moment) -> list[Fact]:
    """Whoever has the login is parked without having been asked; a turn that runs is left to its end."""
    facts: list[Fact] = []
    for node in project.agents.values():
        idle = node.live and (not node.turn or node.park is not None)
        # Who waits for a login is whoever has logged in there by the time that it starts.
        waits = node.park is not None and node.credential in project.tripped
        has = place(node.credential) == place(fact.credential) if waits else node.credential == fact.credential
        if has and idle and (node.until or 0.0) < fact.until:
            facts += share(project, node, moment, fact.credential)
    return facts


def share(project: Project, node: Node, moment: Moment, login: str = "", *, least: float = 0.0) -> list[Fact]:
    """The agent waits for its login, or for the one that it will have, at least so many seconds."""
    trip = project.tripped[login or node.credential]
    end = round(max(trip.until, moment.stamp.at + least), 3)
    return _park(project, node, Parked(node.id, end, trip.sort, trip.text, shared=True), moment)


def settle(project: Project, node: Node, moment: Moment) -> list[Fact]:
    """A turn is over, or a run has begun: who tried a login with success mends it, who has a stopped one is parked."""
    if node.trying and node.parks == 0:
        # Another account may have logged in where one is stopped: nobody there has that one any more.
        return [Mended(login) for login in project.tripped if place(login) == place(node.credential)]
    if held(project, node) and node.live and not node.turn and node.park is None:
        return share(project, node, moment, least=PROBE)
    return []


def waiting(project: Project, credential: str) -> int:
    """How many come back one by one when this login is mended."""
    parked = (node for node in project.agents.values() if node.credential == credential and node.park is not None)
    return sum(node.park is not None and not node.park.named for node in parked)


def after_mending(project: Project, fact: Mended, moment: Moment) -> list[Fact]:
    """Those who waited for the login come back, one after the other. One whom its provider told a time keeps it: what
    it may not have, such as a larger model, others of the login need not want."""
    facts: list[Fact] = []
    for node in project.agents.values():
        if node.credential == fact.credential and node.park is not None and not node.park.named:
            end = round(moment.stamp.at + fact.after + APART * (len(facts) + 1), 3)
            if end < (node.until or 0.0):
                facts.append(Parked(node.id, end, node.park.sort, node.park.text, shared=True))
    return facts


def after_wait(project: Project, node: Node, moment: Moment) -> list[Fact]:
    """Its time is over: one who is the first to come back to a stopped login is tried, the others wait for how that
    goes."""
    if project.closing:
        return []
    trip = project.tripped.get(node.credential)
    if trip is not None:
        first = project.agents.get(trip.probe)
        if first is not None and first is not node and first.trying and first.live:
            return share(project, node, moment, least=PROBE)
    return wake(project, node)


def wake(project: Project, node: Node) -> list[Fact]:
    """It goes on where it was, or by another run."""
    if node.alive:
        return [Unparked(node.id, _where(node))]
    if project.once(node):
        to: Resumed = "waiting" if node.asks or node.awaits else "standing"
        return [Unparked(node.id, to), *([] if node.stands else [stand.again(project, node)])]
    return [stand.again(project, node, resume=node.rerun is not False)]


def _where(node: Node) -> Resumed:
    if node.rerun is not None:
        return "starting"
    if node.asks or node.prompts or node.awaits:
        return "waiting"
    if not node.talk.ready:
        return "starting"
    return "working" if node.turn else "standing"


def not_spawned(project: Project, node: Node, fact: Unstarted, moment: Moment) -> list[Fact]:
    """Its login is stopped: it waits with the others. Nothing has failed."""
    if fact.credential in project.tripped:
        return share(project, node, moment, least=PROBE)
    return [stand.again(project, node)]


def by_a_person(node: Node, by: str, verb: str) -> None:
    """Refuse an agent what would try a login before its time."""
    if node.state == "parked" and by != "operator":
        raise refuse(
            "state",
            f"{node.name} is parked until {_utc(node.until or 0.0)}; only a person can have it tried before",
            field="state",
            asked=verb,
            held="parked",
            ask="operator",
        )


def _utc(end: float) -> str:
    """A time for agents, who may be anywhere."""
    return f"{_EPOCH + timedelta(seconds=min(max(round(end), 0), _LAST)):%Y-%m-%d %H:%M} UTC"


def _one_line(text: str) -> str:
    """What a provider said, for people."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 200 else flat[:199] + "…"
