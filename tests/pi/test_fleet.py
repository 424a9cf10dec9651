"""A real fleet: a pi that forks a pi out of its own shell, counted to the token, refused beyond its grant, and ended
with all that it started."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from tests.fleet import Fleet
from tests.house import Seen, below, eventually, gone
from tests.model_server import ModelServer
from tests.pi.person import CHAT, LEAD, MESSAGES, WINDOW, billed, counted, fleet_of, settled

HELD = "grant = { tokens = 1_000_000, descendants = 4, depth = 2, fork = true }\n"
FORK = f"supervisorctl fork - --kind pi --name tests --model {MESSAGES} --tokens 20k --json < brief"
MORE = "supervisorctl fork More --kind pi --tokens 300k --json"


def refusals(server: ModelServer) -> list[dict[str, Any]]:
    """What the agents' shells were refused, as their models were told it."""
    told = [result for results in server.results for result in results if '"refused"' in result]
    return [json.JSONDecoder().raw_decode(text[text.index("{") :])[0]["refused"] for text in told]


def fills(agent: str, tokens: int, tree: dict[str, dict[str, Any]]) -> bool:
    """Whether its window is shown to hold so many tokens."""
    shown = [tree[agent][f"context_{name}"] for name in ("tokens", "window", "percent")]
    return shown == [tokens, WINDOW, round(100 * tokens / WINDOW, 2)]


async def forked(fleet: Fleet, at: Path) -> dict[str, dict[str, Any]]:
    """The lead has forked a child in its shell, and the child has tried to fork more than it holds."""
    (at / "brief").write_text(f"[[bash:{MORE}]]")
    said = await fleet.json("instruct", "lead", f"[[bash:{FORK}]]", "--wait")
    # The child's end of its brief is a digest to the lead, which is a turn of the lead's and ends its own task.
    assert (said["status"], said["text"]) == ("done", "Very well.")
    await fleet.until(lambda tree: tree["lead"]["own"]["turns"] == 2 and tree["tests"]["tasks"]["done"] == 1)
    return await settled(fleet, "lead", "tests")


async def test_a_fork_out_of_pis_shell_is_counted_as_billed_and_bound_by_its_grant(
    server: ModelServer, tmp_path: Path, tier: str
) -> None:
    async with fleet_of(tmp_path, LEAD + f'model = "{CHAT}"\n' + HELD, tier) as fleet:
        await forked(fleet, tmp_path)
        shown = await fleet.json("tree")
        (lead,) = shown["agents"]
        (child,) = lead["children"]
        assert shown["tier"] == tier
        assert (lead["name"], lead["state"], lead["model"], lead["kind"]) == ("lead", "standing", CHAT, "pi")
        assert (child["name"], child["state"], child["model"], child["kind"]) == ("tests", "standing", MESSAGES, "pi")
        assert counted(lead["own"]) == billed(server, CHAT)
        assert counted(child["own"]) == billed(server, MESSAGES)
        assert counted(lead["branch"]) == billed(server)
        assert (lead["own"]["turns"], child["own"]["turns"]) == (2, 1)
        spent = sum(call.tokens for call in server.bill if call.model in MESSAGES)
        assert child["grant"]["tokens"] == {
            "held": 20_000, "spent": spent, "reserved": 0, "free": 20_000 - spent, "over": 0,
        }  # fmt: skip
        assert lead["grant"]["tokens"]["reserved"] == 20_000
        (refused,) = refusals(server)
        at_the_time = next(call.tokens for call in server.bill if call.model in MESSAGES)
        assert (refused["code"], refused["field"], refused["ask"]) == ("budget", "tokens", "lead")
        assert (refused["asked"], refused["held"], refused["used"]) == (300_000, 20_000, at_the_time)
        for model, agent in ((CHAT, "lead"), (MESSAGES, "tests")):
            last = [call for call in server.bill if call.model in model][-1]
            await fleet.until(partial(fills, agent, last.tokens))


async def test_disbanding_the_main_leaves_no_process_of_either_pi(tmp_path: Path, tier: str) -> None:
    async with fleet_of(tmp_path, LEAD + HELD, tier) as fleet:
        tree = await forked(fleet, tmp_path)
        sleeper = "setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $! > sleeper"
        await fleet.ctl("instruct", "tests", f"[[bash:{sleeper}]]", "--wait")
        # Its shell does not wait for it: `setsid` may be yet to run.
        (sleep,) = await eventually(lambda: [seen for seen in below(fleet.process.pid) if seen.argv == "sleep 1000"])
        living = below(fleet.process.pid)
        assert {tree[name]["pid"] for name in ("lead", "tests")} < {seen.pid for seen in living}
        planned = (await fleet.json("disband", "lead", "--plan"))["plan"]["agents"]
        assert {agent["name"] for agent in planned} == {"lead", "tests"}
        assert sleep.pid in {process["pid"] for agent in planned for process in agent["processes"]}
        assert below(fleet.process.pid) == living
        ended = (await fleet.json("disband", "lead"))["ended"]
        assert {agent["name"] for agent in ended} == {"lead", "tests"}
        assert not alive(living)
        assert not below(fleet.process.pid)
        assert (await fleet.tree())["a1"]["state"] == "gone"


def alive(processes: list[Seen]) -> list[Seen]:
    """Those that are not gone by now."""
    return gone(processes, within=0)
