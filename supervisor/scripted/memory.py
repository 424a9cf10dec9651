"""What the scripted agent remembers over its runs: one text file a session, lines only appended.

It must be written before the agent acts on an input, so that what came twice is seen to have come twice."""

from __future__ import annotations

import os
import time


class Memory:
    """One session. Its file holds `run N`, `input ID`, `again ID` and what scripts `note`, in order."""

    def __init__(self, home: str, session: str) -> None:
        self.session = session or f"scripted-{time.time_ns():x}"
        self._file = os.path.join(home, f"{self.session}.session") if home else ""
        self.known = bool(self._file) and os.path.exists(self._file)
        self.inputs: list[str] = []
        self.run = 1
        for line in self._lines():
            word, _, rest = line.partition(" ")
            if word == "input":
                self.inputs.append(rest)
            elif word == "run":
                self.run = int(rest) + 1
        self.note("run", str(self.run))

    def _lines(self) -> list[str]:
        if not self.known:
            return []
        with open(self._file, encoding="utf-8") as file:
            return file.read().splitlines()

    def note(self, word: str, rest: str) -> None:
        """Append one line."""
        if self._file:
            with open(self._file, "a", encoding="utf-8") as file:
                file.write(f"{word} {rest}\n")

    def take(self, name: str) -> bool:
        """Note an input; False when it had come before."""
        fresh = name not in self.inputs
        self.note("input" if fresh else "again", name)
        if fresh:
            self.inputs.append(name)
        return fresh
