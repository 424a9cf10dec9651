"""The kind `codex`: the agent CLI codex as an app-server, as the person installed and configured it. It never moves the
person's own codex: login, config.toml, skills and AGENTS.md are where codex reads them."""

from __future__ import annotations

from supervisor.core.spec import KindSpec
from supervisor.kinds import codex_grant
from supervisor.kinds.codex_exec import RecordedReader
from supervisor.kinds.codex_talk import CodexConversation
from supervisor.kinds.kind import Account, Launch, Reader, Reopening, Seat


class Codex:
    """codex as the person installed and configured it."""

    name = "codex"
    interruptible = True
    mark = b""
    once = False
    tells: frozenset[str] = frozenset({"window"})
    env: tuple[str, ...] = ("CODEX_*", "OPENAI_*", "AZURE_OPENAI_*")
    credential: tuple[str, ...] = ("CODEX_HOME", "CODEX_API_KEY", "OPENAI_API_KEY", "AZURE_OPENAI_API_KEY")
    account: Account | None = Account(
        ("$CODEX_HOME/auth.json", "~/.codex/auth.json"), rb'"(?:account_id|OPENAI_API_KEY)"\s*:\s*"([^"\\]{1,4096})"'
    )
    by_provider = False

    def launch(self, kind: KindSpec, seat: Seat) -> Launch:
        """All that differs from the person's own configuration is said in the conversation."""
        return Launch((*(kind.command or ("codex",)), "app-server"))

    def converse(self, seat: Seat) -> CodexConversation:
        return CodexConversation(seat)

    def recorded(self, seat: Seat) -> Reader:
        return RecordedReader(seat)

    def unenforced(self, seat: Seat) -> tuple[str, ...]:
        return codex_grant.unenforced(seat.tools)

    def reopen(self, kind: KindSpec, seat: Seat) -> Reopening:
        if not seat.session:
            return Reopening()
        argv = (*(kind.command or ("codex",)), "resume", seat.session)
        return Reopening(argv, f"~/.codex/sessions/*/*/*/rollout-*-{seat.session}.jsonl")


CODEX = Codex()
