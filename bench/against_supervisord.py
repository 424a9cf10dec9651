"""200 idle children under our daemon and under supervisord, in one run.

Prints ratios (peer / ours; above 1 is faster or smaller here). The peer is the package `supervisor` from the
index, in an environment of its own; the figures are of this machine and this moment, only the ratios travel."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import venv
import xmlrpc.client
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path

import psutil

CHILDREN = 200
CALLS = 50
PEER = "supervisor==4.3.0"
#: What one child prints for the output figure: lines of 100 bytes.
LINES = 400_000


def until(condition: Callable[[], bool], within: float = 120.0) -> float:
    """Seconds until the condition holds."""
    begun = time.perf_counter()
    while not condition():
        if time.perf_counter() - begun > within:
            raise TimeoutError(f"not within {within} s")
        time.sleep(0.002)
    return time.perf_counter() - begun


def sleepers(marker: str) -> set[int]:
    """Pids of the children, found by an argument of theirs."""
    found = set()
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if command[:1] == ["sleep"] and command[-1] == marker:
            found.add(process.pid)
    return found


class Ours:
    """Our daemon, spoken to over its socket."""

    name = "fleet-supervisor"
    marker = "100001"

    def __init__(self, root: Path) -> None:
        self.root = root
        for part in ("run", "home"):
            (root / part).mkdir(mode=0o700)
        self.env = os.environ | {
            "HOME": str(root / "home"),
            "XDG_RUNTIME_DIR": str(root / "run"),
            "XDG_STATE_HOME": str(root / "home/state"),
            "XDG_CONFIG_HOME": str(root / "home/config"),
        }
        self.path = root / "run/fleet-supervisor/control.sock"
        program = "import sys; from supervisor.warden import main; sys.exit(main())"
        self.daemon = subprocess.Popen([sys.executable, "-c", program, "--no-warden"], env=self.env)
        until(self.path.exists)

    def call(self, method: str, **params: object) -> dict[str, object]:
        """One request on a fresh connection, as the peer's client makes one too."""
        with socket.socket(socket.AF_UNIX) as sock, sock.makefile("rb") as answers:
            sock.connect(str(self.path))
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"cwd": str(self.root), **params}}
            sock.sendall(json.dumps(request).encode() + b"\n")
            answer = json.loads(answers.readline())
        return dict(answer["result"])

    def start(self) -> None:
        """All children."""
        lines = ['[project]\nname = "bench"\n[defaults]\nkind = "idle"\nstop_grace = "10s"']
        lines += ['[kinds.idle]\nprotocol = "lines"', f'command = ["sleep", "{self.marker}"]']
        lines += ['[kinds.loud]\nprotocol = "lines"', f"command = {json.dumps(loud())}"]
        lines += [f"[agents.n{number}]" for number in range(CHILDREN)]
        file = self.root / "agents.toml"
        file.write_text("\n".join(lines))
        self.call("up", file=str(file), content=file.read_text(), path=os.environ["PATH"])

    def status(self) -> None:
        """One status call that names every child."""
        self.call("tree")

    def victim(self) -> int:
        """The pid of one child."""
        agents = self.call("tree")["agents"]
        return int(agents[0]["pid"])  # type: ignore[index]  # the shape is DESIGN's

    def restart(self) -> None:
        """One child's end and its next run."""
        self.call("restart", agent="n0")

    def output(self) -> None:
        """A child that prints and ends."""
        agent = self.call("fork", kind="loud")["agent"]
        name = agent["id"]  # type: ignore[index]  # the shape is DESIGN's
        until(lambda: self.state(str(name)) == "gone")

    def state(self, agent: str) -> str:
        """One agent's state."""
        return str(self.call("tree", agent=agent)["agents"][0]["state"])  # type: ignore[index]  # as above

    def stop(self) -> None:
        """All children."""
        self.call("down")

    def close(self) -> None:
        """The daemon."""
        self.daemon.send_signal(signal.SIGTERM)
        self.daemon.wait()


class _Unix(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class _Transport(xmlrpc.client.Transport):
    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def make_connection(self, _host: object) -> HTTPConnection:
        return _Unix(self.path)


class Peer:
    """supervisord 4.3."""

    name = "supervisord"
    marker = "100002"

    def __init__(self, root: Path) -> None:
        self.root = root
        venv.create(root / "venv", with_pip=True)
        pip = [root / "venv/bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, PEER, "setuptools<81"], check=True)
        config = root / "supervisord.conf"
        config.write_text(self._config())
        self.daemon = subprocess.Popen([root / "venv/bin/supervisord", "-n", "-c", config], stdout=subprocess.DEVNULL)
        self.path = root / "s.sock"
        until(self.path.exists)
        transport = _Transport(str(self.path))
        self.rpc = xmlrpc.client.ServerProxy("http://localhost", transport=transport).supervisor

    def _config(self) -> str:
        head = f"[unix_http_server]\nfile={self.root}/s.sock\n[supervisord]\nlogfile={self.root}/d.log\n"
        head += f"pidfile={self.root}/d.pid\nminfds=4096\nchildlogdir={self.root}\n[rpcinterface:supervisor]\n"
        head += "supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface\n"
        idle = f"[program:idle]\ncommand=sleep {self.marker}\nnumprocs={CHILDREN}\nprocess_name=n%(process_num)d\n"
        idle += "autostart=false\nstartsecs=0\n"
        words = " ".join(f"'{word}'" if " " in word else word for word in loud())
        return head + idle + f"[program:loud]\ncommand={words}\nautostart=false\nautorestart=false\nstartsecs=0\n"

    def start(self) -> None:
        """All children."""
        self.rpc.startProcessGroup("idle", False)

    def status(self) -> None:
        """One status call that names every child."""
        self.rpc.getAllProcessInfo()

    def victim(self) -> int:
        """The pid of one child."""
        return int(self.rpc.getProcessInfo("idle:n0")["pid"])  # type: ignore[index,call-overload,arg-type]  # a plain dict

    def restart(self) -> None:
        """One child's end and its next run."""
        self.rpc.stopProcess("idle:n0")
        self.rpc.startProcess("idle:n0")

    def output(self) -> None:
        """A child that prints and ends."""
        self.rpc.startProcess("loud", False)
        until(lambda: self.rpc.getProcessInfo("loud")["statename"] == "EXITED")  # type: ignore[index,call-overload]  # as above

    def stop(self) -> None:
        """All children."""
        self.rpc.stopProcessGroup("idle")

    def close(self) -> None:
        """The daemon."""
        self.daemon.send_signal(signal.SIGTERM)
        self.daemon.wait()


def loud() -> list[str]:
    """A child that prints `LINES` lines of 100 bytes, as fast as it is read."""
    return [sys.executable, "-c", f"import sys; sys.stdout.write(('x' * 99 + chr(10)) * {LINES})"]


def measure(system: Ours | Peer) -> dict[str, float]:
    """Seconds (memory: megabytes) for each figure."""
    figures: dict[str, float] = {}
    begun = time.perf_counter()
    system.start()
    until(lambda: len(sleepers(system.marker)) == CHILDREN)
    figures["start"] = time.perf_counter() - begun
    process = psutil.Process(system.daemon.pid)
    begun = time.perf_counter()
    for _ in range(CALLS):
        system.status()
    figures["status"] = (time.perf_counter() - begun) / CALLS
    begun = time.perf_counter()
    system.restart()
    figures["restart"] = time.perf_counter() - begun
    begun = time.perf_counter()
    system.output()
    figures["output"] = time.perf_counter() - begun
    figures["memory"] = process.memory_info().rss / 1e6
    begun = time.perf_counter()
    system.stop()
    until(lambda: not sleepers(system.marker))
    figures["stop"] = time.perf_counter() - begun
    return figures


def main() -> None:
    """Both, and the ratios."""
    figures = []
    for kind in (Ours, Peer):
        root = Path(tempfile.mkdtemp(prefix="bench-"))
        try:
            system = kind(root)
            try:
                figures.append(measure(system))
            finally:
                system.close()
        finally:
            shutil.rmtree(root, ignore_errors=True)
    ours, peer = figures
    print(f"{'':10}{'ours':>12}{'peer':>12}{'ratio':>9}   {CHILDREN} children; seconds, memory in MB")
    for name, own in ours.items():
        print(f"{name:10}{own:12.4f}{peer[name]:12.4f}{peer[name] / own:9.1f}")


if __name__ == "__main__":
    main()
