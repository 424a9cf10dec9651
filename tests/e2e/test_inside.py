"""A fleet has one daemon: what runs inside an agent never starts another, whatever it asks for, and is told why."""

from __future__ import annotations

import json
from pathlib import Path

from supervisor.doors import paths
from supervisor.runtime.containment import marks
from tests.e2e.stage import Stage, project
from tests.fleet import DAEMON
from tests.house import below, eventually

#: Runs each command with everything of a daemon of its own, and prints how it went; then it stands by.
ASKS = """
import json
print('{"fleet":"ready"}', flush=True)
for number, argv in enumerate(json.loads(sys.argv[1])):
    home = os.path.join(sys.argv[2], str(number))
    os.mkdir(home)
    elsewhere = dict(os.environ, XDG_STATE_HOME=home, XDG_RUNTIME_DIR=home, XDG_CONFIG_HOME=home)
    done = subprocess.run(argv, env=elsewhere, cwd=sys.argv[2], capture_output=True, text=True)
    print("went", json.dumps([done.returncode, done.stderr]), flush=True)
print("here", os.environ["FLEET_AGENT"], flush=True)
time.sleep(1000)
"""


def test_the_variable_that_says_so_is_the_mark_of_every_agent() -> None:
    assert paths.AGENT_VARIABLE == marks.VARIABLE


async def test_no_agent_starts_a_daemon_of_its_own(stage: Stage, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "agents.toml").write_text('[project]\nname = "nested"\n')
    asked = [
        [*DAEMON, "--tier", "warden"],
        [*DAEMON, "--no-warden"],
        ["supervisorctl", "up"],
        ["supervisorctl", "install-unit"],
        ["supervisorctl", "demo", "--once"],
    ]
    program = stage.python("asks", ASKS, json.dumps(asked), str(place))
    await stage.fleet.up(project(program, '[agents.kid]\nkind = "asks"\n'))
    agent = (await stage.standing("kid"))["kid"]["id"]
    went = [json.loads(line) for line in await stage.said(agent, "went", len(asked))]
    assert [code for code, _ in went] == [78, 78, 1, 1, 1]
    for _, words in went:
        assert f"inside agent {agent}" in words
        assert "FLEET_AGENT" in words, "and how a person does it all the same"
    (mark,) = await stage.said(agent, "here")
    assert mark.endswith(f":{agent}")
    assert [one.pid for one in below(stage.daemon)] == [(await stage.fleet.tree())["kid"]["pid"]]
    assert sorted(entry.name for entry in place.rglob("*") if entry.is_file()) == ["agents.toml"], "nothing was made"


async def test_an_agent_that_asks_for_more_of_the_one_daemon_is_refused_by_it(stage: Stage) -> None:
    body = "supervisorctl up; echo up $?\nsupervisorctl shutdown; echo shutdown $?\nexec sleep 1000\n"
    toml = project(stage.sh("asks", f"cd {stage.room}\n{body}"), '[agents.kid]\nkind = "asks"\n')
    await stage.fleet.up(toml)
    agent = (await stage.standing("kid"))["kid"]["id"]
    assert await stage.said(agent, "up") == ["1"]
    assert await stage.said(agent, "shutdown") == ["1"]
    stderr = stage.transcript(agent).with_name("stderr.log")  # written by another task than what is printed
    await eventually(lambda: stderr.read_text().count("is the operator's alone") == 2)
