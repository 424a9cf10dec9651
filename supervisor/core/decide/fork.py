"""Births: by fork, by declaration, and of a fresh agent that takes the place of one that used up its tasks."""

from __future__ import annotations

from attrs import evolve

from supervisor.core import models, names
from supervisor.core.authority import Agent, Principal
from supervisor.core.decide import admit, room, stand
from supervisor.core.decide.moment import Moment
from supervisor.core.facts import Born, Fact, OutOfLine, Queued
from supervisor.core.grants import Grant
from supervisor.core.nearest import meant
from supervisor.core.refusals import refuse
from supervisor.core.requests import Fork
from supervisor.core.spec import Declared, Fleet, Role, Spec
from supervisor.core.state import Node, Project, fold

#: No tree is deeper, whatever a file says: nested nurseries fail at about 329.
DEEPEST = 64


def fork(project: Project, by: Principal, request: Fork, moment: Moment) -> list[Fact]:
    """One new agent under the caller, or under the agent the caller names; refused before anything is made. Where only
    room is missing, one that is to wait for it waits in line; when it asks again, all else is looked at again too."""
    fleet = project.fleet
    if fleet is None or not project.wanted:
        raise refuse("down", "the project is not up: `supervisorctl up` accepts an agents.toml and runs it")
    parent = _parent(project, by, request)
    check_level(project, parent)
    if not request.place:  # one that waits was counted when it first asked
        _rate(fleet, moment.stamp.forks)
    spec, grant = _wanted(project, fleet, parent, request)
    if not any(kind.name == spec.kind for kind in fleet.kinds):
        known = sorted(kind.name for kind in fleet.kinds)
        words = f"there is no kind {spec.kind!r}; known are {', '.join(known)}{meant(spec.kind, known)}"
        raise refuse("unknown", words, field="kind", asked=spec.kind)
    admit.new(project, parent, spec, grant)
    name = check_name(project, request.name) if request.name else f"SubAgent-{project.unnamed + 1:02d}"
    _still_in_line(project, request.place)
    seats = room.seats(grant.descendants)
    if (no := room.full(project, parent, seats, request.place)) is not None:
        if not request.queue:
            raise no.refusal
        return room.wait(project, (str(by), by.run if isinstance(by, Agent) else 0), parent, seats, request.place, no)
    born = Born(moment.agent(), name, parent.id if parent else None, spec, grant, by=str(by))
    waited: list[Fact] = [OutOfLine(request.place, "born")] if request.place else []
    return waited + birth(fleet, moment, born)


def asked_for(project: Project, by: Principal, request: Fork) -> Spec:
    """How the agent would be started that a fork asks for, were there room."""
    return _wanted(project, project.fleet or Fleet(""), _parent(project, by, request), request)[0]


def _still_in_line(project: Project, place: str) -> None:
    if place and place not in project.line:
        raise refuse("state", "this fork waits no longer: its place in line was given up", field="line", asked="fork")


def birth(fleet: Fleet, moment: Moment, born: Born) -> list[Fact]:
    """The facts of a new agent: it is, its brief waits, its first run starts or it stands by."""
    facts: list[Fact] = [born]
    if born.spec.task.strip():
        facts.append(Queued(born.agent, moment.input("brief", born.spec.task, born.by)))
    facts.append(stand.first(fleet, born.agent, born.spec.kind))
    return facts


def declare(fleet: Fleet, moment: Moment, declared: Declared, parent: str | None, by: str) -> list[Fact]:
    """A declared agent and all that is declared below it, parents first."""
    agent = moment.agent()
    born = Born(agent, declared.name, parent, declared.spec, declared.grant, declared=True, by=by)
    facts = birth(fleet, moment, born)
    for child in declared.children:
        facts += declare(fleet, moment, child, agent, by)
    return facts


def check_level(project: Project, parent: Node | None) -> None:
    """Refuse a place deeper in the tree than the project's cap."""
    deepest = min(project.fleet.depth, DEEPEST) if project.fleet is not None else DEEPEST
    level = project.level(parent) + 1 if parent is not None else 0
    if level >= deepest:
        raise refuse(
            "depth", f"the tree may be {deepest} levels deep",
            field="depth", asked=level + 1, held=deepest, ask="operator",
        )  # fmt: skip


def _rate(fleet: Fleet, recent: int) -> None:
    if recent >= fleet.forks_per_minute:
        raise refuse(
            "rate", f"{recent} forks within the last minute; {fleet.forks_per_minute} are allowed",
            field="forks_per_minute", asked=1, held=fleet.forks_per_minute, used=recent, ask="operator",
        )  # fmt: skip


def check_name(project: Project, name: str) -> str:
    """The name, trimmed; refuses what is none and what is taken."""
    name = name.strip()
    fault = names.fault(name)
    if fault:
        raise refuse("name", fault, field="name", asked=name[: names.LONGEST])
    taken = project.names.get(fold(name))
    if taken is not None:
        state = project.agents[taken].state
        still = ", which is still stopping" if state == "stopping" else ""
        raise refuse("name", f"{name} is the name of {taken}{still}", field="name", asked=name, held=taken)
    return name


def _parent(project: Project, by: Principal, request: Fork) -> Node | None:
    caller = project.agents[by.agent] if isinstance(by, Agent) else None
    if not request.parent:
        parent = caller
    else:
        parent = names.find(project, by, request.parent, part=True)
        if caller is not None and not project.within(parent, caller.id):
            raise refuse(
                "authority", f"{parent.name} is not in your branch",
                field="parent", asked=parent.name, ask=project.giver(parent),
            )  # fmt: skip
    if parent is not None and not parent.live:
        raise refuse(
            "state",
            f"{parent.name} is {parent.state} and takes no children",
            field="parent",
            asked=parent.id,
            held=parent.state,
        )
    return parent


def _wanted(project: Project, fleet: Fleet, parent: Node | None, request: Fork) -> tuple[Spec, Grant]:
    role = _role(fleet, request)
    kind = request.kind or (role.spec.kind if role else "") or (parent.spec.kind if parent and not request.role else "")
    kind = kind or fleet.defaults.kind
    if not kind:
        raise refuse("value", "name a declared --role, or a --kind", field="kind")
    base = role.spec if role else evolve(fleet.defaults, task="", description="", role="")
    model, model_from = _model(project, parent, kind, base, request)
    stands = parent.spec.directory if parent is not None else project.file.rpartition("/")[0]
    spec = evolve(
        base,
        kind=kind,
        role=request.role.strip() or base.role,
        task=request.task or base.task,
        description=request.description or base.description,
        directory=request.directory or base.directory or stands,
        model=model,
        model_from=model_from,
        max_tasks=request.max_tasks if request.max_tasks is not None else base.max_tasks,
        replace=request.replace if request.replace is not None else base.replace,
        restart=request.restart if request.restart is not None else base.restart,
    )
    return spec, admit.merged(role.grant if role else Grant(), request.grant)


def _model(project: Project, parent: Node | None, kind: str, base: Spec, request: Fork) -> tuple[str, str]:
    """What the fork names, else its role, else the defaults, else what its parent uses; and whose word that is."""
    if request.model:
        return request.model, models.FORK
    if base.model_from or base.model:
        return base.model, base.model_from
    model = models.inherited(project, parent, kind)
    return (model, f"parent {parent.name} ({parent.id})") if model and parent is not None else ("", "")


def _role(fleet: Fleet, request: Fork) -> Role | None:
    wanted = fold(request.role)
    if not wanted:
        return None
    found = next((role for role in fleet.roles if fold(role.name) == wanted), None)
    if found is None and not request.kind:
        known = [role.name for role in fleet.roles]
        raise refuse(
            "unknown",
            f"there is no role {request.role!r} (declared: {', '.join(known) or 'none'}); as a label it needs a --kind"
            + meant(request.role, known),
            field="role",
            asked=request.role,
        )
    return found


def used_up(node: Node) -> str:
    """The first budget or bound of which nothing remains for one that would follow; "" where something does of each."""
    for field, account in node.accounts.items():
        if field != "descendants" and account.held <= account.spent:
            return field
    return "wall" if node.grant.wall is not None and node.grant.wall <= node.lasted else ""


def follower(fleet: Fleet, node: Node, moment: Moment) -> tuple[str, list[Fact]]:
    """`replace`: a fresh agent takes the name, the inbox and what remains of the reservation, under the new id given
    back. What it draws from above is not looked at: with nothing left there it waits for more, as any other."""
    remains = {
        field: account.held - account.spent for field, account in node.accounts.items() if field != "descendants"
    }
    grant = admit.merged(node.grant, Grant(**remains))  # type: ignore[arg-type]  # the keys are budgets, all int
    if grant.wall is not None:
        grant = evolve(grant, wall=grant.wall - node.lasted)
    brief = f"You follow {node.name} ({node.id}), which was released after {node.tasks} tasks."
    if node.spec.task:
        brief += f"\nIts brief was: {node.spec.task}"
    if node.summary or node.text:
        brief += f"\nIts last words were: {node.summary or node.text}"
    agent = moment.agent()
    waiting = [moment.input("brief", brief, "fleet", wake=False), *node.inbox]
    born = Born(agent, node.name, node.parent, node.spec, grant, node.declared, node.by, node.id)
    beginning = stand.first(fleet, agent, node.spec.kind)
    return agent, [born, *(Queued(agent, item) for item in waiting), beginning]
