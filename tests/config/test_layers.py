"""Which value wins, where it comes from, and that no project widens what the personal file allows."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from supervisor.config.agents_toml import PROTOCOLS, ConfigError, Loaded, dump, explain, load, parse, personal_file
from supervisor.core.grants import Grant
from supervisor.core.spec import Declared, Fleet, KindSpec, Resources
from supervisor.kinds.table import KINDS

PERSONAL = """\
[project]
name = "mine"
agent_talk = "instance"
[limits]
depth = 8
[defaults]
kind = "scripted"
model = "small"
stop_grace = "3s"
env = { A = "1", B = "1" }
[defaults.grant]
tokens = "1M"
models = ["claude-*"]
paths = ["/srv"]
fork = false
[roles.reviewer]
kind = "pi"
description = "reads"
grant = { tools = ["read", "grep"], tokens = "50k" }
[kinds.mine]
command = ["bin/mine", "--jsonl"]
protocol = "lines"
[agents.at-home]
"""


@pytest.fixture
def personal(tmp_path: Path) -> Path:
    file = tmp_path / "home" / "agents.toml"
    file.parent.mkdir()
    file.write_text(PERSONAL)
    return file


def parsed(content: str, tmp_path: Path, personal: Path | None = None) -> Loaded:
    return parse(content, str(tmp_path / "project" / "agents.toml"), personal=personal)


def agent(fleet: Fleet, name: str) -> Declared:
    return next(one for one in fleet.agents if one.name == name)


def origin(loaded: Loaded, key: str) -> tuple[str, str]:
    return next((row["value"], row["origin"]) for row in explain(loaded) if row["key"] == key)


def test_the_later_layer_wins_and_each_value_knows_its_origin(tmp_path: Path, personal: Path) -> None:
    content = """\
[defaults]
model = "medium"
env = { B = "2", C = "2" }
[roles.reviewer]
description = "reads diffs"
[agents.lead]
env = { C = "3" }
[agents.lead.agents.rev]
role = "Reviewer"
max_tasks = 4
"""
    loaded = parsed(content, tmp_path, personal)
    file = tmp_path / "project" / "agents.toml"
    fleet = loaded.fleet
    lead = agent(fleet, "lead")
    rev = lead.children[0]
    assert (lead.spec.kind, lead.spec.model, lead.spec.stop_grace) == ("scripted", "medium", 3.0)
    assert lead.spec.env == (("A", "1"), ("B", "2"), ("C", "3"))
    assert (rev.spec.kind, rev.spec.description, rev.spec.role, rev.spec.max_tasks) == (
        "pi",
        "reads diffs",
        "Reviewer",
        4,
    )
    assert fleet.defaults.env == (("A", "1"), ("B", "2"), ("C", "2"))
    assert [role.name for role in fleet.roles] == ["reviewer"]
    assert origin(loaded, "agents.lead.kind") == ('"scripted"', f"personal {personal}:7")
    assert origin(loaded, "agents.lead.model") == ('"medium"', f"project {file}:2")
    assert origin(loaded, "agents.lead.restart") == ('"never"', "built-in")
    assert origin(loaded, "agents.lead.env.B") == ('"2"', f"project {file}:3")
    assert origin(loaded, "agents.lead.env.C") == ('"3"', f"project {file}:7")
    assert origin(loaded, "agents.lead.agents.rev.description") == ('"reads diffs"', f"role reviewer {file}:5")
    assert origin(loaded, "agents.lead.agents.rev.grant.tokens") == ("50k", f"role reviewer {personal}:19")
    assert origin(loaded, "agents.lead.agents.rev.max_tasks") == ("4", f"project {file}:10")
    assert origin(loaded, "project.agent_talk") == ('"instance"', f"personal {personal}:3")
    assert origin(loaded, "limits.depth") == ("8", f"personal {personal}:5")
    assert origin(loaded, "limits.agents") == ("3000", "built-in")
    assert origin(loaded, "kinds.mine.command") == (
        f'["{personal.parent}/bin/mine", "--jsonl"]',
        f"personal {personal}:21",
    )


def test_of_the_personal_file_no_agent_and_no_name_reach_a_project(tmp_path: Path, personal: Path) -> None:
    fleet = parsed("", tmp_path, personal).fleet
    assert (fleet.name, fleet.agents) == ("project", ())


def test_the_default_grant_is_a_mains_and_no_childs(tmp_path: Path, personal: Path) -> None:
    fleet = parsed("[agents.lead.agents.helper]\n", tmp_path, personal).fleet
    lead = agent(fleet, "lead")
    assert lead.grant == Grant(tokens=1_000_000, models=("claude-*",), paths=("/srv",), fork=False)
    assert lead.children[0].grant == Grant()


def test_a_grant_is_joined_field_by_field_over_its_role(tmp_path: Path) -> None:
    content = """\
[roles.reviewer]
kind = "pi"
grant = { tools = ["read"], tokens = "50k", wall = "1h30m", cost = 2.5 }
[agents.a]
role = "reviewer"
grant = { tokens = "200k", cost = "0.000000001 USD", children = 0, depth = "1k" }
"""
    grant = agent(parsed(content, tmp_path).fleet, "a").grant
    assert grant == Grant(tools=("read",), tokens=200_000, wall=5400.0, cost=1, children=0, depth=1000)


def test_an_undeclared_role_is_a_bare_label(tmp_path: Path) -> None:
    spec = agent(parsed('[agents.a]\nkind = "pi"\nrole = "integrator"\n', tmp_path).fleet, "a").spec
    assert (spec.role, spec.kind, spec.max_tasks) == ("integrator", "pi", None)


def test_a_default_can_be_taken_back(tmp_path: Path) -> None:
    content = """\
[defaults]
kind = "pi"
model = "m"
max_tasks = 3
directory = "/srv"
instructions = "AGENTS.md"
[agents.a]
model = ""
max_tasks = "unlimited"
directory = ""
instructions = ""
[agents.b]
"""
    fleet = parsed(content, tmp_path).fleet
    plain, default = agent(fleet, "a").spec, agent(fleet, "b").spec
    here = str(tmp_path / "project")
    assert (plain.model, plain.max_tasks, plain.directory, plain.instructions) == ("", None, here, "")
    assert (default.model, default.max_tasks, default.directory) == ("m", 3, "/srv")
    assert default.instructions == f"{here}/AGENTS.md"


def test_a_child_uses_the_model_of_its_parent_unless_a_layer_says_something_of_it(tmp_path: Path) -> None:
    content = """\
[agents.lead]
kind = "pi"
model = "big"
[agents.lead.agents.same]
kind = "pi"
[agents.lead.agents.same.agents.below]
kind = "pi"
[agents.lead.agents.other]
kind = "scripted"
[agents.lead.agents.plain]
kind = "pi"
model = ""
[agents.lead.agents.scout]
role = "scout"
[roles.scout]
kind = "pi"
model = "small"
"""
    loaded = parsed(content, tmp_path)
    lead = agent(loaded.fleet, "lead")
    same, other, plain, scout = lead.children
    told = [(each.spec.model, each.spec.model_from) for each in (lead, same, same.children[0], other, plain, scout)]
    assert told == [
        ("big", "agents.toml"), ("big", "parent lead"), ("big", "parent same"), ("", ""), ("", "agents.toml"),
        ("small", "role scout"),
    ]  # fmt: skip
    assert origin(loaded, "agents.lead.agents.same.model") == ('"big"', "parent lead")
    named = parsed('[defaults]\nkind = "pi"\nmodel = "m"\n[agents.a]\nmodel = "b"\n[agents.a.agents.c]\n', tmp_path)
    below = agent(named.fleet, "a").children[0].spec
    assert (below.model, below.model_from) == ("m", "[defaults]"), "the defaults come before the parent"


def test_paths_are_relative_to_their_own_file_and_know_the_home(
    tmp_path: Path, personal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    personal.write_text('[defaults]\nkind = "pi"\ninstructions = "common.md"\nenv_file = "~/.secrets"\n')
    content = """\
[agents.a]
directory = "../elsewhere/./x/"
grant.paths = ["src", "~", "/etc/../srv"]
[agents.b]
[kinds.here]
command = ["./here", "./untouched"]
protocol = "lines"
[kinds.there]
command = ["there", "x/y"]
protocol = "lines"
"""
    fleet = parsed(content, tmp_path, personal).fleet
    first = agent(fleet, "a")
    assert first.spec.directory == str(tmp_path / "elsewhere" / "x")
    assert first.grant.paths == (str(tmp_path / "project" / "src"), "/home/someone", "/srv")
    assert first.spec.instructions == str(personal.parent / "common.md")
    assert first.spec.env_file == "/home/someone/.secrets"
    assert agent(fleet, "b").spec.directory == str(tmp_path / "project")
    assert fleet.kinds[-2:] == (
        KindSpec("here", "lines", (str(tmp_path / "project" / "here"), "./untouched")),
        KindSpec("there", "lines", ("there", "x/y")),
    )


@pytest.mark.parametrize(
    ("content", "key", "line", "held"),
    [
        ('[project]\nagent_talk = "project"', "project.agent_talk", 2, 3),
        ("[limits]\ndepth = 9", "limits.depth", 2, 5),
        ("[defaults.grant]\ntokens = 1_000_001", "defaults.grant.tokens", 2, 12),
        ("[agents.a.grant]\ntokens = '2M'", "agents.a.grant.tokens", 2, 12),
        ("[agents.a.grant]\nfork = true", "agents.a.grant.fork", 2, 15),
        ('[agents.a.grant]\nmodels = ["claude-opus", "gpt-*"]', "agents.a.grant.models", 2, 13),
        ('[agents.a.grant]\nmodels = ["*"]', "agents.a.grant.models", 2, 13),
        ('[agents.a.grant]\npaths = ["/srv/x", "/srvx"]', "agents.a.grant.paths", 2, 14),
        ('[agents.a.grant]\npaths = ["/srv/../etc"]', "agents.a.grant.paths", 2, 14),
        ('[roles.Reviewer.grant]\ntools = ["read", "bash"]', "roles.Reviewer.grant.tools", 2, 19),
        ('[agents.a]\nrole = "reviewer"\ngrant.tokens = "51k"', "agents.a.grant.tokens", 3, 19),
    ],
)
def test_a_project_cannot_widen_what_the_personal_file_allows(
    tmp_path: Path, personal: Path, content: str, key: str, line: int, held: int
) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed(content, tmp_path, personal)
    (problem,) = caught.value.problems
    assert (problem.key, problem.line) == (key, line)
    assert f"{personal}:{held}" in problem.message


def test_a_project_can_narrow_what_the_personal_file_allows(tmp_path: Path, personal: Path) -> None:
    content = """\
[project]
agent_talk = "mains"
[limits]
depth = 3
[agents.a]
grant = { tokens = "1M", models = ["claude-opus", "claude-s*"], paths = ["/srv", "/srv/x"], tools = ["bash"] }
"""
    fleet = parsed(content, tmp_path, personal).fleet
    assert (fleet.agent_talk, fleet.depth) == ("mains", 3)
    assert agent(fleet, "a").grant.models == ("claude-opus", "claude-s*")


def test_resources_are_joined_by_name_taken_back_by_name_and_never_wider_than_the_personal_files(
    tmp_path: Path, personal: Path
) -> None:
    content = """\
[defaults]
resources = { memory = "1.5G", cpu = "50%" }
[agents.a]
resources = { cpu = "unlimited", processes = 100 }
"""
    loaded = parsed(content, tmp_path, personal)
    assert agent(loaded.fleet, "a").spec.resources == Resources(1536 << 20, None, 100)
    shown = {row["key"]: row["value"] for row in explain(loaded)}
    assert [shown[f"agents.a.resources.{name}"] for name in ("memory", "cpu", "processes")] == [
        "1536M",
        "unlimited",
        "100",
    ]
    personal.write_text('[defaults.resources]\nmemory = "1G"\nprocesses = 200\n')
    with pytest.raises(ConfigError) as caught:
        parsed(content.replace("100", '"unlimited"') + 'kind = "pi"\n', tmp_path, personal)
    # The personal value is in force for every agent and for the project's defaults.
    assert {problem.key for problem in caught.value.problems} == {
        "defaults.resources.memory",
        "agents.a.resources.processes",
    }


def test_faults_of_both_files_are_told_together(tmp_path: Path, personal: Path) -> None:
    personal.write_text("[defaults]\nkind = 7\nstop_grace = 3\n")
    with pytest.raises(ConfigError) as caught:
        parsed('[agents.a]\nkind = "py"\n', tmp_path, personal)
    assert [(Path(one.file).parent.name, one.line) for one in caught.value.problems] == [
        ("home", 2), ("home", 3), ("project", 2),
    ]  # fmt: skip


def test_a_personal_file_lies_not_under_itself_and_may_be_missing(tmp_path: Path, personal: Path) -> None:
    link = tmp_path / "link.toml"
    link.symlink_to(personal)
    alone = load(link, personal=personal)
    assert (alone.file, alone.fleet.name, alone.fleet.agents[0].name) == (str(personal), "mine", "at-home")
    assert parsed("", tmp_path, tmp_path / "none.toml").fleet == parsed("", tmp_path).fleet
    personal.write_text("")
    assert load(personal, personal=personal).fleet.name == "personal"


def test_built_in_kinds_need_no_table_and_can_be_pointed_elsewhere(tmp_path: Path) -> None:
    kinds = parsed("", tmp_path).fleet.kinds
    assert {KindSpec("pi", "pi"), KindSpec("scripted", "scripted")} <= {*kinds}
    fleet = parsed('[kinds.pi]\ncommand = ["/opt/pi"]\nstdio = "pipe"\n', tmp_path).fleet
    assert {*fleet.kinds} == {*kinds} - {KindSpec("pi", "pi")} | {KindSpec("pi", "pi", ("/opt/pi",), "pipe")}
    other = parse('[agents.a]\nkind = "new"\n', "/x/agents.toml", protocols={"new": False, "lines": False})
    assert other.fleet.kinds == (KindSpec("new", "new"),)


def test_a_program_that_does_one_task_and_ends_is_told_by_its_protocol_or_by_its_table(tmp_path: Path) -> None:
    toml = '[kinds.job]\ncommand = ["job"]\nprotocol = "lines"\nonce = true\n[kinds.scripted]\nonce = true\n'
    found = {kind.name: kind.once for kind in parsed(toml, tmp_path).fleet.kinds}
    assert (found["job"], found["scripted"], found["pi"]) == (True, True, False)
    known = {"one-shot": True, "lines": False}
    for content in ("", "[kinds.one-shot]\nonce = true\n", '[kinds.one-shot]\ncommand = ["x"]\n'):
        (kind,) = parse(content, "/x/agents.toml", protocols=known).fleet.kinds
        assert kind.once
    for content, protocols in (("[kinds.pi]\nonce = true\n", PROTOCOLS), ("[kinds.one-shot]\nonce = false\n", known)):
        with pytest.raises(ConfigError, match="once: a program of the protocol"):
            parse(content, "/x/agents.toml", protocols=protocols)
    written = dump(parsed(toml, tmp_path).fleet)
    assert parsed(written, tmp_path).fleet == parsed(toml, tmp_path).fleet


def test_the_protocols_of_files_are_the_kinds_that_there_are() -> None:
    assert {name: kind.once for name, kind in KINDS.items()} == PROTOCOLS


def test_a_project_without_a_name_has_its_directorys() -> None:
    for directory, name in [("/a/b.c", "b.c"), ("/", "project"), ("/a/.git", "git"), ("/a/x:y", "x-y")]:
        assert parse("", f"{directory}/agents.toml").fleet.name == name
    assert len(parse("", f"/{'é' * 100}/agents.toml").fleet.name.encode()) == 48


def test_the_hash_is_of_the_bytes_that_were_read(tmp_path: Path) -> None:
    file = tmp_path / "agents.toml"
    file.write_bytes(b"# caf\xc3\xa9\r\n")
    loaded = load(file)
    assert loaded.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert parse("# café\r\n", str(file)).sha256 == loaded.sha256


def test_the_personal_file_is_where_the_desktop_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert personal_file({"XDG_CONFIG_HOME": "/c"}) == Path("/c/fleet-supervisor/agents.toml")
    monkeypatch.setenv("HOME", "/h")
    for environ in ({}, {"XDG_CONFIG_HOME": ""}, {"XDG_CONFIG_HOME": "relative"}):
        assert personal_file(environ) == Path("/h/.config/fleet-supervisor/agents.toml")
