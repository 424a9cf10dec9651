"""The text of a first agents.toml, for what is installed; and of the fleet that is shipped. Stdlib only, since the
client imports it. It looks for nothing and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files

#: The agent programs that a main can be started with, by kind.
SPOKEN = ("pi",)

_HEAD = """\
# The agents of this project. `supervisorctl up` accepts this file and runs it,
# `supervisorctl tree` shows who runs, `supervisorctl reload` takes up a change.
# Every key: docs/configuration.md

[project]
# name = "…"               # default: the name of this directory
agent_talk = "mains"       # who hears whom: "mains", "instance" or "project"

[defaults]                 # for every agent that does not say otherwise
stop_grace = "10s"         # how long a branch may take to end by itself
"""

_MAIN = """
[agents.{name}]            # {found}
kind = "{kind}"
description = "the front door of this project"
directory = "."
# model = "…"              # default: the program's own
# task = "Read AGENTS.md, then wait for requests."
restart = "on-failure"

[agents.{name}.grant]      # what it holds, and the most that its children can get
tokens = "2M"
descendants = 8
depth = 2
fork = true
# tools = ["read", "edit", "bash", "grep"]
# cost = 5.00              # US dollars
# wall = "8h"
"""

_ROLE = """
# What an agent may fork by name: supervisorctl fork "Read the diff" --role reviewer
[roles.reviewer]
kind = "{kind}"
description = "reads, changes nothing"
max_tasks = 4              # released after this many tasks
grant = {{ tools = ["read", "grep"], tokens = "100k", fork = false }}
"""

_EXAMPLE = """
# No agent program that this version speaks with was found in PATH. `scripted` needs
# none: it plays a script, and shows what a fleet is like.
[agents.example]
kind = "scripted"
description = "plays a script, so that there is something to see"
max_tasks = "unlimited"
task = '''
script:
repeat 200:
  say turn $n of a scripted agent
  spend input=900 cache_read=4000 output=120
  wait 3s
end
done The script is over
'''
grant = { tokens = "5M", descendants = 4, depth = 1, fork = true }

# Any program that prints status lines is an agent (docs/status-lines.md):
# [kinds.mine]
# command = ["./mine", "--jsonl"]
# protocol = "lines"
"""


def starter(found: Mapping[str, str]) -> str:
    """A commented first file. `found` has the path of each agent program that is installed, by its name."""
    spoken = [kind for kind in SPOKEN if kind in found]
    parts = [_HEAD]
    parts += [_MAIN.format(name=f"{kind}-main", kind=kind, found=_comment(found[kind])) for kind in spoken]
    parts.append(_ROLE.format(kind=spoken[0]) if spoken else _EXAMPLE)
    later = sorted(kind for kind in found if kind not in SPOKEN)
    if later:
        parts.append("\n# Installed here too; kinds for them are to come:\n")
        parts += [f"#   {_comment(kind)}: {_comment(found[kind])}\n" for kind in later]
    return "".join(parts)


def shipped() -> str:
    """The scripted fleet that comes with the package, as the content of its agents.toml."""
    return (files("supervisor") / "demo" / "agents.toml").read_text(encoding="utf-8")


def _comment(text: str) -> str:
    """Text that stays within a comment, whatever a path is called."""
    return text if text.isprintable() else json.dumps(text)
