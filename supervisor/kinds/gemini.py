"""The kind `gemini`: Google's agent CLI, a process a task, as the person installed and configured it. It never moves
the person's own gemini: login, settings, skills, extensions and GEMINI.md are where gemini reads them."""

from __future__ import annotations

from supervisor.core.spec import KindSpec
from supervisor.kinds import gemini_lines
from supervisor.kinds.gemini_record import GeminiRecord
from supervisor.kinds.gemini_talk import GeminiConversation
from supervisor.kinds.kind import Account, Launch, Reader, Reopening, Seat

#: The rules of a grant's tools, in the agent's home.
POLICY = "gemini-tools.toml"


class Gemini:
    """gemini as the person installed and configured it."""

    name = "gemini"
    interruptible = True
    mark = b""
    once = True
    tells: frozenset[str] = frozenset()
    env: tuple[str, ...] = ("GEMINI_*", "GOOGLE_*", "CLOUD_ML_REGION", "NODE_*")
    credential: tuple[str, ...] = (
        *("GEMINI_API_KEY", "GOOGLE_API_KEY", "GEMINI_CLI_HOME"),
        *("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT"),
    )
    account: Account | None = Account(
        ("$GEMINI_CLI_HOME/.gemini/google_accounts.json", "~/.gemini/google_accounts.json"),
        rb'"active"\s*:\s*"([^"\\]{1,400})"',
    )
    by_provider = False

    def launch(self, kind: KindSpec, seat: Seat) -> Launch:
        argv = [*(kind.command or ("gemini",)), "--skip-trust", "-y", "-o", "stream-json"]
        argv += ["-m", seat.spec.model] if seat.spec.model else []
        argv += ["--resume", seat.session] if seat.resume and seat.session else []
        files: tuple[tuple[str, str], ...] = ()
        if seat.tools is not None:
            files = ((POLICY, gemini_lines.policy(seat.tools)),)
            argv += ["--admin-policy", f"{seat.home}/{POLICY}"]
        argv += ["--allowed-mcp-server-names", ",".join(gemini_lines.servers(seat.tools))]
        # Otherwise gemini is two processes, and the first one keeps signals to itself.
        return Launch(tuple(argv), (("GEMINI_CLI_NO_RELAUNCH", "true"),), files)

    def converse(self, seat: Seat) -> GeminiConversation:
        return GeminiConversation(seat)

    def recorded(self, seat: Seat) -> Reader:
        return GeminiRecord(seat)

    def unenforced(self, seat: Seat) -> tuple[str, ...]:
        late = "`tokens` are known when a task ends: one that runs is not cut by what it uses itself"
        kept = "`model` is what gemini begins with; it may change to another by itself, which is booked under its name"
        return (late, *((kept,) if seat.spec.model else ()))

    def reopen(self, kind: KindSpec, seat: Seat) -> Reopening:
        """gemini finds it from the agent's directory only."""
        if not seat.session:
            return Reopening()
        argv = (*(kind.command or ("gemini",)), "--resume", seat.session)
        return Reopening(argv, f"~/.gemini/tmp/*/chats/session-*-{seat.session[:8]}.jsonl")


GEMINI = Gemini()
