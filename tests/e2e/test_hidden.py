"""What sheds every sign of whose it is outlives its agent, and is shown to the person who can end it."""

from __future__ import annotations

import os
import signal

from supervisor.runtime.containment import cgroupfs
from supervisor.runtime.containment.marks import argv0, stat
from tests.e2e.stage import Stage, alive, project
from tests.house import PATIENCE, eventually

#: Leaves a process that sheds every sign of whose it is; its cgroup too, for the one whose directory is given.
HIDES = """
import resource
resource.setrlimit(10, (-1, -1))
if not os.fork():
    os.setsid()
    if os.fork():
        os._exit(0)
    for directory in sys.argv[1:]:
        open(f"{directory}/cgroup.procs", "w").write("0")
    os.execve("/bin/sh", ["sh", "-c", "echo hid $$; exec sleep 1000 >/dev/null 2>&1"], {})
time.sleep(1000)
"""


def parent(pid: int) -> int:
    """Whose child it is now."""
    found = stat(pid)
    return found.ppid if found is not None else 0


async def test_what_shed_every_sign_of_whose_it_is_is_told(stage: Stage) -> None:
    here = cgroupfs.here() if stage.fleet.tier == "cgroup" else None
    hiding = stage.python("hiding", HIDES, *([here.directory] if here is not None else []))
    await stage.fleet.up(project(hiding, '[agents.lead]\nkind = "hiding"', grace="1s"))
    lead = (await stage.standing("lead"))["lead"]
    pid = int((await stage.said(lead["id"], "hid"))[0])

    async def told() -> list[str]:
        return [fault["what"] for fault in (await stage.fleet.call("status"))["faults"] if str(pid) in fault["what"]]

    try:
        # While the process between still lives it stands below its agent, and would be found.
        await eventually(lambda: argv0(pid) == "sleep" and parent(pid) == stage.daemon, PATIENCE)
        await stage.killed("lead")
        assert alive(pid), "no end of an agent finds it"
        (fault,) = await told()
        assert f"{pid} sleep" in fault
        assert "they end with the daemon" in fault
    finally:
        os.kill(pid, signal.SIGKILL)
    await eventually(lambda: not alive(pid), PATIENCE)
    assert await told() == []
