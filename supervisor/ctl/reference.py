"""Writes docs/commands.md from the table of verbs: `python -m supervisor.ctl.reference > docs/commands.md`."""

from __future__ import annotations

import sys

from supervisor.ctl.completion import options
from supervisor.ctl.outcome import MEANING
from supervisor.ctl.own import grouped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from supervisor.doors.verbs import Param, Verb

_HEAD = """# Commands

Written by `python -m supervisor.ctl.reference`; a test holds it to what the client does.

`supervisorctl VERB [--json] [--project P]`. The project is the one whose directory you stand in (the nearest
`agents.toml` upwards, else your personal one); an agent's is its own. Counts are written `300k` or `2M`, durations
`10s` or `1h30m`, sums in US dollars. Without `--json` answers are for people and may change; with it they are one JSON
value of a stable shape, and a refusal is `{"refused": {...}}` on stdout besides the words on stderr.

`disband AGENT` is also a command of its own. `FLEET_SOCKET` names the one socket to speak to, instead of those where a
daemon is looked for; `NO_COLOR` and `COLUMNS` are respected.
"""


def reference() -> str:
    """The whole page."""
    parts = [_HEAD, "## Exit codes\n", "| code | means |\n|---|---|"]
    parts += [f"| {code} | {words} |" for code, words in MEANING.items()]
    for title, verbs in grouped():
        parts.append(f"\n## {title[0].upper()}{title[1:]}")
        parts += [_verb(verb) for verb in verbs]
    return "\n".join(parts) + "\n"


def _verb(verb: Verb) -> str:
    positional = [param for param in verb.params if param.positional and not param.hidden]
    words = "".join(f" {param.name.upper()}" if param.required else f" [{param.name.upper()}]" for param in positional)
    lines = [f"\n### {verb.name}\n", f"`supervisorctl {verb.name}{words}`: {verb.summary}.\n"]
    lines += [f"    {verb.example}\n"]
    rows = [(param.name.upper(), param) for param in positional]
    # `--json` and `--project` are everywhere, and said once.
    rows += [(_option(param), param) for param in options(verb) if param.name not in {"json", "project"}]
    if rows:
        lines.append("| | |\n|---|---|")
        lines += [f"| `{name}` | {param.help} |" for name, param in rows]
    return "\n".join(lines)


def _option(param: Param) -> str:
    value = {"flag": "", "duration": " TIME", "money": " USD", "count": " N", "agent": " AGENT"}
    return param.option + value.get(param.shape, f" {param.name.upper()}") + ("…" if param.shape == "texts" else "")


if __name__ == "__main__":
    sys.stdout.write(reference())
