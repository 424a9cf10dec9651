"""What `doctor` found: one thing looked at, how it stands, and what to do. It looks at nothing."""

from __future__ import annotations

OK, WARN, BAD = "ok", "warn", "bad"
#: From the least to the worst.
LEVELS = (OK, WARN, BAD)


class Finding:
    """`topic` groups what belongs together; `do` is "" where nothing is to be done; `notes` are worth knowing."""

    __slots__ = ("do", "level", "notes", "topic", "words")

    def __init__(self, level: str, topic: str, words: str, do: str = "", notes: tuple[str, ...] = ()) -> None:
        self.level = level
        self.topic = topic
        self.words = words
        self.do = do
        self.notes = notes

    def __repr__(self) -> str:
        return f"Finding({self.level!r}, {self.topic!r}, {self.words!r})"

    def plain(self) -> dict[str, object]:
        """The shape of `--json`."""
        return {
            "level": self.level, "topic": self.topic, "words": self.words, "do": self.do, "notes": [*self.notes],
        }  # fmt: skip


def worst(findings: list[Finding]) -> str:
    """The worst level among them."""
    return max((each.level for each in findings), key=LEVELS.index, default=OK)
