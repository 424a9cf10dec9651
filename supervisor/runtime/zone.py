"""The zone in which times without one are meant on this machine. Decides nothing."""

from __future__ import annotations

import time
from datetime import timedelta, timezone, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

LOCALTIME = Path("/etc/localtime")


def zone(named: str = "") -> tzinfo:
    """`named` is a program's TZ; without one it is the machine's. What no file tells is taken as it is now, without
    changes of the clock."""
    try:
        if named:
            return ZoneInfo(named.removeprefix(":"))
        with LOCALTIME.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError, KeyError):
        return timezone(timedelta(seconds=time.localtime().tm_gmtoff))
