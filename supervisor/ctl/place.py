"""Where a client stands: which daemon it speaks to, which project it means. It looks, and changes nothing."""

from __future__ import annotations

import os

from supervisor.ctl.outcome import BAD_CONFIG, REFUSED, Failure
from supervisor.doors import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Place:
    """One caller's surroundings. `sockets` are tried in order."""

    __slots__ = ("cwd", "environ", "home", "sockets", "uid")

    def __init__(self, environ: Mapping[str, str], uid: int, cwd: str, home: str) -> None:
        self.environ = environ
        self.uid = uid
        self.cwd = cwd
        self.home = home
        self.sockets = paths.control_sockets(environ, uid, home)

    @classmethod
    def here(cls, environ: Mapping[str, str]) -> Place:
        """The place of this process. A working directory that was deleted is no reason to fail."""
        try:
            cwd = os.getcwd()
        except OSError:
            cwd = ""
        uid = os.geteuid()
        return cls(environ, uid, cwd, paths.passwd_home(uid))

    @property
    def state(self) -> str:
        return paths.state_dir(self.environ, self.home)

    @property
    def personal(self) -> str:
        return paths.personal_file(self.environ, self.home)

    def outside(self, what: str) -> None:
        """Refuse inside an agent what starts or keeps a daemon: the one that there is, is for all, and one that an
        agent started would end with that agent."""
        if agent := self.environ.get(paths.AGENT_VARIABLE, ""):
            raise Failure(
                REFUSED,
                f"this is inside agent {agent.rpartition(':')[2]} of a fleet, where {what} starts no daemon",
                "its own daemon keeps it and its children: supervisorctl whoami, supervisorctl fork",
                f"a person may do it from a shell of their own, without {paths.AGENT_VARIABLE} in the environment",
            )

    def nearest(self) -> str | None:
        """The nearest agents.toml from the working directory upwards."""
        at = self.cwd
        while at:
            file = os.path.join(at, paths.FILE)
            if os.path.isfile(file):
                return file
            above = os.path.dirname(at)
            if above == at:
                break
            at = above
        return None

    def file(self, named: str | None) -> str:
        """The agents.toml that is meant: the one named, else the nearest, else the personal one."""
        if named:
            path = os.path.abspath(os.path.join(self.cwd or "/", os.path.expanduser(named)))
            path = os.path.join(path, paths.FILE) if os.path.isdir(path) else path
            if not os.path.exists(path):
                raise Failure(BAD_CONFIG, f"there is no {path}", "write one: supervisorctl init " + named)
            return path
        found = self.nearest()
        if found is None and os.path.isfile(self.personal):
            found = self.personal
        if found is None:
            raise Failure(
                BAD_CONFIG,
                f"there is no {paths.FILE} here or above, and no {self.personal}",
                "write one: supervisorctl init",
                "or see a fleet at work first: supervisorctl demo",
            )
        return found

    def project(self, named: str) -> str:
        """What `--project` means on the wire: a path is made absolute, a name or an id is left alone."""
        path = os.path.join(self.cwd or "/", os.path.expanduser(named))
        if os.sep in named or named.endswith(".toml") or named in {".", "..", "~"}:
            path = os.path.abspath(path)
            return os.path.join(path, paths.FILE) if os.path.isdir(path) else path
        return named
