"""All kinds by the name of their protocol."""

from __future__ import annotations

from supervisor.kinds.claude import CLAUDE
from supervisor.kinds.codex import CODEX
from supervisor.kinds.gemini import GEMINI
from supervisor.kinds.kind import Kind
from supervisor.kinds.lines import LINES
from supervisor.kinds.opencode import OPENCODE
from supervisor.kinds.pi import PI
from supervisor.kinds.qwen import QWEN
from supervisor.kinds.scripted import SCRIPTED

KINDS: dict[str, Kind] = {kind.name: kind for kind in (LINES, SCRIPTED, PI, CLAUDE, CODEX, QWEN, GEMINI, OPENCODE)}
