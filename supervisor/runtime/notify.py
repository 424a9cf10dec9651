"""What a service manager is told (sd_notify(3)): ready, alive, leaving, a line for people. Silent if nobody asked."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import MutableMapping

#: Each sign of life while the daemon leaves asks for so much longer (microseconds): an agent's grace may be any length.
_LONGER = "EXTEND_TIMEOUT_USEC=10000000"


class Notify:
    """The socket named by NOTIFY_SOCKET, taken out of the environment so that no agent speaks for the daemon."""

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        self._address = environ.pop("NOTIFY_SOCKET", "")
        for name in ("WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"):
            environ.pop(name, None)
        self._status = ""
        self._leaving = False

    @property
    def asked(self) -> bool:
        """Does a service manager keep this daemon?"""
        return bool(self._address)

    def ready(self, status: str) -> None:
        """The daemon serves."""
        self._send("READY=1", f"MAINPID={os.getpid()}", *self._new(status))

    def alive(self, status: str) -> None:
        """Feed the watchdog; called by the loop itself, so that a stuck one starves it. While the daemon leaves, its
        time for that is fed likewise."""
        self._send(*([_LONGER] if self._leaving else []), "WATCHDOG=1", *self._new(status))

    def leaving(self, status: str) -> None:
        """The daemon leaves in order."""
        self._leaving = True
        self._send("STOPPING=1", _LONGER, *self._new(status))

    def failed(self, reason: str) -> None:
        """Last words: the manager shows them beside the exit status."""
        self._send(*self._new(reason))

    def _new(self, status: str) -> list[str]:
        said, self._status = self._status, " ".join(status.split())
        return [f"STATUS={self._status}"] if self._status != said else []

    def _send(self, *words: str) -> None:
        if not self._address or not words:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        # A manager that does not listen is its own affair; nothing here may wait for it.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.sendto("\n".join(words).encode(errors="replace"), address)
