"""What a service manager is told (sd_notify(3)): ready, alive, stopping, and one line for people. Silent where nobody
asked."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import MutableMapping


class Notify:
    """The socket named by NOTIFY_SOCKET, taken out of the environment so that no agent speaks for the daemon."""

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        self._address = environ.pop("NOTIFY_SOCKET", "")
        for name in ("WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"):
            environ.pop(name, None)
        self._status = ""

    def ready(self) -> None:
        """The daemon serves."""
        self._send(f"READY=1\nMAINPID={os.getpid()}")

    def alive(self, status: str) -> None:
        """Feed the watchdog, with a status line if it is new; called by the loop, so that a stuck one starves it."""
        told = "" if status == self._status else f"\nSTATUS={status}"
        self._status = status
        self._send(f"WATCHDOG=1{told}")

    def stopping(self) -> None:
        """The daemon leaves in order."""
        self._send("STOPPING=1")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        # A manager that does not listen is its own affair; nothing here may wait for it.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.sendto(message.encode(), address)
