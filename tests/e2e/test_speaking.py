"""Who speaks, with everything real: an unprivileged user's daemon, agents that run `supervisorctl` in their own shells,
and no token, id or secret passed to any of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import frozen

from tests.house import eventually, over
from tests.unprivileged import Unprivileged

#: A shell that runs each line of `$FLEET_HOME/orders` that comes, and writes what came of it to `told`.
SHELL = """
orders=$FLEET_HOME/orders told=$FLEET_HOME/told
mkfifo "$orders.new" && exec 3<>"$orders.new" && mv "$orders.new" "$orders"
while IFS= read -r line <&3; do
  sh -c "$line" >"$told.new" 2>&1
  echo "exit $?" >>"$told.new"
  mv "$told.new" "$told"
done
"""

TOML = """
[project]
name = "spoken"
[kinds.sh]
command = ["sh", "-c", '''{shell}''']
protocol = "lines"
[agents.lead]
kind = "sh"
grant = {{ tokens = "1k" }}
[agents.other]
kind = "sh"
"""


@frozen
class Theirs:
    """The user's daemon and files."""

    root: Path
    env: dict[str, str]
    identity: dict[str, Any]

    def agents(self) -> Path:
        """Where the agents' own directories are."""
        return next((self.root / "state/fleet-supervisor").glob("spoken-*")) / "agents"

    async def ctl(self, *args: str) -> Any:
        """`supervisorctl ARGS --json` as the user, from outside the fleet."""
        done = await trio.run_process(
            ["supervisorctl", *args, "--json"], env=self.env, cwd=self.root, capture_stdout=True, **self.identity
        )
        return json.loads(done.stdout)

    async def agent(self, agent: str, line: str) -> tuple[str, int]:
        """Have an agent's shell run a line; what it printed, and its exit code."""
        home = self.agents() / agent
        await eventually((home / "orders").exists)
        (home / "told").unlink(missing_ok=True)
        fd = os.open(home / "orders", os.O_WRONLY)
        try:
            os.write(fd, line.encode() + b"\n")
        finally:
            os.close(fd)
        await eventually((home / "told").exists)
        text, _, code = (home / "told").read_text().rstrip().rpartition("exit ")
        return text, int(code)


@asynccontextmanager
async def theirs(user: Unprivileged) -> AsyncIterator[Theirs]:
    """A daemon of the unprivileged user, with two mains that are shells."""
    root = user.directory()
    places = {"XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "HOME": "home"}
    for place in places.values():
        (root / place).mkdir(mode=0o700)
        os.chown(root / place, user.uid, -1)
    file = root / "agents.toml"
    file.write_text(TOML.format(shell=SHELL))
    path = f"{Path(user.python).parent}:/usr/bin:/bin"
    env = {"PATH": path, "LANG": "C.UTF-8"} | {name: str(root / place) for name, place in places.items()}
    fleet = Theirs(root, env, user.identity)
    daemon = subprocess.Popen(
        ["supervisord"], executable=str(Path(user.python).with_name("supervisord")), env=env, cwd=root,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user.identity,
    )  # fmt: skip
    try:
        await eventually((root / "run/fleet-supervisor/control.sock").exists)
        await fleet.ctl("up")
        yield fleet
    finally:
        daemon.send_signal(signal.SIGTERM)
        with trio.CancelScope(shield=True):
            await over(daemon)


async def test_a_fork_in_an_agents_own_shell_is_under_that_agent_and_a_persons_is_a_main(
    unprivileged: Unprivileged,
) -> None:
    with trio.fail_after(120):
        async with theirs(unprivileged) as fleet:
            text, code = await fleet.agent("a1", "supervisorctl fork hello --kind sh --name kid --tokens 400 --json")
            assert code == 0, text
            assert json.loads(text)["agent"]["name"] == "kid"
            await fleet.ctl("fork", "hello", "--kind", "sh", "--name", "mine")
            tree = await fleet.ctl("tree")
            assert [agent["name"] for agent in tree["agents"]] == ["lead", "other", "mine"]
            assert [child["name"] for child in tree["agents"][0]["children"]] == ["kid"]
            assert tree["agents"][0]["grant"]["tokens"] == {
                "held": 1000, "spent": 0, "reserved": 400, "free": 600, "over": 0,
            }  # fmt: skip
            # The child's own shell is the child: more than it holds is refused, with every number.
            kid = tree["agents"][0]["children"][0]["id"]
            text, code = await fleet.agent(kid, "supervisorctl fork x --kind sh --tokens 500 --json 2>/dev/null")
            refused = json.loads(text)["refused"]
            assert code == 1
            assert (refused["code"], refused["field"], refused["asked"], refused["held"]) == (
                "budget",
                "tokens",
                500,
                400,
            )
            assert refused["ask"] == "lead"


async def test_each_caller_gets_exactly_what_it_is(unprivileged: Unprivileged) -> None:
    with trio.fail_after(120):
        async with theirs(unprivileged) as fleet:
            who = "supervisorctl whoami --json"
            for line in (
                who,
                f"sh -c '{who}; true'",
                f"setsid -w {who}",
                "env -i XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR $(command -v supervisorctl) whoami --json",
                "env -i FLEET_AGENT=1:a2 XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR $(command -v supervisorctl) whoami --json",
            ):
                text, code = await fleet.agent("a1", line)
                assert code == 0, (line, text)
                assert json.loads(text)["id"] == "a1", line
            text, _ = await fleet.agent("a2", who)
            assert json.loads(text)["id"] == "a2"
            assert (await fleet.ctl("whoami"))["principal"] == "operator"
            # A daemonised descendant has no living run above it: it is nobody, and refused.
            left = (
                f"(setsid sh -c 'while [ $(ps -o ppid= -p $$) -eq '$$' ]; do :; done; {who}' >$FLEET_HOME/left 2>&1 &)"
            )
            await fleet.agent("a1", left)
            home = fleet.agents() / "a1"
            # Its words and its answer are written one after the other.
            await eventually(lambda: (home / "left").exists() and '"nobody"' in (home / "left").read_text())


async def test_no_agent_reaches_beyond_its_branch(unprivileged: Unprivileged) -> None:
    with trio.fail_after(120):
        async with theirs(unprivileged) as fleet:
            for line, why in (
                ("supervisorctl disband a1", "authority"),
                ("supervisorctl stop other", "unknown"),
                ("supervisorctl instruct a2 hello", "unknown"),
                ("supervisorctl grant a1 --tokens 5k", "authority"),
                ("supervisorctl shutdown", "authority"),
                ("supervisorctl down", "authority"),
            ):
                text, code = await fleet.agent("a1", f"{line} --json 2>/dev/null")
                assert code == 1, line
                assert json.loads(text)["refused"]["code"] == why, line
            text, _ = await fleet.agent("a1", "supervisorctl tree --json")
            assert [agent["name"] for agent in json.loads(text)["agents"]] == ["lead"]


async def test_no_secret_stands_in_an_agents_environment(unprivileged: Unprivileged) -> None:
    """What is there names the agent to itself; whoever copies it is still who the kernel says."""
    with trio.fail_after(120):
        async with theirs(unprivileged) as fleet:
            text, _ = await fleet.agent(
                "a1", "env | grep -iE 'token|secret|key|notify|listen_|watchdog|supervisord_' || echo none"
            )
            assert text == "none\n"
            stolen, _ = await fleet.agent("a2", "echo $FLEET_AGENT")
            text, _ = await fleet.agent("a1", f"FLEET_AGENT={stolen.strip()} supervisorctl whoami --json")
            assert json.loads(text)["id"] == "a1"
