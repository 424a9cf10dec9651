"""Adds what is new to the golden journal: `python -m tests.journal.golden` appends every fact that it does not hold,
with its required fields alone and with all fields set. It never changes a record that stands there."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from types import UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import attrs

from supervisor.core.facts import Fact
from supervisor.runtime.journal.chain import Batch
from supervisor.runtime.journal.journal import Journal
from supervisor.runtime.journal.segments import NAME
from tests.facts import all_facts

GOLDEN = Path(__file__).with_name("golden.jsonl")
#: The same facts with every field that they had when they were written: what their records mean.
MEANING = Path(__file__).with_name("golden.meaning.jsonl")
PROJECT = "golden-0123abcd"


def sample(kind: Any, name: str, *, full: bool, depth: int = 0) -> Any:
    """One value for an annotation; with `full`, every field of it is set, away from its default."""
    parts = get_args(kind)
    if get_origin(kind) is Literal:
        return parts[-1]
    if get_origin(kind) in (Union, UnionType):
        return sample(parts[0], name, full=full, depth=depth)
    if get_origin(kind) is tuple:
        if depth > 3 and parts[-1] is Ellipsis:
            return ()
        return tuple(sample(part, name, full=full, depth=depth + 1) for part in parts if part is not Ellipsis)
    if attrs.has(kind):
        hints = get_type_hints(kind)
        wanted = [each for each in attrs.fields(kind) if full or each.default is attrs.NOTHING]
        return kind(**{each.name: sample(hints[each.name], each.name, full=full, depth=depth + 1) for each in wanted})
    return {str: f"{name} ä\n", int: 7, float: 2.5, bool: name not in ("wake", "talk")}[kind]


def meaning(facts: tuple[Fact, ...]) -> list[dict[str, Any]]:
    """The facts as JSON values with all their fields."""
    whole = [{"fact": type(fact).__name__, **attrs.asdict(fact)} for fact in facts]
    return cast("list[dict[str, Any]]", json.loads(json.dumps(whole)))


def main() -> None:
    """Append what is missing."""
    with TemporaryDirectory() as name:
        directory = Path(name)
        if GOLDEN.exists():
            (directory / NAME).write_bytes(GOLDEN.read_bytes())
        journal, past, _ = Journal.open(directory, PROJECT)
        known = {type(fact) for batch in past.batches for fact in batch.facts}
        added = []
        for kind in all_facts():
            if kind not in known:
                facts = (sample(kind, "", full=False), sample(kind, "", full=True))
                added.append(json.dumps({"seq": journal.seq + 1, "facts": meaning(facts)}, sort_keys=True) + "\n")
                journal.write([journal.encode(Batch(1750000000.25, "operator", facts))])
        journal.close(1750000001.5) if added else journal.abandon()
        GOLDEN.write_bytes((directory / NAME).read_bytes())
        with MEANING.open("a") as file:
            file.writelines(added)


if __name__ == "__main__":
    main()
