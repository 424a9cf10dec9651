"""The step `flood`: much output, well formed or not."""

from __future__ import annotations

from supervisor.scripted.agent import Agent
from supervisor.scripted.script import ScriptError, Step, count

#: What is written at once.
_CHUNK = 1 << 20


def flood(agent: Agent, step: Step) -> None:
    """`flood SIZE [unbroken] [binary] [stderr] [width=N]`: so many bytes, in lines unless unbroken."""
    words = step.rest.split()
    if not words:
        raise ScriptError("flood needs a size")
    size, width, newline, fill, fd = count(words[0]), 100, b"\n", b"x", 1
    for word in words[1:]:
        if word == "unbroken":
            newline = b"x"
        elif word == "binary":
            fill = b"\x88\xff\xfe\xc3"
        elif word == "stderr":
            fd = 2
        elif word.startswith("width="):
            width = max(1, count(word.removeprefix("width=")))
        else:
            raise ScriptError(f"flood knows no {word}")
    line = (fill * width)[: width - 1] + newline
    chunk = line * max(1, _CHUNK // width)
    while size > 0:
        agent.write(chunk[:size], fd)
        size -= len(chunk)
    if newline == b"x":
        agent.write(b"\n", fd)
