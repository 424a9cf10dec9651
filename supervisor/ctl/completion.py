"""Completion for bash, zsh and fish, written from the table of verbs. Agents' names are asked for while one types."""

from __future__ import annotations

import sys

from supervisor.ctl.branches import below
from supervisor.ctl.outcome import DONE, USAGE, Failure
from supervisor.ctl.own import CLIENT, EXTRA, KNOWN, common
from supervisor.doors.verbs import METHODS, TIMEOUT, VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from supervisor.ctl.errand import Errand
    from supervisor.doors.verbs import Param, Verb

SHELLS = ("bash", "zsh", "fish")
#: What else a parameter can be, where the table says only that it is a text.
_WORDS = {"restart": "never on-failure always", "may_fork": "yes no", "shell": " ".join(SHELLS)}
#: A name with anything else in it would have to be quoted; its id completes as well.
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_NAMES_WITHIN = 2.0


def complete(errand: Errand) -> int:
    """Print a script, or (for the scripts) the names of all agents."""
    if errand.params.get("names"):
        for name in names(errand):
            print(name)
        return DONE
    shell = errand.params.get("shell")
    if shell not in SHELLS:
        raise Failure(USAGE, "name a shell: " + ", ".join(SHELLS), f"such as: {errand.asked.verb.example}")
    sys.stdout.write({"bash": bash, "zsh": zsh, "fish": fish}[shell]())
    return DONE


def names(errand: Errand) -> Iterable[str]:
    """Names and ids. While one types, nothing is to fail, nor to wait long."""
    try:
        with errand.client() as client:
            answer = client.call("tree", errand.wire({}), _NAMES_WITHIN)
    except Failure:
        return
    for agent in below(answer.get("agents") or ()):
        for name in (str(agent.get("name")), str(agent.get("id"))):
            if name and set(name) <= _SAFE and not name.startswith("-"):
                yield name


def options(verb: Verb) -> list[Param]:
    """Every option of a verb, as the parser has them."""
    timeout = (TIMEOUT,) if verb.waits else ()
    every = (*verb.params, *EXTRA.get(verb.name, ()), *timeout, *common(verb))
    return [param for param in every if not param.positional and not param.hidden]


def _valued(shape: str) -> list[str]:
    """Options that are followed by something of this shape, whichever verb has them."""
    every = [param for verb in KNOWN.values() for param in options(verb)]
    return sorted({param.option for param in every if param.shape == shape})


def _positional(shape: str) -> list[str]:
    """Verbs whose first word is of this shape."""
    firsts = [(verb.name, [param for param in verb.params if param.positional][:1]) for verb in KNOWN.values()]
    return [name for name, first in firsts if first and first[0].shape == shape]


def _worded() -> list[tuple[str, str]]:
    """Options that take one of a few words."""
    every = [param for verb in KNOWN.values() for param in options(verb)]
    return sorted({(param.option, _WORDS[param.name]) for param in every if param.name in _WORDS})


def _bash_case(pattern: str, words: str) -> str:
    """One branch that completes with what `compgen` makes of `words`."""
    return f'        {pattern}) COMPREPLY=($(compgen {words} -- "$word")); return ;;'


def bash() -> str:
    """For bash."""
    agents = '-W "$(supervisorctl completion --names 2>/dev/null)"'
    valued = [_bash_case(option, f'-W "{words}"') for option, words in _worded()]
    valued += [_bash_case("|".join(_valued("agent")), agents), _bash_case("|".join(_valued("path")), "-f")]
    first = [_bash_case("|".join(_positional("agent")), agents), _bash_case("|".join(_positional("path")), "-f")]
    first.append(_bash_case("completion", f'-W "{" ".join(SHELLS)}"'))
    per_verb = [
        f"        {name}) options='{' '.join(param.option for param in options(verb))}' ;;"
        for name, verb in KNOWN.items()
    ]
    return _BASH.format(
        verbs=" ".join(KNOWN),
        valued="\n".join(valued),
        per_verb="\n".join(per_verb),
        first="\n".join(first),
    )


_BASH = """# bash completion for supervisorctl and disband; made by `supervisorctl completion bash`
_supervisorctl() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" verb="" options="" at=1
    COMPREPLY=()
    if [ "${{COMP_WORDS[0]##*/}}" = disband ]; then
        verb=disband
    else
        while [ $at -lt $COMP_CWORD ]; do
            case "${{COMP_WORDS[at]}}" in
                --project) at=$((at + 1)) ;;
                -*) ;;
                *) verb="${{COMP_WORDS[at]}}"; break ;;
            esac
            at=$((at + 1))
        done
    fi
    case "$before" in
{valued}
    esac
    if [ -z "$verb" ]; then
        COMPREPLY=($(compgen -W "{verbs} --help --version --json --project" -- "$word"))
        return
    fi
    case "$verb" in
{per_verb}
    esac
    if [[ "$word" == -* ]]; then
        COMPREPLY=($(compgen -W "$options --help" -- "$word"))
        return
    fi
    case "$verb" in
{first}
    esac
}}
complete -F _supervisorctl supervisorctl disband
"""


def _zsh_text(text: str) -> str:
    """Within single quotes, and within the brackets of a specification."""
    return text.replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def _zsh_action(param: Param) -> str:
    if param.name in _WORDS:
        return f":{param.name}:({_WORDS[param.name]})"
    action = {"agent": "_supervisorctl_agents", "path": "_files"}.get(param.shape, " ")
    return f":{param.name}:{action}"


def _zsh_verb(verb: Verb) -> str:
    specs = []
    for param in options(verb):
        repeat = "*" if param.shape == "texts" else ""
        value = "" if param.shape == "flag" else _zsh_action(param)
        specs.append(f"'{repeat}{param.option}[{_zsh_text(param.help)}]{value}'")
    specs += [f"'{'' if param.required else ':'}{_zsh_action(param)}'" for param in verb.params if param.positional]
    return f"        {verb.name}) _arguments " + " ".join(specs) + " ;;"


def zsh() -> str:
    """For zsh."""
    described = "\n".join(f"        '{name}:{_zsh_text(verb.summary)}'" for name, verb in KNOWN.items())
    cases = "\n".join(_zsh_verb(verb) for verb in KNOWN.values())
    return f"""#compdef supervisorctl disband
# zsh completion for supervisorctl and disband; made by `supervisorctl completion zsh`
_supervisorctl_agents() {{
    local -a agents
    agents=(${{(f)"$(supervisorctl completion --names 2>/dev/null)"}})
    compadd -a agents
}}
_supervisorctl_verb() {{
    case "$1" in
{cases}
    esac
}}
_supervisorctl() {{
    local -a verbs
    verbs=(
{described}
    )
    if [[ "$service" == disband ]]; then
        _supervisorctl_verb disband
    elif (( CURRENT == 2 )); then
        _describe verb verbs
    else
        local verb="$words[2]"
        shift words
        (( CURRENT-- ))
        _supervisorctl_verb "$verb"
    fi
}}
if [ "$funcstack[1]" = _supervisorctl ]; then
    _supervisorctl "$@"
else
    compdef _supervisorctl supervisorctl disband
fi
"""


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _fish_option(condition: str, param: Param) -> str:
    flag = f"-s {param.option[1:]} -l {param.name}" if not param.option.startswith("--") else f"-l {param.option[2:]}"
    value = ""
    if param.shape != "flag":
        value = {"agent": " -x -a '(__supervisorctl_agents)'", "path": " -r -F"}.get(param.shape, " -x")
        value = f" -x -a {_fish_quoted(_WORDS[param.name])}" if param.name in _WORDS else value
    return f"complete -c {condition} {flag}{value} -d {_fish_quoted(param.help)}"


def fish() -> str:
    """For fish."""
    lines = [
        "# fish completion for supervisorctl and disband; made by `supervisorctl completion fish`",
        "function __supervisorctl_agents",
        "    supervisorctl completion --names 2>/dev/null",
        "end",
        "complete -c supervisorctl -f",
        "complete -c disband -f -a '(__supervisorctl_agents)'",
    ]
    for verb in (*VERBS, *CLIENT):
        summary = _fish_quoted(verb.summary)
        lines.append(f"complete -c supervisorctl -n __fish_use_subcommand -a {verb.name} -d {summary}")
        condition = f"supervisorctl -n '__fish_seen_subcommand_from {verb.name}'"
        lines += [_fish_option(condition, param) for param in options(verb)]
        positional = [param for param in verb.params if param.positional][:1]
        lines += _fish_words(condition, positional)
    lines += [_fish_option("disband", param) for param in options(METHODS["disband"])]
    return "\n".join(lines) + "\n"


def _fish_words(condition: str, positional: Sequence[Param]) -> list[str]:
    """What the verb's first word is completed with."""
    for param in positional:
        if param.name in _WORDS:
            return [f"complete -c {condition} -a {_fish_quoted(_WORDS[param.name])}"]
        if param.shape == "agent":
            return [f"complete -c {condition} -a '(__supervisorctl_agents)'"]
        if param.shape == "path":
            return [f"complete -c {condition} -F"]
    return []
