"""The kind `pi`: the agent CLI pi in RPC mode, as the person installed and configured it. It never moves the person's
own pi: login, settings, skills and AGENTS.md are where pi reads them."""

from __future__ import annotations

from supervisor.core.spec import KindSpec
from supervisor.kinds import pi_lines
from supervisor.kinds.kind import Account, Launch, Reader, Reopening, Seat
from supervisor.kinds.pi_talk import PiConversation


class Pi:
    """pi as the person installed and configured it."""

    name = "pi"
    interruptible = True
    mark = b""
    once = False
    tells: frozenset[str] = frozenset({"cost", "window"})
    env: tuple[str, ...] = ("PI_*", "*_API_KEY", "*_BASE_URL")
    credential: tuple[str, ...] = ("PI_CODING_AGENT_DIR", "*_API_KEY")
    account: Account | None = Account(
        ("$PI_CODING_AGENT_DIR/auth.json", "~/.pi/agent/auth.json"),
        rb'"(?:key|accountId)"\s*:\s*"([^"\\]{1,4096})"',
    )
    by_provider = True

    def launch(self, kind: KindSpec, seat: Seat) -> Launch:
        session = ("--session-id", seat.session) if seat.session else ()
        model = ("--model", seat.spec.model) if seat.spec.model else ()
        said = ("--append-system-prompt", seat.spec.instructions) if seat.spec.instructions else ()
        argv = (*(kind.command or ("pi",)), "--mode", "rpc", *session, *model, *pi_lines.tools(seat.tools), *said)
        return Launch(argv)

    def converse(self, seat: Seat) -> PiConversation:
        return PiConversation(seat)

    def recorded(self, seat: Seat) -> Reader:
        """Both modes print the same events; `--mode json` begins with the session."""
        return PiConversation(seat, recorded=True)

    def unenforced(self, seat: Seat) -> tuple[str, ...]:
        told = ["`paths` and `env`: its tools see what the person sees"]
        if seat.tools is None or "bash" in seat.tools:
            told.append("with `bash` it runs whatever the person could: what else is missing, commands can do")
        if "--no-mcp" not in pi_lines.tools(seat.tools):
            told.append(
                "pi starts all MCP servers of the person's or none; tools that are not granted it does not offer"
            )
        return (*told, "a model that an extension of pi's changes to")

    def reopen(self, kind: KindSpec, seat: Seat) -> Reopening:
        argv = (*(kind.command or ("pi",)), "--session-id", seat.session) if seat.session else ()
        return Reopening(argv, f"~/.pi/agent/sessions/*/*_{seat.session}.jsonl" if seat.session else "")


PI = Pi()
