"""What is wrong is refused, never converted, and told all at once: file, line, key, and what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from supervisor.config.agents_toml import PROTOCOLS, ConfigError, Problem, load, parse
from supervisor.config.kinds import built_in

FILE = "/home/some/project/agents.toml"
HEAD = '[defaults]\nkind = "pi"\n'


def problems(content: str, file: str = FILE) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        parse(content, file)
    return caught.value.problems


def one(content: str) -> Problem:
    found = problems(content)
    assert len(found) == 1, caught_text(found)
    return found[0]


def caught_text(found: tuple[Problem, ...]) -> str:
    return "\n".join(map(str, found))


@pytest.mark.parametrize(
    ("key", "value", "says", "remedy"),
    [
        ("kind", "7", "7 is a number, not text", 'Write "7"'),
        ("role", "true", "true is a boolean, not text", 'Write "true"'),
        ("description", '["a"]', "this is a list, not text", ""),
        ("directory", "1979-05-27", "1979-05-27 is a date, not text", ""),
        ("task", "{ a = 1 }", "this is a table, not text", ""),
        ("task", '"a\\u0000b"', "holds a NUL character", ""),
        ("env", '"A=1"', '"A=1" is text, not a table', ""),
        ("env", '["A"]', "this is a list, not a table", ""),
        ("max_tasks", '"7"', '"7" is text, not a number of tasks', "Write 7 without quotes"),
        ("max_tasks", "true", "true is a boolean", "1 to 32"),
        ("max_tasks", "4.0", "4.0 is a number, not a number of tasks", ""),
        ("max_tasks", "0", "0 is not within 1 to 32", "unlimited"),
        ("max_tasks", "33", "33 is not within 1 to 32", "unlimited"),
        ("replace", '"true"', '"true" is text, not true or false', "without quotes"),
        ("replace", "1", "1 is a number, not true or false", ""),
        ("restart", '"onfailure"', '"onfailure" is not known here', 'Did you mean "on-failure"?'),
        ("restart", "false", "false is a boolean, not a word", '"never", "on-failure", "always"'),
        ("resume", '"Stand"', '"Stand" is not known here', 'Did you mean "stand"?'),
        ("stop_grace", "10", "10 is a number, not a duration", 'such as "10s"'),
        ("stop_grace", '"10"', "'10' is no duration", ""),
        ("stop_grace", '"-1s"', "'-1s' is no duration", ""),
        ("quiet_after", "600", "600 is a number, not a duration", 'such as "600s"'),
        ("quiet_kill", '"0s"', '"0s" is no time to wait', 'is written "never"'),
        ("stop_grace", "inf", "inf is a number, not a duration", "with its unit"),
        ("resources", '"2G"', '"2G" is text, not a table', ""),
        ("resources.memory", "2000000000", "2000000000 is a number, not an amount of memory", '"2G"'),
        ("resources.memory", '"2GB"', '"2GB" is text, not an amount of memory', '"512M"'),
        ("resources.memory", '"64K"', '"64K" is not within 1M', ""),
        ("resources.cpu", "1.5", "1.5 is a number, not a share of processors", '"150%"'),
        ("resources.cpu", '"0%"', "0% would let it stand still", ""),
        ("resources.processes", "0", "0 processes leave no room", '"unlimited"'),
        ("resources.processes", "-1", "-1 is below zero", ""),
        ("resources.cpus", "5", 'there is no key "cpus" here', '"cpu"'),
        ("memory", '"2G"', 'there is no key "memory" here', '"memory" is a key of resources'),
        ("grant", "[]", "this is a list, not a table", ""),
        ("grant.tools", '"read"', '"read" is text, not a list', 'Put it into brackets: ["read"]'),
        ("grant.fork", '"yes"', '"yes" is text, not true or false', ""),
        ("grant.talk", "0", "0 is a number, not true or false", ""),
        ("grant.tokens", '"7"', '"7" is text, not a count', "Write 7 without quotes"),
        ("grant.tokens", "true", "true is a boolean, not a count", ""),
        ("grant.tokens", "7.0", "7.0 is a number, not a count", ""),
        ("grant.tokens", '"2 M"', "'2 M' is no count", ""),
        ("grant.tokens", '"2m"', '"2m" is text, not a count', '"300k"'),
        ("grant.tokens", '"-2M"', "'-2M' is no count", ""),
        ("grant.tokens", "-1", "-1 is below zero", ""),
        ("grant.tokens", '"1.0005k"', "is no whole number", ""),
        ("grant.tokens", "9_999_999_999_999_999", "larger than", ""),
        ("grant.turns", '"many"', '"many" is text, not a count', ""),
        ("grant.depth", "[1]", "this is a list, not a count", ""),
        ("grant.cost", '"2.50"', '"2.50" is text, not a sum', '"2.50 USD"'),
        ("grant.cost", '"2 EUR"', '"2 EUR" is text, not a sum', ""),
        ("grant.cost", "-0.5", "below zero", ""),
        ("grant.cost", "nan", "nan is a number, not a sum", ""),
        ("grant.cost", "true", "true is a boolean, not a sum", ""),
        ("grant.cost", "0.00000000001", "is no sum", ""),
        ("grant.wall", "3600", "3600 is a number, not a duration", 'such as "3600s"'),
        ("grant.wall", '"1 hour"', "is no duration", ""),
    ],
)
def test_a_value_of_another_type_is_refused_not_converted(key: str, value: str, says: str, remedy: str) -> None:
    problem = one(f"{HEAD}[agents.lead]\n\n{key} = {value}\n")
    assert (problem.file, problem.line, problem.key) == (FILE, 5, f"agents.lead.{key}")
    assert says in problem.message
    assert remedy in problem.remedy


@pytest.mark.parametrize(
    ("content", "key", "line", "says"),
    [
        ('[agents.a]\ngrant.models = [\n"x",\n"c*d"]', "agents.a.grant.models[1]", 6, "* before its end"),
        ('[agents.a]\ngrant.tools = [\n"x",\n3]', "agents.a.grant.tools[1]", 6, "3 is a number"),
        ('[agents.a]\ngrant.paths = ["/tmp", ""]', "agents.a.grant.paths[1]", 4, "empty"),
        ('[agents.a]\ngrant.kinds = ["pi", "py"]', "agents.a.grant.kinds[1]", 4, 'no kind "py"'),
        ('[agents.a]\ngrant.env = ["A=B"]', "agents.a.grant.env[0]", 4, "no environment variable"),
        ("[agents.a.env]\nX = 1", "agents.a.env.X", 4, "1 is a number, not text"),
        ("[agents.a.env]\nX = false", "agents.a.env.X", 4, "false is a boolean, not text"),
        ('[agents.a.env]\n"A=B" = ""', 'agents.a.env."A=B"', 4, "no environment variable"),
        ('[agents.a.env]\nFLEET_AGENT = "a1"', "agents.a.env.FLEET_AGENT", 4, "set by the supervisor"),
        ('[agents.a]\ndirectory = "~nobody-at-all/x"', "agents.a.directory", 4, "no home directory"),
        ('[agents.a]\nrole = " x"', "agents.a.role", 4, "white space"),
        ("[agents]\na = 5", "agents.a", 4, "5 is a number, not a table"),
        ("[limits]\ndepth = 65", "limits.depth", 4, "65 is not within 1 to 64"),
        ("[limits]\ndepth = 0", "limits.depth", 4, "0 is not within 1 to 64"),
        ("[limits]\nagents = 0", "limits.agents", 4, "no room"),
        ('[limits]\nagents = "3"', "limits.agents", 4, '"3" is text'),
        ("[limits]\nforks_per_minute = -1", "limits.forks_per_minute", 4, "below zero"),
        ('[project]\nagent_talk = "main"', "project.agent_talk", 4, '"main" is not known here'),
        ('[project]\nname = "a/b"', "project.name", 4, "none of / :"),
        ('[project]\nname = ""', "project.name", 4, "not empty"),
        ('[project]\nname = ".."', "project.name", 4, "no dot at its start"),
        (f'[project]\nname = "{"é" * 25}"', "project.name", 4, "at most 48 bytes"),
        ('[kinds.mine]\ncommand = "mine --jsonl"\nprotocol = "lines"', "kinds.mine.command", 4, "not a list"),
        ('[kinds.mine]\ncommand = []\nprotocol = "lines"', "kinds.mine.command", 4, "names no program"),
        ('[kinds.mine]\nprotocol = "lines"', "kinds.mine", 3, "has no command"),
        ('[kinds.mine]\ncommand = ["mine"]', "kinds.mine", 3, "has no protocol"),
        ('[kinds.mine]\nprotocol = "line"\ncommand = ["mine"]', "kinds.mine.protocol", 4, 'no protocol "line"'),
        ('[kinds.mine]\nprotocol = "pi"\nstdio = "pty"', "kinds.mine.stdio", 5, '"pty" is not known here'),
        ('[kinds." "]\nprotocol = "pi"', 'kinds." "', 3, "is no kind"),
        ("[roles.Reviewer]\n[roles.reviewer]", "roles.reviewer", 4, "case makes no difference"),
        ('[agents.a]\nkind = "Pi"', "agents.a.kind", 4, 'no kind "Pi"'),
        ('[agents.a]\nkind = "lines"', "agents.a.kind", 4, "needs its command"),
        ('[roles.r]\nkind = "pj"', "roles.r.kind", 4, 'no kind "pj"'),
    ],
)
def test_each_fault_has_its_own_line_and_key(content: str, key: str, line: int, says: str) -> None:
    problem = one(HEAD + content + "\n")
    assert (problem.key, problem.line) == (key, line)
    assert says in problem.message


@pytest.mark.parametrize(
    ("content", "key", "remedy"),
    [
        ("[agents.a]\nmodle = 'x'", "agents.a.modle", 'Did you mean "model"?'),
        ("[agents.a]\ntokens = 5", "agents.a.tokens", '"tokens" is a key of grant'),
        ("[agents.a]\ntokns = 5", "agents.a.tokns", 'Did you mean "tokens"? It is a key of grant'),
        ("[agents.a]\ncommand = []", "agents.a.command", '"command" is a key of [kinds.NAME]'),
        ("[agents.a]\nagent_talk = 'mains'", "agents.a.agent_talk", '"agent_talk" is a key of [project]'),
        ("[agents.a]\ngrant.token = 5", "agents.a.grant.token", 'Did you mean "tokens"?'),
        ("[roles.r]\nrole = 'x'", "roles.r.role", '"role" is a key of an agent'),
        ("[roles.r.agents.x]", "roles.r.agents", '"agents" is a key of an agent'),
        ("[project]\nxyzzy = 1", "project.xyzzy", 'Known here: "name", "agent_talk"'),
        ("[agents.a]\nenv_fiel = 'x'", "agents.a.env_fiel", 'Did you mean "env_file"?'),
        ("[agent.a]", "agent", 'Did you mean "agents"?'),
        ("[agents.a.agent.b]", "agents.a.agent", 'Did you mean "agents"?'),
    ],
)
def test_an_unknown_key_is_refused_with_what_was_meant(content: str, key: str, remedy: str) -> None:
    problem = one(HEAD + content + "\n")
    assert problem.key == key
    assert problem.message.startswith("there is no key")
    assert remedy in problem.remedy


def test_a_default_that_can_be_none_says_where_it_belongs() -> None:
    assert one('[defaults]\ntask = "x"').remedy == '"task" is a key of an agent'
    assert one('kind = "pi"').remedy == '"kind" is a key of [defaults] and of an agent'


def test_all_faults_are_told_at_once_in_the_order_of_the_file() -> None:
    found = problems("""\
[project]
agent_talk = "everyone"
[agents.lead]
kind = "py"
grant = { tokens = "7", tools = "read" }
[agents.lead.agents.LEAD]
kind = "pi"
restart = "sometimes"
[agents.a17]
kind = 3
""")
    assert [(problem.line, problem.key) for problem in found] == [
        (2, "project.agent_talk"),
        (4, "agents.lead.kind"),
        (5, "agents.lead.grant.tools"),
        (5, "agents.lead.grant.tokens"),
        (6, "agents.lead.agents.LEAD"),
        (8, "agents.lead.agents.LEAD.restart"),
        (9, "agents.a17"),
        (10, "agents.a17.kind"),
    ]
    assert str(found[0]).startswith(f'{FILE}:2: project.agent_talk: "everyone" is not known here. ')


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ('""', "must not be empty"), ('" lead"', "white space"), ('"a\\tb"', "control"), ('"a/b"', "/"),
        ('"a\\u202Eb"', "control"), (f'"{"x" * 65}"', "64"), ("a17", "looks like an id"), ("A17", "looks like an id"),
        ("fleet", "fleet's own"),
    ],
)  # fmt: skip
def test_a_name_that_can_be_none_is_refused(name: str, says: str) -> None:
    problem = one(f"{HEAD}[agents.{name}]\n")
    assert says in problem.message
    assert problem.line == 3


def test_names_are_unique_in_the_whole_tree() -> None:
    problem = one(f"{HEAD}[agents.lead.agents.tests]\n[agents.other.agents.TESTS]\n")
    assert (problem.line, problem.key) == (4, "agents.other.agents.TESTS")
    assert "agents.lead.agents.tests on line 3" in problem.message


def test_an_agent_needs_a_kind_from_somewhere() -> None:
    problem = one("[agents.lead]\n")
    assert (problem.line, problem.key, problem.message) == (1, "agents.lead", '"lead" has no kind')
    assert ", ".join(f'"{kind.name}"' for kind in built_in(PROTOCOLS)) in problem.remedy


def test_a_kind_that_is_broken_is_one_fault_however_often_it_is_named() -> None:
    found = problems('[kinds.mine]\nprotocol = 3\n[agents.a]\nkind = "mine"\n[agents.b]\nkind = "mine"\n')
    assert [problem.key for problem in found] == ["kinds.mine.protocol"]


def test_a_tree_beyond_its_depth_or_number_is_refused() -> None:
    tree = "[agents.x]\n[agents.b.agents.c.agents.d]\n"
    assert parse(f"{HEAD}[limits]\ndepth = 3\nagents = 4\n{tree}", FILE).fleet.depth == 3
    deep = one(f"{HEAD}[limits]\ndepth = 2\n{tree}")
    assert (deep.key, deep.line) == ("agents.b.agents.c.agents.d", 6)
    assert "level 3 of the tree, which may have 2" in deep.message
    many = one(f"{HEAD}[limits]\nagents = 3\n{tree}")
    assert (many.key, many.line) == ("limits.agents", 4)
    assert "4 agents are declared" in many.message


@pytest.mark.parametrize("levels", [65, 90])
def test_no_depth_of_a_file_breaks_the_reader(levels: int) -> None:
    header = "[" + ".".join(f"agents.x{level}" for level in range(levels)) + "]\n"
    found = problems(HEAD + header)
    assert all(problem.line == 3 for problem in found)
    assert any("64 levels deep at most" in problem.message for problem in found)


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        ("a = 1\nb = pi\n", 2, 'Invalid value: "b = pi"'),
        ('a = 1\r\nb = "x\r\n', 2, "quote is missing"),
        ('\n\na = """x\n\n', 3, "Unterminated string"),
        ("[a]\nx = 1\n[a]\n", 3, "twice"),
        ("a = 1\na = 2\n", 2, "set twice"),
        ("x y = 1", 1, "KEY = VALUE"),
        ("a = 1 b = 2", 1, "One key a line"),
        ("ok = 1\n[x\n", 2, "']'"),
        ("a = " + "[" * 9000, 0, "nested too deeply"),
        ("a = " + "9" * 5000, 0, "too long"),
        ("\n" + ".".join("a" * 300_000) + " = 1", 2, "too many parts"),
        ("\ufeffa = 1", 1, "byte order mark"),
        ("a = 1\nb = '\0'", 2, "NUL"),
        ("a = 1\nb = '\udc80'", 2, "not UTF-8"),
        ("a = '" + "x" * 1024 * 1024 + "'", 0, "larger than 1048576 bytes"),
    ],
)
def test_what_is_no_toml_is_told_with_its_line(content: str, line: int, says: str) -> None:
    problem = one(content)
    assert problem.line == line
    assert says in str(problem)


def test_text_from_the_file_cannot_act_on_a_terminal() -> None:
    found = problems(
        f'{HEAD}[agents.a]\n"k\\u001b[2J" = 1\nkind = "\\u001b]0;x\\u0007\\u202e{"y" * 500}"\n[agents."\\u001b"]'
    )
    said = caught_text(found)
    assert said.replace("\n", "").isprintable()
    assert max(map(len, said.splitlines())) < 400


def test_thousands_of_faults_are_cut() -> None:
    found = problems("".join(f"k{number} = 1\n" for number in range(3000)))
    assert len(found) == 201
    assert found[-1].message == "and 2800 more problems"


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b"a = 1\n# caf\xe9\n")
    for path, line, says in [
        (tmp_path / "none.toml", 0, "No such file"),
        (tmp_path, 0, "no plain file"),
        (fifo, 0, "no plain file"),
        (latin, 2, "byte 0xe9 is not UTF-8"),
    ]:
        with pytest.raises(ConfigError, match=says) as caught:
            load(path)
        assert caught.value.problems[0].line == line
        assert caught.value.problems[0].file == str(path)


def test_a_short_word_has_a_nearest_one_too() -> None:
    known = ", ".join(f'"{kind.name}"' for kind in built_in(PROTOCOLS))
    assert one(HEAD + '[agents.a]\nkind = "py"\n').remedy == f'Did you mean "pi"? Known are {known}'
