"""What the scripted agent remembers over its runs: one text file a session, lines only appended.

It must be written before the agent acts on an input, so that what came twice is seen to have come twice, and before it
says what it spent, as a provider's bill is."""

from __future__ import annotations

import os
import time

#: What a call can have spent.
_COUNTS = ("input", "cache_read", "cache_write", "output", "reasoning", "calls")


class Memory:
    """One session. Its file holds `run N`, `told ID` (who it is), `input ID`, `again ID`, `spent KEY=NUMBER…` and what
    scripts `note`, in order. `spent` is the sum over the session."""

    def __init__(self, home: str, session: str) -> None:
        self.session = session or f"scripted-{time.time_ns():x}"
        self._file = os.path.join(home, f"{self.session}.session") if home else ""
        self.known = bool(self._file) and os.path.exists(self._file)
        self.inputs: list[str] = []
        self.spent: dict[str, float] = {}
        self.run = 1
        for line in self._lines():
            word, _, rest = line.partition(" ")
            if word == "input":
                self.inputs.append(rest)
            elif word == "run":
                self.run = int(rest) + 1
            elif word == "spent":
                self._add(dict(pair.split("=") for pair in rest.split()))
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

    def spend(self, numbers: dict[str, object]) -> bool:
        """Note what a call spent; False for numbers that no call can have, which are nobody's to remember."""
        said = {"calls": 1, **numbers}
        counts = [said.get(name, 0) for name in _COUNTS]
        cost = said.get("cost", 0)
        if any(type(count) is not int or count < 0 for count in counts) or type(cost) not in (int, float):
            return False
        if not 0 <= float(str(cost)) < 1e9 or float(str(said.get("reasoning", 0))) > float(str(said.get("output", 0))):
            return False
        known = {name: str(said[name]) for name in (*_COUNTS, "cost") if name in said}
        self.note("spent", " ".join(f"{name}={number}" for name, number in known.items()))
        self._add(known)
        return True

    def _add(self, numbers: dict[str, str]) -> None:
        for name, number in numbers.items():
            if name == "cost":
                self.spent[name] = round(self.spent.get(name, 0) + float(number), 9)
            else:
                self.spent[name] = int(self.spent.get(name, 0)) + int(number)

    def take(self, name: str) -> bool:
        """Note an input; False when it had come before."""
        fresh = name not in self.inputs
        self.note("input" if fresh else "again", name)
        if fresh:
            self.inputs.append(name)
        return fresh
