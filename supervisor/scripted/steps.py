"""What each step of a script does to the agent that plays it: one function a word, one table."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Callable

from supervisor.scripted import flood, processes
from supervisor.scripted.agent import Agent, AskedError
from supervisor.scripted.script import ScriptError, Step, count, seconds, value


def _say(agent: Agent, step: Step) -> None:
    agent.say("status", text=agent.fill(step.rest))


def _print(agent: Agent, step: Step) -> None:
    agent.write(agent.fill(step.rest).encode() + b"\n")


def _bytes(agent: Agent, step: Step) -> None:
    agent.write(bytes.fromhex(step.rest) + b"\n")


def _error(agent: Agent, step: Step) -> None:
    agent.write(agent.fill(step.rest).encode() + b"\n", 2)


def _garble(agent: Agent, _step: Step) -> None:
    agent.write(b'{"fleet":"usage","scope":"call","input":12\n')


def _options(text: str) -> tuple[list[str], dict[str, object]]:
    words, options = [], {}
    for part in shlex.split(text):
        key, equals, given = part.partition("=")
        if equals:
            options[key] = value(given)
        else:
            words.append(part)
    return words, options


def _spend(agent: Agent, step: Step) -> None:
    words, numbers = _options(agent.fill(step.rest))
    scope = words[0] if words else "call"
    agent.calls += 1
    usage: dict[str, object] = {"scope": scope}
    if scope != "total":
        usage["id"] = f"{agent.memory.session}.{agent.memory.run}.{agent.calls}"
    if agent.model:
        usage["model"] = agent.model
    if scope == "call" and not numbers.keys() & {"id", "epoch"} and agent.memory.spend(numbers):
        usage["epoch"] = agent.memory.session
    agent.last_usage = usage | numbers
    agent.say("usage", **agent.last_usage)


def _again(agent: Agent, _step: Step) -> None:
    agent.say("usage", **agent.last_usage)


def _reply(agent: Agent, step: Step) -> None:
    agent.reply = agent.fill(step.rest)


def _fail(agent: Agent, step: Step) -> None:
    raise ScriptError(agent.fill(step.rest) or "failed as its script says")


def _done(agent: Agent, step: Step) -> None:
    words, options = _options(agent.fill(step.rest))
    summary = " ".join(words)
    agent.reply = agent.reply or summary
    agent.say("done", **({"summary": summary} | options))


def _limit(agent: Agent, step: Step) -> None:
    words, options = _options(agent.fill(step.rest))
    agent.say("limited", **({"sort": words[0] if words else "quota", "text": " ".join(words[1:])} | options))


def _block(agent: Agent, step: Step) -> None:
    on, _, question = agent.fill(step.rest).partition(" ")
    agent.say("blocked", on=on or "person", question=question)
    if agent.once:
        raise AskedError
    message = agent.inbox.next()
    agent.memory.take(message["id"])
    agent.inputs.append(message["id"])
    agent.say("turn", state="started", inputs=[message["id"]])
    agent.values["answer"] = message["text"]


def _prompt(agent: Agent, step: Step) -> None:
    name, _, question = agent.fill(step.rest).partition(" ")
    agent.say("blocked", on="person", question=question, prompt=name)


def _withdraw(agent: Agent, step: Step) -> None:
    agent.say("withdrawn", prompt=agent.fill(step.rest))


def _answer(agent: Agent, name: str) -> None:
    while name not in agent.inbox.answers:
        agent.inbox.wait(None)
    said = agent.inbox.answers.pop(name)
    agent.values |= {"answer": "yes" if said.get("allow") else "no", "why": said.get("text") or ""}


def _wait(agent: Agent, step: Step) -> None:
    what, _, path = step.rest.partition(" ")
    if what == "forever":
        agent.inbox.sleep(float("inf"))
    elif what == "input":
        while not agent.inbox.waiting:
            agent.inbox.wait(None)
    elif what == "answer":
        _answer(agent, agent.fill(path))
    elif what == "file":
        while not os.path.exists(path):
            agent.inbox.sleep(0.02)
    else:
        agent.inbox.sleep(seconds(step.rest))


def _repeat(agent: Agent, step: Step) -> None:
    for number in range(count(step.rest)):
        agent.values["n"] = str(number + 1)
        agent.play("\n".join(step.body or []))


def _fork(agent: Agent, step: Step) -> None:
    name, _, rest = agent.fill(step.rest).partition(" ")
    processes.control(agent, ["fork", "--name", name, *shlex.split(rest), *_task(step)])


def _instruct(agent: Agent, step: Step) -> None:
    processes.control(agent, ["instruct", *shlex.split(agent.fill(step.rest)), *_task(step)])


def _task(step: Step) -> list[str]:
    return [] if step.body is None else ["\n".join(["script:", *step.body])]


def _ctl(agent: Agent, step: Step) -> None:
    processes.control(agent, shlex.split(agent.fill(step.rest)))


def _expect(agent: Agent, step: Step) -> None:
    if step.rest not in agent.outcome:
        raise ScriptError(f"expected {step.rest}, got {' '.join(agent.outcome)}")


def _run(agent: Agent, step: Step) -> None:
    code, output = processes.run(agent, ["/bin/sh", "-c", step.rest])
    agent.values["output"] = output.strip()
    agent.say("status", text=output or f"exit {code}")


def _leave(agent: Agent, step: Step) -> None:
    way, _, command = step.rest.partition(" ")
    agent.values["pid"] = str(processes.leave(way, shlex.split(command) or ["sleep", "1000"]))
    agent.say("status", text=f"left {way} {agent.values['pid']}")


def _ignore(agent: Agent, step: Step) -> None:
    for what in step.rest.split():
        if what == "stdin":
            agent.inbox.deaf = True
        else:
            signal.signal(_signal(what), signal.SIG_IGN)


def _linger(agent: Agent, step: Step) -> None:
    lasting = seconds(step.rest)

    def clean_up(_number: int, _frame: object) -> None:
        agent.say("status", text="cleaning up")
        processes.pause(lasting)
        agent.say("status", text="clean")
        os._exit(0)

    signal.signal(signal.SIGTERM, clean_up)


def _wedge(agent: Agent, _step: Step) -> None:
    agent.inbox.deaf = True
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        signal.pause()


def _freeze(_agent: Agent, _step: Step) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _exit(_agent: Agent, step: Step) -> None:
    os._exit(int(step.rest or "0"))


def _die(_agent: Agent, step: Step) -> None:
    number = _signal(step.rest or "KILL")
    if number not in {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _note(agent: Agent, step: Step) -> None:
    agent.memory.note("note", agent.fill(step.rest))


def _signal(name: str) -> signal.Signals:
    try:
        return signal.Signals[f"SIG{name}"]
    except KeyError:
        raise ScriptError(f"no such signal: {name}") from None


STEPS: dict[str, Callable[[Agent, Step], None]] = {
    "say": _say, "print": _print, "bytes": _bytes, "error": _error, "garble": _garble, "flood": flood.flood,
    "spend": _spend, "again": _again, "reply": _reply, "fail": _fail, "done": _done, "block": _block,
    "wait": _wait, "repeat": _repeat, "fork": _fork, "instruct": _instruct, "ctl": _ctl, "expect": _expect,
    "run": _run, "leave": _leave, "ignore": _ignore, "linger": _linger, "wedge": _wedge, "freeze": _freeze,
    "exit": _exit, "die": _die, "note": _note, "limit": _limit, "prompt": _prompt, "withdraw": _withdraw,
}  # fmt: skip
