"""The kind `claude`: Claude Code, stream-json both ways, as the person installed and configured it. It never moves the
person's own claude: login, settings, skills and CLAUDE.md are where claude reads them."""

from __future__ import annotations

from supervisor.core.spec import KindSpec
from supervisor.kinds import claude_lines
from supervisor.kinds.claude_talk import ClaudeConversation
from supervisor.kinds.kind import Account, Launch, Reader, Reopening, Seat

_TALK = (
    "-p", "--output-format", "stream-json", "--verbose", "--input-format", "stream-json", "--replay-user-messages",
    "--permission-prompt-tool", "stdio",
)  # fmt: skip
_SERVERS = (
    "of an MCP server of which a tool is granted all tools are there: one that is not granted is refused when claude "
    "asks for it, and it does not ask where the person's own settings allow it"
)


class Claude:
    """claude as the person installed and configured it."""

    name = "claude"
    interruptible = True
    mark = b""
    once = False
    tells: frozenset[str] = frozenset({"cost", "window"})
    env: tuple[str, ...] = (
        "ANTHROPIC_*", "CLAUDE_*", "AWS_*", "GOOGLE_*", "CLOUD_ML_REGION", "API_TIMEOUT_MS", "BASH_DEFAULT_TIMEOUT_MS",
        "BASH_MAX_TIMEOUT_MS", "MAX_THINKING_TOKENS", "MCP_*", "DISABLE_*", "ENABLE_*",
    )  # fmt: skip
    credential: tuple[str, ...] = (
        "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR",
    )  # fmt: skip
    account: Account | None = Account(
        ("$CLAUDE_CONFIG_DIR/.claude.json", "~/.claude.json"),
        rb'"oauthAccount"\s*:\s*\{[^{}]*?"accountUuid"\s*:\s*"([^"\\]{1,200})"',
    )
    by_provider = False

    def launch(self, kind: KindSpec, seat: Seat) -> Launch:
        """The conversation's id is claude's own: with one of ours a run that ended before anything was said could
        neither be resumed nor begun again."""
        resumed = ("--resume", seat.session) if seat.resume and seat.session else ()
        model = ("--model", seat.spec.model) if seat.spec.model else ()
        said = ("--append-system-prompt", seat.instructions) if seat.instructions else ()
        tools = claude_lines.tools(seat.tools)
        return Launch((*(kind.command or ("claude",)), *_TALK, *resumed, *model, *tools, *said))

    def converse(self, seat: Seat) -> ClaudeConversation:
        return ClaudeConversation(seat)

    def recorded(self, seat: Seat) -> Reader:
        return ClaudeConversation(seat)

    def unenforced(self, seat: Seat) -> tuple[str, ...]:
        return (_SERVERS,) if seat.tools is not None and claude_lines.part(seat.tools) else ()

    def reopen(self, kind: KindSpec, seat: Seat) -> Reopening:
        if not seat.session:
            return Reopening()
        argv = (*(kind.command or ("claude",)), "--resume", seat.session)
        return Reopening(argv, f"~/.claude/projects/*/{seat.session}.jsonl")


CLAUDE = Claude()
