"""`python -m supervisor.conformance`: the walk for one kind, on the command line. It makes a place of its own and
removes it."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from supervisor.conformance.examine import scripted
from supervisor.conformance.lives import Lives
from supervisor.conformance.walk import GONE, LIMITS, VERBS, Subject, walked

#: What a scripted agent does in a walk: it says something, spends, and answers.
TASK = "script:\nsay at work\nspend input=10 output=5 cost=0.01\nreply done"
#: One in which it meets a limit.
LIMIT = 'script:\nspend input=10\nlimit quota "until=in 2 hours"\nfail 429'

#: The same as a program that does one task and ends.
ERRAND = Subject("errand", TASK, scripted, '[kinds.errand]\nprotocol = "scripted"\nonce = true\n', last=GONE)


def _subject(options: argparse.Namespace) -> Subject:
    declaration = Path(options.declaration).read_text("utf-8") if options.declaration else ""
    if options.kind == "scripted":
        return Subject(options.kind, options.task or TASK, scripted, declaration, options.limit or LIMIT)
    if options.kind == ERRAND.kind and not declaration:
        return ERRAND
    if not options.task:
        sys.exit("--task: say what its agents are to do; it has to come to an end by itself")
    return Subject(options.kind, options.task, None, declaration, options.limit or "")


def main() -> int:
    """0: all is as it must be; 1: something is not."""
    parser = argparse.ArgumentParser(prog="python -m supervisor.conformance", description=__doc__)
    parser.add_argument("--kind", default="scripted", help="the kind to walk (default: scripted)")
    parser.add_argument("--declaration", metavar="FILE", help="TOML that declares it: a [kinds.NAME] table")
    parser.add_argument("--task", help="what its agents are told to do")
    parser.add_argument("--limit", help="a task in which they meet a limit that stops their login")
    parser.add_argument("--tier", choices=("auto", "cgroup", "warden"), default="auto")
    parser.add_argument("--verb", action="append", choices=VERBS + LIMITS, help="only these; repeat for more")
    options = parser.parse_args()
    subject = _subject(options)
    wrong: list[str] = []
    count = 0
    for verb in options.verb or VERBS + (LIMITS if subject.limit else ()):
        with tempfile.TemporaryDirectory(prefix="fleet-") as room, Lives(Path(room), options.tier, os.environ) as lives:
            walk = walked(lives, subject, verb)
        print(f"{verb}: died at {len(walk.walked)} moments, {len(walk.missed)} did not come again", flush=True)
        for each in (*walk.wrong, *(f"did not come again: {moment}" for moment in walk.missed)):
            print(f"  {each}", flush=True)
        wrong += walk.wrong
        count += len(walk.walked)
    print(f"{count} moments, {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
