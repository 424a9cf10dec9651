"""Whether a file has changed is told as soon as it can be, and nobody waits for it."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import trio

from supervisor.doors.changed import Changed
from tests.house import eventually


async def test_a_file_is_read_once_there_is_a_thread_for_it(tmp_path: Path) -> None:
    file, content = tmp_path / "agents.toml", b"[project]\n"
    file.write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    changed, free = Changed(), threading.Event()
    limiter = trio.to_thread.current_default_thread_limiter()
    before, limiter.total_tokens = limiter.total_tokens, 1

    async def known() -> bool:
        return await changed.since(str(file), sha256) is False

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: trio.to_thread.run_sync(free.wait, abandon_on_cancel=True))
            await eventually(lambda: limiter.borrowed_tokens == 1)
            assert await changed.since(str(file), sha256) is None
            free.set()
            await eventually(known)
    finally:
        free.set()
        limiter.total_tokens = before
