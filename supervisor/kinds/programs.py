"""The agent CLIs as programs on a person's machine: what `doctor` looks for. One row each; what is not known stays
empty. It looks at nothing itself."""

from __future__ import annotations

from attrs import frozen


@frozen
class Program:
    """`name` is the command and the kind; `tested` the version that the tests drive; `package` what npm calls it;
    `node` the oldest Node.js that runs it, where it is a script of Node's. It is logged in where one of the variables
    `keys` is set (a `*` at the beginning is anything) or one of `files` is there: below the directory that the variable
    `home[0]` names, else `home[1]`. `login` says how to; `traps` are sentences for people."""

    name: str
    tested: str
    package: str
    home: tuple[str, str]
    files: tuple[str, ...]
    keys: tuple[str, ...]
    login: str
    node: tuple[int, ...] = ()
    traps: tuple[str, ...] = ()


RELAUNCHES = "it starts itself again as another process: a signal to the first alone reaches no worker"

PROGRAMS: tuple[Program, ...] = (
    Program(
        "claude", "2.1.332", "@anthropic-ai/claude-code", ("CLAUDE_CONFIG_DIR", "~/.claude"), (".credentials.json",),
        (
            *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
            *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"),
        ),
        login="claude, and in it /login",
        traps=("a refused login is tried ten times before it gives up",),
    ),
    Program(
        "codex", "0.171.0", "@openai/codex", ("CODEX_HOME", "~/.codex"), ("auth.json",),
        ("CODEX_API_KEY", "OPENAI_API_KEY"),
        login="codex login",
        node=(16,),
        traps=("without a login it waits for the network and says nothing",),
    ),
    Program(
        "pi", "1.6.0", "@earendil-works/pi-coding-agent", ("PI_CODING_AGENT_DIR", "~/.pi/agent"),
        ("auth.json", "models.json"), ("*_API_KEY",),
        login="pi, and in it /login",
        node=(22, 19),
        traps=("installed by npm under an older Node.js it is silently an older pi",),
    ),
    Program(
        "gemini", "0.61.0", "@google/gemini-cli", ("GEMINI_CLI_HOME", "~"), (".gemini/oauth_creds.json",),
        ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"),
        login="gemini, and in it /auth",
        node=(20,),
        traps=(
            *(RELAUNCHES, "it prints nothing while it retries, for a minute and more"),
            "it deletes conversations, unless general.sessionRetention.enabled is false in its settings",
        ),
    ),
    Program(
        "opencode", "1.18.33", "opencode-ai", ("XDG_DATA_HOME", "~/.local/share"), ("opencode/auth.json",),
        ("*_API_KEY",),
        login="opencode auth login",
        traps=("it prints nothing while it retries, for a minute and more",),
    ),
    Program(
        "qwen", "0.24.4", "@qwen-code/qwen-code", ("", "~/.qwen"), ("oauth_creds.json",),
        ("OPENAI_API_KEY", "DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY", "BAILIAN_TOKEN_PLAN_API_KEY"),
        login="qwen, and in it /auth",
        node=(22,),
        traps=(RELAUNCHES, "it prints nothing while it retries, for a minute and more"),
    ),
)  # fmt: skip
