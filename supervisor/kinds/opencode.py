"""The kind `opencode`: the agent CLI opencode, a process a task, as the person installed and configured it. It never
moves the person's own opencode: what it adds to their configuration is added for the run alone."""

from __future__ import annotations

import json
from urllib.parse import quote

from supervisor.core.spec import KindSpec
from supervisor.kinds import opencode_lines, opencode_plugin
from supervisor.kinds.kind import Account, Launch, Reader, Reopening, Seat
from supervisor.kinds.opencode_record import OpencodeRecord
from supervisor.kinds.opencode_talk import OpencodeConversation

#: Our plugin, in the agent's home.
PLUGIN = "opencode-fleet.js"
#: opencode takes what stands in it over the person's own files, key by key; lists of plugins and instructions grow.
CONTENT = "OPENCODE_CONFIG_CONTENT"
#: opencode would install its plugin interface into the person's configuration, and wait for that: there is no switch
#: for it, so it finds none to install. Our plugin takes these back before a tool or a server is started.
NPM = (("npm_config_@opencode-ai:registry", "http://127.0.0.1:9/"), ("npm_config_fetch_retries", "0"))


class Opencode:
    """opencode as the person installed and configured it."""

    name = "opencode"
    interruptible = True
    mark = b""
    once = True
    tells: frozenset[str] = frozenset({"cost"})
    env: tuple[str, ...] = ("OPENCODE_*", "*_API_KEY", "*_BASE_URL", "AWS_*", "GOOGLE_*", "AZURE_*", "CLOUDFLARE_*")
    credential: tuple[str, ...] = ("XDG_DATA_HOME", "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "*_API_KEY")
    account: Account | None = Account(
        ("$XDG_DATA_HOME/opencode/auth.json", "~/.local/share/opencode/auth.json"),
        rb'"(?:key|accountId)"\s*:\s*"([^"\\]{1,4096})"',
    )
    by_provider = True

    def launch(self, kind: KindSpec, seat: Seat) -> Launch:
        spec = seat.spec
        argv = [*(kind.command or ("opencode",)), "run", "--format", "json"]
        # opencode believes the environment's PWD, which is the daemon's.
        argv += ["--dir", spec.directory or seat.home]
        argv += ["-m", spec.model] if spec.model else []
        # A session without a title is given one by a model, in a call that no line tells of.
        argv += ["-s", seat.session] if seat.resume and seat.session else ["--title", f"{seat.name} ({seat.agent})"]
        content: dict[str, object] = {"plugin": [f"file://{quote(f'{seat.home}/{PLUGIN}')}"]}
        if spec.instructions:
            content["instructions"] = [spec.instructions]
        granted = None if seat.tools is None else opencode_lines.TOOLS.named(seat.tools)
        plugin = opencode_plugin.text(granted, opencode_lines.hidden(granted or ()), tuple(name for name, _ in NPM))
        return Launch(tuple(argv), ((CONTENT, json.dumps(content)), *NPM), ((PLUGIN, plugin),))

    def converse(self, seat: Seat) -> OpencodeConversation:
        return OpencodeConversation(seat)

    def recorded(self, seat: Seat) -> Reader:
        return OpencodeRecord(seat)

    def unenforced(self, seat: Seat) -> tuple[str, ...]:
        """The tools and what subagents use are our plugin's work; whoever takes it away is told."""
        replaced = any(name == CONTENT for name, _ in seat.spec.env)
        lost = f"`env` gives {CONTENT} in our place: tools are not held, and what subagents use is not counted"
        return (lost,) if replaced else ()

    def reopen(self, kind: KindSpec, seat: Seat) -> Reopening:
        if not seat.session:
            return Reopening()
        return Reopening((*(kind.command or ("opencode",)), "-s", seat.session), "~/.local/share/opencode/opencode.db")


OPENCODE = Opencode()
