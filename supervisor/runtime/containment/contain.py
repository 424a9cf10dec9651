"""Choosing how agents are contained: by cgroups where a v2 subtree is ours, else by the daemon as a subreaper."""

from __future__ import annotations

import os
from typing import Literal

from supervisor.runtime.containment import cgroupfs, marks
from supervisor.runtime.containment.cell import Containment
from supervisor.runtime.containment.cgroup import Cgroups
from supervisor.runtime.containment.subreaper import Subreaper


def contain(instance: int, want: Literal["auto", "cgroup", "warden"]) -> Containment:
    """`instance` is this daemon's number (1 to 2**31 - 1), never that of an earlier one whose processes may live.
    In every tier this process becomes a child subreaper. OSError where what is wanted cannot be had."""
    marks.compose(instance, 1)  # a number that a mark can hold
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        raise OSError("this kernel does not list children in /proc (CONFIG_PROC_CHILDREN)")
    if want != "warden":
        try:
            return _cgroups(instance)
        except OSError:
            if want == "cgroup":
                raise
    return Subreaper(instance)


def _cgroups(instance: int) -> Cgroups:
    base = cgroupfs.here()
    if base is None:
        raise OSError("no cgroup v2 mount shows the cgroup of this process")
    if not os.access(base.directory, os.W_OK) or not os.access(f"{base.directory}/cgroup.procs", os.W_OK):
        raise PermissionError(f"the cgroup {base.name} is not delegated to this user")
    return Cgroups(instance, base)
