"""Fixtures: a user manager that stays for the test, root's and a plain user's."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.service.inside import Inside, booted
from tests.systemd import UserManager
from tests.unprivileged import Unprivileged


@pytest.fixture
async def inside(user_manager: UserManager, place: Path) -> AsyncIterator[Inside]:
    """Root's manager."""
    async with booted(user_manager, sys.executable, place) as found:
        yield found


@pytest.fixture
async def plain(user_manager: UserManager, unprivileged: Unprivileged) -> AsyncIterator[Inside]:
    """A plain user's manager: what is delegated to it is all it may write to."""
    user_manager.user, user_manager.home = "nobody", unprivileged.directory()
    os.chown(user_manager.home, unprivileged.uid, -1)
    room = unprivileged.directory()
    async with booted(user_manager, unprivileged.python, room) as found:
        yield found
