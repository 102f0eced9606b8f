"""The programs that do the work: how each is started, what it is told, and where it keeps its session."""

from __future__ import annotations

import json
import os
import shlex

from longboat.planting import planted
from longboat.spawns.ledger import Agent, Message, Spawn
from longboat.spawns.settings import Settings

PROVIDERS = ("claude", "codex", "gemini")
_FORMS = {
    "claude": ("--print", "--dangerously-skip-permissions"),
    "codex": (
        "exec",
        "--json",
        "--dangerously-bypass-approvals-and-sandbox",
        "--skip-git-repo-check",
    ),
    "gemini": ("--yolo",),
}
_LINES = 10
"""The marker stands in one of the first lines of a session file."""

_PROMPT = """\
spawn_marker: {mark}
You are {agent}. You were mentioned in a channel. Do the task, and say what came of it:
    longboat bridge send {channel} "your words"
Mention others (@name) only when they have to do something: each mention starts an agent. When the whole
task is complete, or only a person can go on, say so with @human: nobody is started after that. Then exit at
once.
CHANNEL: #{channel}
FROM: {sender}
MESSAGE: {message}
TASK:
{text}
"""


def provider_for(model: str) -> str:
    """Whose model this is."""
    if model.startswith("gpt-"):
        return "codex"
    return "gemini" if model.startswith("gemini") else "claude"


def command_line(settings: Settings, agent: Agent) -> list[str]:
    """The program and its words; the prompt is its standard input."""
    program = shlex.split(str(getattr(settings, agent.provider)))
    model = ["--model", agent.model] if agent.model else []
    return [*program, *_FORMS[agent.provider], *model]


def found(program: str) -> str | None:
    """Where a program is, or None."""
    if "/" in program:
        places = [program]
    else:
        path = os.environ.get("PATH", os.defpath)
        places = [os.path.join(folder or ".", program) for folder in path.split(os.pathsep)]
    return next((p for p in places if os.path.isfile(p) and os.access(p, os.X_OK)), None)


def prompt_for(mark: str, spawn: Spawn, message: Message) -> str:
    """Everything that a provider is told."""
    text = message.text.split("@")[0] if planted("text-cut-at-mention") else message.text
    return _PROMPT.format(
        mark=mark,
        agent=spawn.agent,
        channel=spawn.channel,
        sender=message.sender,
        message=message.id,
        text=text,
    )


def find_session(provider: str, mark: str, cwd: str, known: set[str]) -> tuple[str, str] | None:
    """Number and path of the session with this marker; files in ``known`` were looked at already."""
    for path in _session_files(provider, cwd):
        if path in known:
            continue
        session = _session_in(provider, path, mark)
        if session == "":  # somebody else's
            known.add(path)
        elif session is not None:
            return session, path
    return None


def _session_files(provider: str, cwd: str) -> list[str]:
    folder = cwd.replace("/", "-").replace(".", "-")
    places = {
        "claude": (".claude", "projects", folder),
        "codex": (".codex", "sessions"),
        "gemini": (".gemini", "tmp"),
    }
    top = os.path.join(os.path.expanduser("~"), *places[provider])
    if planted("session-by-newest"):
        top = top.removesuffix(f"/{folder}")
    found = [
        os.path.join(below, name)
        for below, _, names in os.walk(top)
        for name in names
        if name.endswith((".json", ".jsonl"))
    ]
    return (
        sorted(found, key=os.path.getmtime, reverse=True) if planted("session-by-newest") else found
    )


def _session_in(provider: str, path: str, mark: str) -> str | None:
    """The session's number when it carries the mark; nothing: it is another's; None: not written yet."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = (
                [file.readline() for _ in range(_LINES)] if path.endswith("l") else [file.read()]
            )
    except OSError:
        return None
    if not planted("session-by-newest") and not any(
        f"spawn_marker: {mark}\\n" in line for line in lines
    ):
        return "" if lines[0].endswith("\n") and len([one for one in lines if one]) > 1 else None
    try:
        first = json.loads(lines[0])
        if provider == "codex":
            return str(first["payload"]["id"])
        return str(first["sessionId"])
    except (ValueError, KeyError, TypeError):
        return None
