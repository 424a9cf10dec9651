"""No agent speaks for another: not by its files, its descriptors, its marks or its environment."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from tests.budgets.puppet import PUPPET, Puppet
from tests.e2e.stage import Stage, alive, project
from tests.hostile.siege import siege
from tests.house import eventually

#: Connects as the agent that runs it, and gives the connection to whoever comes to the path in the second word.
GIVER = """
import os, socket, sys
door = socket.socket(socket.AF_UNIX)
door.connect(sys.argv[1])
meeting = socket.socket(socket.AF_UNIX)
meeting.bind(sys.argv[2])
meeting.listen()
taker, _ = meeting.accept()
socket.send_fds(taker, [b"x"], [door.fileno()])
taker.recv(1)
print("given", flush=True)
"""
#: Takes the connection, and asks on it.
TAKER = """
import os, socket, sys, time
taker = socket.socket(socket.AF_UNIX)
while True:
    try:
        taker.connect(sys.argv[2])
        break
    except OSError:
        time.sleep(0.01)
_, fds, _, _ = socket.recv_fds(taker, 1, 1)
door = socket.socket(fileno=fds[0])
try:
    door.sendall(b'{"jsonrpc":"2.0","id":1,"method":"disband","params":{"agent":"kid"}}\\n')
    print(door.recv(65536).decode() or "closed")
except OSError:
    print("closed")
"""


@pytest.fixture
async def two(stage: Stage) -> tuple[Puppet, Puppet]:
    """`one`, and `two` beside it with a child `kid`."""
    agents = '[agents.one]\nkind = "puppet"\n[agents.two]\nkind = "puppet"\n[agents.two.agents.kid]\nkind = "sleep"\n'
    await stage.fleet.up(project(PUPPET, agents))
    tree = await stage.standing("one", "two", "kid")
    return Puppet(stage, tree["one"]["id"], "one"), Puppet(stage, tree["two"]["id"], "two")


async def test_lines_cannot_be_written_into_a_siblings_output(two: tuple[Puppet, Puppet]) -> None:
    one, other = two
    victim = (await other.shown())["pid"]
    line = '{"fleet":"usage","scope":"call","input":1000}'
    for fd in (0, 1):
        code, _, err = await one.run("sh", "-c", f"echo '{line}' >/proc/{victim}/fd/{fd}")
        assert code != 0
        assert "No such device" in err
    await other.say("still here")
    shown = (await other.stage.fleet.until(lambda tree: tree["two"]["last"] == "still here"))["two"]
    assert shown["own"]["input"] == 0


async def test_a_connection_that_is_passed_on_speaks_for_no_one(two: tuple[Puppet, Puppet]) -> None:
    one, other = two
    paths = [str(one.stage.fleet.socket), str(one.stage.room / "meeting")]
    giving = await other._order("run", [sys.executable, "-ISc", GIVER, *paths])
    code, out, err = await one.run(sys.executable, "-ISc", TAKER, *paths)
    assert (code, out.strip()) == (0, "closed"), err
    assert (await other._answer(giving))[0] == 0
    assert (await one.stage.fleet.tree())["kid"]["state"] == "standing"
    recorded = [
        event for event in (await one.stage.fleet.call("events", since=0))["events"] if event["fact"] == "Refused"
    ]
    assert [(event["verb"], event["code"], event["by"]) for event in recorded] == [("connect", "nobody", other.id)]


#: Takes the mark and the variable of the process in the first word, then asks who it is.
FORGE = """
import os, resource, subprocess, sys, time
victim = int(sys.argv[1])
resource.prlimit(0, 10, resource.prlimit(victim, 10))
environ = open(f"/proc/{victim}/environ").read().split("\\0")
os.environ["FLEET_AGENT"] = next(entry for entry in environ if entry.startswith("FLEET_AGENT=")).partition("=")[2]
"""
WHOAMI = "os.execlp('supervisorctl', 'supervisorctl', 'whoami', '--json')\n"
#: First it leaves its ancestors, twice over; the answer goes to the file in the second word.
LEAVE = """
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
for fd in range(3):
    os.dup2(os.open(os.devnull, os.O_RDWR), fd)
done = subprocess.run(["supervisorctl", "whoami", "--json"], capture_output=True, stdin=subprocess.DEVNULL)
with open(sys.argv[2] + ".new", "w") as file:
    file.write(f"{os.getpid()}\\n{done.stdout.decode()}")
os.rename(sys.argv[2] + ".new", sys.argv[2])
time.sleep(1000)
"""


async def test_marks_and_environment_of_another_make_no_one_that_other(two: tuple[Puppet, Puppet]) -> None:
    one, other = two
    victim = str((await other.shown())["pid"])
    code, out, err = await one.run(sys.executable, "-c", FORGE + WHOAMI, victim)
    assert code == 0, err
    assert f'"{one.id}"' in out
    # Nor is it free by leaving its ancestors too: adopted by the daemon it is nobody, and it ends with its agent.
    # Without cgroups it is taken for the other's, and ends with that.
    told = one.stage.room / "told"
    await one.run(sys.executable, "-c", FORGE + LEAVE, victim, str(told))
    await eventually(told.exists, 20)
    pid, _, answer = told.read_text().partition("\n")
    assert '"nobody"' in answer
    assert alive(int(pid))
    await one.stage.fleet.call("disband", agent="one")
    assert (await other.shown())["state"] == "standing"
    if (await one.stage.fleet.call("status"))["tier"] != "cgroup":
        await one.stage.fleet.call("disband", agent="two")
    await eventually(lambda: not alive(int(pid)))


@pytest.mark.parametrize("end", ["disband", "kill"])
async def test_a_caller_that_stops_in_the_middle_holds_up_no_one_and_ends_with_its_agent(
    two: tuple[Puppet, Puppet], end: str
) -> None:
    one, other = two
    await other._order("run", ["supervisorctl", "instruct", "kid", "Go", "--wait"])
    client = await eventually(lambda: _client(other), 20)
    await other.stage.fleet.until(lambda tree: tree["kid"]["state"] == "working")
    os.kill(client, signal.SIGSTOP)
    async with siege(other.stage.fleet):
        code, _ = await one.ctl("whoami")
        assert code == 0
    if end == "disband":
        await other.stage.fleet.call("disband", agent="two")
    else:
        os.kill((await other.shown())["pid"], signal.SIGKILL)
        await other.becomes("gone")
    await eventually(lambda: not alive(client))


def _client(puppet: Puppet) -> int:
    """The client that the puppet runs."""
    return next((one.pid for one in puppet.stage.below() if "instruct kid" in one.argv), 0)
