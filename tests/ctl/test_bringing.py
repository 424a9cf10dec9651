"""`up` finds the file, starts a daemon that is missing, and shows why one did not come."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.ctl import daemon
from tests.ctl.server import WireError, ctl, serve, socket_path
from tests.fleet import running
from tests.house import PATIENCE

ROOT = Path(__file__).parents[2]

UP = {"project": "p", "file": "/p/agents.toml", "started": [{"id": "a1", "name": "lead"}], "changed": [], "seq": 3}
#: A daemon of one connection after another, which is ours by the module that it names. It ends with `shutdown`.
DAEMON = """#!{python}
# supervisor.warden
import json, os, socket, sys
print("hello from the daemon", os.getcwd(), os.getsid(0) == os.getpid(), sys.stdin.read() == "", flush=True)
os.makedirs(os.path.dirname({path!r}), exist_ok=True)
with socket.socket(socket.AF_UNIX) as door:
    door.bind({path!r})
    door.listen()
    method = ""
    while method != "shutdown":
        caller, _ = door.accept()
        with caller, caller.makefile("rwb") as lines:
            for line in lines:
                request = json.loads(line)
                method = request["method"]
                result = {{**{up!r}, "asked": request["params"]}} if method == "up" else {{"pid": os.getpid()}}
                answer = {{"jsonrpc": "2.0", "id": request["id"], "result": result}}
                lines.write(json.dumps(answer).encode() + b"\\n")
                lines.flush()
os.unlink({path!r})
"""


def log() -> Path:
    return Path(os.environ["XDG_STATE_HOME"]) / "fleet-supervisor" / "daemon.log"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with an agents.toml, and beside it an installation in `bin`."""
    (tmp_path / "bin").mkdir()
    script(
        tmp_path,
        "supervisorctl",
        f"#!{sys.executable}\nimport sys\nfrom supervisor.ctl.main import main\nsys.exit(main())\n",
    )
    at = tmp_path / "project"
    at.mkdir()
    (at / "agents.toml").write_text("[project]\nname = 'été'\n", "utf-8")
    return at


def script(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "bin" / name).write_text(text)
    (tmp_path / "bin" / name).chmod(0o755)


def run(project: Path, *args: str, below: str = ".") -> subprocess.CompletedProcess[str]:
    """The installed client, standing in the project."""
    return subprocess.run(
        [str(project.parent / "bin" / "supervisorctl"), *args],
        cwd=project / below,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_up_starts_a_missing_daemon_detached_and_hands_it_the_file(project: Path) -> None:
    script(project.parent, "supervisord", DAEMON.format(python=sys.executable, path=str(socket_path()), up=UP))
    (project / "deep").mkdir()
    done = run(project, "up", below="deep")
    try:
        assert done.returncode == 0, done.stderr
        assert "started the daemon (pid " in done.stdout
        assert "started: lead (a1)" in done.stdout
        assert log().read_text() == "hello from the daemon / True True\n"
        assert log().stat().st_mode & 0o777 == 0o600
        again = json.loads(run(project, "up", "--json").stdout)
        assert again["asked"] == {
            "file": str(project / "agents.toml"),
            "content": "[project]\nname = 'été'\n",
            "path": os.environ["PATH"],
            "cwd": str(project),
        }
        assert log().read_text().count("hello") == 1, "the daemon that is there is used"
    finally:
        run(project, "shutdown")


def test_up_after_a_shutdown_says_that_what_was_accepted_runs_again(project: Path) -> None:
    same: dict[str, Any] = {**UP, "started": []}
    script(project.parent, "supervisord", DAEMON.format(python=sys.executable, path=str(socket_path()), up=same))
    try:
        assert "the content accepted before: its agents run again" in run(project, "up").stdout
        assert "nothing changed" in run(project, "up").stdout
    finally:
        run(project, "shutdown")


def test_up_that_meets_a_daemon_at_its_end_is_for_the_next_one(project: Path, tmp_path: Path) -> None:
    went = tmp_path / "went"
    ends = f"""
                if method == "up" and not os.path.exists({str(went)!r}):
                    open({str(went)!r}, "w").close()
                    os.unlink({{path!r}})
                    os._exit(0)
"""
    line = '                method = request["method"]\n'
    text = DAEMON.replace(line, line + ends.lstrip("\n"))
    script(project.parent, "supervisord", text.format(python=sys.executable, path=str(socket_path()), up=UP))
    try:
        done = run(project, "up")
        assert (done.returncode, went.exists()) == (0, True), done.stderr
        assert "started: lead (a1)" in done.stdout
        assert log().read_text().count("hello") == 2
    finally:
        run(project, "shutdown")


def test_a_daemon_that_dies_at_its_start_shows_its_last_words(project: Path) -> None:
    log().parent.mkdir(parents=True)
    log().write_text("words of an earlier one\n")
    script(project.parent, "supervisord", "#!/bin/sh\n# supervisor.warden\necho 'no room \033[31mleft' >&2\nexit 3\n")
    done = run(project, "up")
    assert done.returncode == 69
    assert "exit code 3" in done.stderr
    assert "| no room \\x1b[31mleft" in done.stderr
    assert "earlier" not in done.stderr
    assert str(log()) in done.stderr


def test_a_program_that_only_has_the_same_name_is_not_started(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(project.parent, "supervisord", "#!/bin/sh\ntouch started\n")
    monkeypatch.setattr(sys, "argv", [str(project.parent / "bin" / "supervisorctl")])
    assert str(project.parent) not in " ".join(daemon.command())


def test_the_file_is_read_by_the_client_and_what_is_wrong_with_it_is_said_with_its_place(project: Path) -> None:
    problems = [
        {
            "file": "/p/agents.toml",
            "line": 4,
            "key": "agents.lead.restart",
            "message": "unknown",
            "remedy": "did you mean?",
        }
    ]

    def answer(_method: str, _params: dict[str, Any]) -> Any:
        raise WireError(-32000, "the file has a fault", code="config", problems=problems)

    with serve(answer):
        done = ctl("up", "--json", cwd=project)
        assert done.returncode == 78
        assert "/p/agents.toml:4: agents.lead.restart: unknown (did you mean?)" in done.stderr
        assert json.loads(done.stdout)["refused"]["problems"] == problems


def test_a_file_that_is_not_utf8_or_not_readable_never_reaches_the_daemon(project: Path, tmp_path: Path) -> None:
    (project / "agents.toml").write_bytes(b"[project]\nname = '\xff'\n")
    with serve({}) as server:
        done = ctl("up", cwd=project)
        assert done.returncode == 78
        assert "agents.toml:2: not UTF-8" in done.stderr
        (project / "agents.toml").write_bytes(b"[project]\nname = 'a\0b'\n")
        done = ctl("up", cwd=project)
        assert (done.returncode, "agents.toml:2: a NUL character" in done.stderr) == (78, True)
        for large in ("#" * 983_041, "#" + "é" * 170_000, "#" * 5_000_000):
            (tmp_path / "large.toml").write_text(large, "utf-8")
            done = ctl("up", str(tmp_path / "large.toml"))
            assert (done.returncode, "larger than one request" in done.stderr) == (78, True)
        assert ctl("up", str(tmp_path / "none.toml")).returncode == 78
        assert server.requests == []


async def test_a_file_as_large_as_the_page_says_is_accepted(tmp_path: Path) -> None:
    largest = 983_040
    assert f"at most {largest:,} bytes" in (ROOT / "docs" / "configuration.md").read_text("utf-8")
    with trio.fail_after(PATIENCE):
        async with running(tmp_path) as fleet:
            head = '[agents.lead]\nkind = "scripted"\n# '
            file = tmp_path / "agents.toml"
            file.write_text(head + "#" * (largest - len(json.dumps(head))))
            assert "started: lead" in await fleet.ctl("up")
            file.write_text(head + "#" * (largest - len(json.dumps(head)) + 1))
            await fleet.ctl("reload", code=78)


def test_without_a_file_up_starts_nothing_and_says_how_to_get_one(tmp_path: Path) -> None:
    done = ctl("up", cwd=tmp_path)
    assert done.returncode == 78
    assert "supervisorctl init" in done.stderr
    assert not log().exists()


def test_reload_of_a_named_project_reads_its_file_wherever_it_lies(project: Path, tmp_path: Path) -> None:
    projects = [{"name": "p", "id": "p-0a1b2c3d", "file": str(project / "agents.toml")}]
    with serve({"status": {"projects": projects}, "reload": {"project": "p"}}) as server:
        assert ctl("reload", "--project", "p", cwd=tmp_path).returncode == 0
        assert server.params("reload")["file"] == str(project / "agents.toml")
        assert ctl("reload", "--project", "q", cwd=tmp_path).returncode == 1


def test_reload_shows_grants_first_and_starts_no_daemon(project: Path) -> None:
    assert ctl("reload", cwd=project).returncode == 69
    lead, kid = {"id": "a1", "name": "lead"}, {"id": "a2", "name": "kid"}
    result = {
        "project": "p",
        "file": "/p/agents.toml",
        "started": [kid],
        "changed": [lead],
        "restarted": [],
        "stopped": [],
    }
    with serve({"reload": {**result, "grants": [lead], "seq": None}}) as server:
        done = ctl("reload", "--plan", cwd=project)
        assert done.stdout.splitlines() == [
            "p  /p/agents.toml",
            "  would be granted: lead (a1)",
            "  would be changed: lead (a1)",
            "  would be started: kid (a2)",
            "nothing was changed",
        ]
        assert server.params("reload")["plan"] is True
