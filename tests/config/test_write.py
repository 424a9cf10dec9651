"""What is written back is read as the same fleet again; what is written first can be read at all."""

from __future__ import annotations

import importlib.resources
import tomllib
from pathlib import Path

import pytest
from attrs import asdict, evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.config.agents_toml import PROTOCOLS, dump, parse, shipped, starter
from supervisor.config.kinds import built_in
from supervisor.core import names
from supervisor.core.grants import Grant
from supervisor.core.spec import Declared, Fleet, KindSpec, Resources, Role, Spec
from supervisor.core.state import fold

FILE = "/srv/project/agents.toml"
BUILT_IN = built_in(PROTOCOLS)

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
WORD = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=8)
NAME = WORD.filter(lambda name: not names.fault(name))
SEGMENT = WORD.filter(lambda part: "/" not in part and part not in {".", ".."})
PATH = st.lists(SEGMENT, max_size=3).map(lambda parts: "/" + "/".join(parts))
SECONDS = st.one_of(st.floats(1e-6, 1e15), st.integers(0, 10**6).map(float))
COUNT = st.integers(0, 10**15)
RESOURCES = st.builds(
    Resources,
    memory=st.none() | st.integers(1024, 9 * 10**11).map(lambda size: size * 1024),
    cpu=st.none() | st.integers(1, 9_999_999),
    processes=st.none() | st.integers(1, 10**15),
)
ENV = st.dictionaries(WORD.filter(lambda name: "=" not in name), TEXT, max_size=2)


def texts(of: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(of, max_size=2).map(tuple)


def grants(kinds: list[str]) -> st.SearchStrategy[Grant]:
    none = st.none()
    return st.builds(
        Grant,
        tools=none | texts(WORD),
        models=none | texts(WORD.filter(lambda model: "*" not in model[:-1])),
        kinds=none | texts(st.sampled_from(kinds)),
        paths=none | texts(PATH),
        env=none | texts(WORD.filter(lambda name: "=" not in name)),
        fork=none | st.booleans(),
        talk=none | st.booleans(),
        tokens=none | COUNT,
        turns=none | COUNT,
        cost=none | st.integers(0, 10**24),
        descendants=none | COUNT,
        children=none | COUNT,
        depth=none | COUNT,
        wall=none | SECONDS,
    )


@st.composite
def specs(draw: st.DrawFn, base: Spec, kinds: list[str], *, own: bool) -> Spec:
    """A spec over `base`, as one can come out of a file: no layer takes a variable away."""
    env = dict(base.env) | draw(ENV)
    changed = evolve(
        base,
        kind=draw(st.sampled_from([*kinds, base.kind])),
        model=draw(TEXT),
        directory=draw(PATH | st.just(base.directory)),
        instructions=draw(PATH | st.just("")),
        env=tuple(sorted(env.items())),
        env_file=draw(PATH | st.just("")),
        max_tasks=draw(st.none() | st.integers(1, 32)),
        replace=draw(st.booleans()),
        restart=draw(st.sampled_from(["never", "on-failure", "always"])),
        resume=draw(st.sampled_from(["stand", "continue"])),
        stop_grace=draw(SECONDS),
        quiet_after=draw(SECONDS),
        quiet_kill=draw(SECONDS),
        resources=draw(RESOURCES),
    )
    return evolve(changed, description=draw(TEXT), task=draw(TEXT)) if own else changed


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    declared = draw(
        st.lists(WORD.filter(lambda name: name not in {kind.name for kind in BUILT_IN}), max_size=2, unique=True)
    )
    commands = st.lists(TEXT, max_size=2).map(lambda rest: ("/bin/agent", *rest))
    made = [
        KindSpec(name, "lines", draw(commands), draw(st.sampled_from(["socket", "pipe"])), draw(st.booleans()))
        for name in declared
    ]
    kinds = ["pi", "scripted", *declared]
    defaults = draw(specs(Spec(kind=""), kinds, own=False))
    roles = []
    for name in draw(st.lists(WORD, max_size=2, unique_by=fold)):
        spec = draw(specs(defaults, kinds, own=True))
        roles.append(Role(name, evolve(spec, role=name), draw(grants(kinds))))
    free = draw(st.lists(NAME, max_size=6, unique_by=fold))
    return Fleet(
        draw(SEGMENT.filter(lambda name: ":" not in name and not name.startswith("."))),
        draw(agents(free, defaults, roles, kinds)),
        tuple(roles),
        (*BUILT_IN, *made),
        defaults,
        draw(st.sampled_from(["mains", "instance", "project"])),
        draw(st.integers(8, 64)),
        draw(st.integers(6, 9999)),
        draw(st.integers(0, 9999)),
    )


@st.composite
def agents(
    draw: st.DrawFn, free: list[str], defaults: Spec, roles: list[Role], kinds: list[str]
) -> tuple[Declared, ...]:
    """A tree over the names that are free."""
    made: list[Declared] = []
    while free:
        if draw(st.booleans()):
            break
        name = free.pop()
        role = draw(st.none() | st.sampled_from(roles)) if roles else None
        base = role.spec if role else evolve(defaults, role=draw(st.just("") | st.just("a label of its own")))
        spec = draw(specs(base, kinds, own=True))
        spec = evolve(spec, kind=spec.kind or "pi", directory=spec.directory or "/srv/project")
        grant = draw(grants(kinds))
        if role:
            given = {key: value for key, value in asdict(grant, recurse=False).items() if value is not None}
            grant = evolve(role.grant, **given)
        made.append(Declared(name, spec, grant, draw(agents(free, defaults, roles, kinds))))
    return tuple(made)


@settings(deadline=None)
@given(fleets())
def test_a_fleet_that_is_written_is_read_as_the_same_fleet(fleet: Fleet) -> None:
    text = dump(fleet)
    assert parse(text, FILE).fleet == fleet
    assert parse(text, "/another/place/agents.toml").fleet == fleet


@settings(deadline=None)
@given(fleets())
def test_what_is_written_is_read_alike_over_a_personal_file_that_is_silent(fleet: Fleet) -> None:
    assert dump(parse(dump(fleet), FILE, personal=Path("/nowhere/agents.toml")).fleet) == dump(fleet)


def test_only_what_no_lower_layer_says_is_written() -> None:
    content = """\
[project]
name = "offgrind"
[defaults]
kind = "pi"
max_tasks = 2
[roles.reviewer]
model = "small"
grant = { tokens = "50k" }
[agents.lead]
directory = "/srv"
max_tasks = "unlimited"
grant = { cost = 2.5, wall = "1h30m" }
[agents.lead.agents.rev]
role = "reviewer"
directory = "/srv"
"""
    assert tomllib.loads(dump(parse(content, FILE).fleet)) == {
        "project": {"name": "offgrind"},
        "defaults": {"kind": "pi", "max_tasks": 2},
        "roles": {"reviewer": {"model": "small", "grant": {"tokens": 50_000}}},
        "agents": {
            "lead": {
                "directory": "/srv",
                "max_tasks": "unlimited",
                "grant": {"cost": "2.50 USD", "wall": "1h30m"},
                "agents": {"rev": {"role": "reviewer", "directory": "/srv"}},
            }
        },
    }


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_every_line_end_of_a_text_is_kept(ends: str) -> None:
    task = f"first{ends}second{ends}"
    fleet = Fleet("x", (Declared("a", Spec("pi", task=task, directory="/")),), kinds=BUILT_IN, defaults=Spec(""))
    assert parse(dump(fleet), FILE).fleet == fleet


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"pi": "/usr/bin/pi"},
        {"claude": "/usr/bin/claude"},
        {"pi": "/a\n[agents.x]\n", "codex": "/b\r[x]", "gemini": "g"},
    ],
)
def test_a_starter_can_be_accepted_as_it_is(found: dict[str, str]) -> None:
    text = starter(found)
    fleet = parse(text, FILE).fleet
    assert [agent.spec.kind for agent in fleet.agents] == (["pi"] if "pi" in found else ["scripted"])
    assert all(kind in text for kind in found)


def test_a_starter_takes_no_name_that_the_tour_gives() -> None:
    for found in ({}, {"pi": "/usr/bin/pi"}):
        assert not {"lead", "tests"} & {agent.name for agent in parse(starter(found), FILE).fleet.agents}


def test_the_examples_of_a_starter_are_right_once_their_comment_marks_are_gone() -> None:
    for found in ({}, {"pi": "/usr/bin/pi"}):
        rows = starter(found).replace('"…"', '"some-thing"').splitlines()
        plain = [row[2:] if row.startswith("# ") and (" = " in row or row.startswith("# [")) else row for row in rows]
        assert parse("\n".join(plain), FILE).fleet.name == "some-thing"


def test_the_shipped_fleet_is_the_one_at_the_top_and_is_accepted() -> None:
    packaged = importlib.resources.files("supervisor") / "demo" / "agents.toml"
    top = Path(__file__).parents[2] / "agents.toml"
    assert shipped() == packaged.read_text() == top.read_text()
    fleet = parse(shipped(), FILE).fleet
    assert {agent.spec.kind for agent in fleet.agents} == {"scripted"}
