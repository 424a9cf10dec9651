"""An agent that leaves processes behind in every way there is. Run with the ways as arguments: prints `way pid` a line,
then waits for its stdin to end. Standard library only; it is run without the project."""

import os
import signal
import subprocess
import sys

SLEEP = ["sleep", "1000"]


def tell(way: str, pid: int) -> None:
    os.write(1, f"{way} {pid}\n".encode())


def double(way: str, argv: list[str], env: dict[str, str]) -> None:
    """A child of a child that ended, in a session of its own; told once its program is in place."""
    read, write = os.pipe()  # what holds it closes it as it begins its program
    if (middle := os.fork()) == 0:
        os.setsid()
        pid = os.fork()
        if pid == 0:
            os.execvpe(argv[0], argv, env)  # noqa: S606  as agents do
        os.write(write, str(pid).encode())
        os._exit(0)
    os.close(write)
    os.waitpid(middle, 0)
    with open(read) as told:
        tell(way, int(told.read()))


def deaf(way: str) -> None:
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        tell(way, os.getpid())
        os.execvp(SLEEP[0], SLEEP)  # noqa: S606  as above


def storm() -> None:
    """Processes that fork and end all the time, each in a new session, with short-lived ones beside them."""
    for _ in range(3):
        if os.fork() == 0:
            while True:
                os.setsid()
                if os.fork():
                    os._exit(0)
                if os.fork() == 0:
                    os.execvp("sleep", ["sleep", "0.02"])  # noqa: S606  as above


def main(ways: list[str]) -> None:
    for way in ways:
        match way:
            case "child":
                tell(way, subprocess.Popen(SLEEP).pid)
            case "grandchild":
                subprocess.Popen(["sh", "-c", f"sleep 1000 & echo {way} $!; wait"])
            case "session":
                tell(way, subprocess.Popen(SLEEP, start_new_session=True).pid)
            case "double":
                double(way, SLEEP, {"PATH": os.environ["PATH"]})
            case "deaf":
                deaf(way)
            case "storm":
                storm()
                tell(way, os.getpid())
            case "cgroup":
                pid = subprocess.Popen(SLEEP).pid
                with open(os.environ["ELSEWHERE"], "w") as procs:
                    procs.write(str(pid))
                tell(way, pid)
            case "exit":
                return
    sys.stdin.read()


main(sys.argv[1:])
