"""What a run's program is told: bytes that wait until it takes them, and the end of its stdin. It knows nothing of what
they mean, and never waits where the caller has not asked it to."""

from __future__ import annotations

import trio

from supervisor.runtime import points

#: So much is offered at a time (bytes).
CHUNK = 65536


class Stdin:
    """`write` is its task; the other methods do not wait, but for `sent` and `room`."""

    def __init__(self, stream: trio.abc.SendStream) -> None:
        self._stream = stream
        self._unsent = bytearray()
        self._to_send = trio.Event()
        self._sent = trio.Event()
        self._taken = trio.Event()
        self._deaf = False
        #: its end was said, or will be after the last byte
        self.ending = False

    @property
    def waiting(self) -> int:
        """How many bytes the program has not taken."""
        return len(self._unsent)

    def put(self, data: bytes) -> None:
        """Queue bytes; what nobody hears any more is dropped."""
        if data and not self._deaf:
            self._unsent += data
            self._to_send.set()

    def end(self) -> None:
        """Close it after the last byte that is queued."""
        self.ending = True
        self._to_send.set()

    async def write(self) -> None:
        """The task: it goes on while the run is being ended."""
        while not (self.ending and not self._unsent):
            await self._to_send.wait()
            self._to_send = trio.Event()
            try:
                while data := bytes(self._unsent[:CHUNK]):
                    await self._stream.send_all(data)
                    del self._unsent[: len(data)]
                    self._taken.set()
                    points.reach("handed")
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                break  # it closed its stdin; what it did not read stays undelivered with it
        await self._stream.aclose()

    def hush(self) -> None:
        """Nothing more goes to it."""
        self._deaf = True
        self._unsent.clear()
        self.release()
        self._sent.set()

    def release(self) -> None:
        """Let whoever waits for room go on."""
        self._taken.set()

    async def sent(self) -> None:
        """Wait until all was taken and it is closed."""
        await self._sent.wait()

    async def room(self) -> None:
        """Wait until the program takes some of it."""
        self._taken = trio.Event()
        await self._taken.wait()
