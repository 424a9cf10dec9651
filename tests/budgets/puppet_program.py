"""An agent that does what a test tells it: prints lines, runs commands, ends. It takes orders from a FIFO in its home,
one JSON value a line, and writes down each line of its stdin. Standard library only; run with -IS."""

import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

HOME = os.environ["FLEET_HOME"]


def listen() -> None:
    with open(f"{HOME}/heard", "ab", buffering=0) as heard:
        heard.writelines(sys.stdin.buffer)
        heard.write(b"\n")


def answer(number: int, value: object) -> None:
    with open(f"{HOME}/answer.new", "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.rename(f"{HOME}/answer.new", f"{HOME}/answer-{number}")


def obey(number: int, word: str, given: Any) -> None:
    if word == "say":
        for line in given:
            os.write(1, line.encode("utf-8", "surrogateescape") + b"\n")
        answer(number, True)
    elif word == "run":
        done = subprocess.run(given, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        answer(number, [done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")])
    elif word == "at_term":
        last = "".join(line + "\n" for line in given).encode()
        signal.signal(signal.SIGTERM, lambda *_: (os.write(1, last), os._exit(0)))
        answer(number, True)
    elif word == "exit":
        os._exit(given)
    elif word == "die":
        os.kill(os.getpid(), given)


def main() -> None:
    orders = f"{HOME}/orders-{os.getpid()}"
    os.mkfifo(orders)
    fifo = os.open(orders, os.O_RDWR)
    threading.Thread(target=listen, daemon=True).start()
    os.rename(orders, f"{HOME}/orders")
    with os.fdopen(fifo, "rb") as lines:
        for line in lines:
            obey(*json.loads(line))


main()
