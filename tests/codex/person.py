"""A person with a codex of their own."""

from __future__ import annotations

from pathlib import Path

MODEL = "coder-model"
#: What codex lets a conversation have of the 100,000 tokens that it is configured with.
WINDOW = 95_000

_CONFIG = """
model = "{model}"
model_provider = "local"
model_context_window = 100_000

[features]
enable_request_compression = false

[model_providers.local]
name = "local"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 1
"""


def configure(home: Path, url: str, head: str = "") -> None:
    """Write `~/.codex/config.toml` as a person has it: a provider with a model."""
    place = home / ".codex"
    place.mkdir(parents=True)
    (place / "config.toml").write_text(head + _CONFIG.format(model=MODEL, url=url))
