"""The kind `qwen`: Qwen Code, stream-json both ways, as the person installed and configured it. It never moves the
person's own qwen: login, settings, skills and QWEN.md are where qwen reads them."""

from __future__ import annotations

from supervisor.core.spec import KindSpec
from supervisor.kinds import qwen_lines
from supervisor.kinds.kind import Account, Launch, Reader, Reopening, Seat
from supervisor.kinds.qwen_talk import QwenConversation


class Qwen:
    """qwen as the person installed and configured it."""

    name = "qwen"
    interruptible = True
    mark = b""
    once = False
    tells: frozenset[str] = frozenset({"window"})
    env: tuple[str, ...] = (
        "QWEN_*", "OPENAI_*", "DASHSCOPE_*", "BAILIAN_*", "ANTHROPIC_*", "GEMINI_*", "GOOGLE_*", "*_API_KEY",
    )  # fmt: skip
    credential: tuple[str, ...] = ("*_API_KEY", "OPENAI_BASE_URL", "QWEN_HOME")
    account: Account | None = None
    by_provider = False

    def launch(self, kind: KindSpec, seat: Seat) -> Launch:
        resumed = ("--resume", seat.session) if seat.resume and seat.session else ()
        model = ("--model", seat.spec.model) if seat.spec.model else ()
        said = ("--append-system-prompt", seat.instructions) if seat.instructions else ()
        talk = ("--input-format", "stream-json", "--output-format", "stream-json")
        return Launch((*(kind.command or ("qwen",)), *talk, *resumed, *model, *qwen_lines.tools(seat.tools), *said))

    def converse(self, seat: Seat) -> QwenConversation:
        return QwenConversation(seat)

    def recorded(self, seat: Seat) -> Reader:
        return QwenConversation(seat)

    def unenforced(self, seat: Seat) -> tuple[str, ...]:
        return ()

    def reopen(self, kind: KindSpec, seat: Seat) -> Reopening:
        if not seat.session:
            return Reopening()
        argv = (*(kind.command or ("qwen",)), "--resume", seat.session)
        return Reopening(argv, f"~/.qwen/projects/*/chats/{seat.session}.jsonl")


QWEN = Qwen()
