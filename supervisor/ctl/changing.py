"""Verbs that change something: completes what was asked, sends it, and gives the receipt in words."""

from __future__ import annotations

import sys

from supervisor.ctl import plain
from supervisor.ctl.outcome import DONE, REFUSED, USAGE, Failure
from supervisor.ctl.refusal import shown
from supervisor.ctl.screen import STATE_STYLE
from supervisor.doors.verbs import METHODS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from supervisor.ctl.errand import Errand

_GRANTS = frozenset(param.name for param in METHODS["grant"].params if not param.positional)
_PAST = {
    "fork": "forked",
    "start": "started",
    "stop": "stopped",
    "restart": "restarted",
    "disband": "disbanded",
    "down": "down",
    "shutdown": "shut down",
}


def change(errand: Errand) -> int:
    """One verb, done and told."""
    verb = errand.asked.verb.name
    _complete(errand, verb)
    result = _left(errand) if verb == "shutdown" and not errand.params.get("plan") else errand.ask()
    if isinstance(result, dict) and "plan" in result:
        return errand.answer(result, plan(errand, verb, result["plan"]))
    if verb == "instruct":
        return _instructed(errand, result)
    unkillable = [each for each in result.get("ended") or () if each.get("unkillable")] if result else []
    code = errand.answer(result, _receipt(errand, verb, result or {}))
    if unkillable:
        for each in unkillable:
            pids = ", ".join(str(pid) for pid in each["unkillable"])
            print(f"supervisorctl: {errand.who(each)}: the kernel does not end {pids}", file=sys.stderr)
        return REFUSED
    return code


def _left(errand: Errand) -> Any:
    """It has left when this returns: what comes next may take its files away, or start another."""
    from supervisor.ctl.leaving import Watch

    with errand.client() as client, Watch(client) as watch:
        result = errand.ask(client=client)
        watch.gone(errand)
        return result


def _complete(errand: Errand, verb: str) -> None:
    """Read a text from stdin where `-` stands for it, and refuse what would ask for nothing."""
    for name in ("task", "text"):
        if errand.params.get(name) == "-":
            text = sys.stdin.buffer.read()
            try:
                errand.params[name] = text.decode()
            except UnicodeDecodeError as error:
                raise Failure(USAGE, f"the {name} on stdin is not UTF-8: byte {error.start + 1}") from None
        if name in errand.params and not errand.params[name].strip():
            raise Failure(USAGE, f"the {name} is empty")
    if verb == "grant" and not _GRANTS & errand.params.keys():
        raise Failure(USAGE, "name what it is to hold, such as --tokens 500k", "see: supervisorctl grant --help")


def _instructed(errand: Errand, result: Mapping[str, Any]) -> int:
    """With `--wait` the final text alone, so that it can be piped on; else the receipt."""
    status = result.get("status")
    if errand.asked.json or status is None:
        words = f"{errand.who(result.get('agent'))} has it as {errand.word(result.get('input'))}"
        return errand.answer(result, [words]) if status in {None, "done", "ok"} else _failed(errand, result)
    text = str(result.get("text") or "")
    if errand.own.get("raw"):
        sys.stdout.write(text if text.endswith("\n") or not text else text + "\n")
    elif text:
        errand.say(plain.clean(text.rstrip("\n"), ascii_only=not errand.screen.utf8, lines=True).split("\n"))
    return DONE if status in {"done", "ok"} else _failed(errand, result)


def _failed(errand: Errand, result: Mapping[str, Any]) -> int:
    if errand.asked.json:
        errand.json(result)
    why = errand.word(result.get("error")) or "it gave no reason"
    print(
        f"supervisorctl: {errand.who(result.get('agent'))}: {errand.word(result.get('status'))}: {why}", file=sys.stderr
    )
    return REFUSED


def _receipt(errand: Errand, verb: str, result: Mapping[str, Any]) -> Iterable[str]:
    who = errand.who(result.get("agent")) if result.get("agent") else ""
    if verb == "rename":
        yield f"{errand.word(result.get('was'))} is now {who}, record {result.get('seq')}"
        return
    if verb in {"approve", "deny"}:
        prompt = result.get("prompt") or {}
        question = plain.one_line(prompt.get("question"), ascii_only=not errand.screen.utf8)
        done = "approved" if result.get("allowed") else "denied"
        yield f"{who}: {done} {errand.word(prompt.get('id'))}" + (f": {question}" if question else "")
        return
    if verb == "grant":
        yield f"{who} now holds"
        yield from (f"  {line}" for line in holdings(errand, result.get("grant") or {}))
        return
    if verb == "shutdown":
        yield f"the daemon (pid {result.get('pid')}) has left; what is wanted runs again at its next start"
        return
    project = errand.word(result.get("project")) or "the project"
    waited = result.get("waited")
    after = f" after {shown('wall', waited)} in line" if isinstance(waited, (int, float)) and waited >= 1 else ""
    yield f"{who} {_PAST.get(verb, verb)}{after}" if who else f"{project} is {_PAST.get(verb, verb)}"
    for each in result.get("ended") or ():
        yield from _ended(errand, each, who)


def _ended(errand: Errand, each: Mapping[str, Any], main: str) -> Iterable[str]:
    """A line for each agent below the one that was named, and for each process that had to be killed."""
    who = errand.who(each)
    if who != main:
        yield f"  {who} ended"
    for killed in each.get("killed") or ():
        escaped = ", it had left containment" if killed.get("escaped") else ""
        name = errand.word(killed.get("argv0"))
        yield f"  {who}: ended what it left: {killed.get('pid')} {name} ({errand.word(killed.get('how'))}{escaped})"


def holdings(errand: Errand, grant: Mapping[str, Any]) -> Iterable[str]:
    """One line for each budget: what is held, and how much of it is left."""
    for field, account in grant.items():
        if not isinstance(account, dict):
            yield f"{errand.word(field)} {errand.word(account)}"
            continue
        held, free = account.get("held"), account.get("free")
        used = [(key, account.get(key)) for key in ("spent", "reserved", "over")]
        parts = ", ".join(f"{shown(field, value)} {key}" for key, value in used if value)
        left = f", {shown(field, free)} free" if free is not None and parts else ""
        yield f"{errand.word(field)} {shown(field, held)}" + (f": {parts}{left}" if parts else "")


def plan(errand: Errand, verb: str, what: Mapping[str, Any]) -> Iterable[str]:
    """What would end. Nothing has."""
    agents = what.get("agents") or ()
    processes = sum(len(agent.get("processes") or ()) for agent in agents)
    grace = what.get("grace")
    within = f", within {shown('wall', grace)}" if grace else ""
    if not agents:
        yield f"{verb} would end nothing"
        return
    yield f"{verb} would end {_many(len(agents), 'agent')} and {_many(processes, 'process')}{within}:"
    top = min(int(agent.get("depth") or 0) for agent in agents)
    for agent in agents:
        indent = "  " * (int(agent.get("depth") or 0) - top + 1)
        state = errand.word(agent.get("state"))
        state = errand.screen.style(state, STATE_STYLE.get(state, ""))
        yield f"{indent}{errand.who(agent)}  {state}{_unsettled(agent)}"
        for process in agent.get("processes") or ():
            stray = "  stray: outside its own ancestry" if process.get("stray") else ""
            yield errand.screen.style(
                f"{indent}  {process.get('pid')} {errand.word(process.get('argv0'))}{stray}", "dim"
            )
    yield "nothing was ended"


def _many(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "es" if word.endswith("s") else "s")


def _unsettled(agent: Mapping[str, Any]) -> str:
    open_ends = agent.get("unsettled") or {}
    parts = [_many(open_ends[key], key[:-1]) for key in ("tasks", "inputs") if open_ends.get(key)]
    parts += ["a running turn"] if open_ends.get("turn") else []
    return "  unsettled: " + ", ".join(parts) if parts else ""
