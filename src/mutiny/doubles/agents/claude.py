"""The agent double `claude`: a stand-in for Claude Code that real orchestrators cannot tell apart.

It starts thousands of times in a campaign, so this module and what it imports at the top stay
free of everything that is slow to load (subprocess, pathlib, dataclasses, typing).
"""

from __future__ import annotations

import json
import os
import time

from mutiny.doubles.agents import processes
from mutiny.doubles.agents.agent import DEFAULT_MODEL, Agent, AgentExit, Turn
from mutiny.doubles.agents.records import CannotRecord, Log, Transcript, new_session_id
from mutiny.doubles.agents.terminal import HungUp, Interrupted, Terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

VERSION = "2.0.0 (Claude Code)"
EXIT_CANNOT_WORK = 70
"""Exit code when the double itself cannot do its job, so no verdict may rest on it."""

# Which flags take values, for those that orchestrators use. One value each:
_ONE_VALUE = frozenset(
    {
        *("--output-format", "--input-format", "--model", "--fallback-model", "--session-id"),
        *("--settings", "--setting-sources", "--permission-mode", "--permission-prompt-tool"),
        *("--system-prompt", "--append-system-prompt", "--agents", "--max-turns"),
        *("--max-budget-usd", "--json-schema"),
    }
)
# All words up to the next flag, as the real agent reads them:
_MANY_VALUES = frozenset(
    {
        *("--add-dir", "--allowedTools", "--allowed-tools", "--disallowedTools"),
        *("--disallowed-tools", "--mcp-config", "--plugin-dir", "--betas", "--tools"),
    }
)
_NO_VALUE = frozenset(
    {
        *("-p", "--print", "-c", "--continue", "-v", "--version", "-h", "--help", "-d", "--debug"),
        *("--verbose", "--ide", "--fork-session", "--dangerously-skip-permissions"),
        *("--allow-dangerously-skip-permissions", "--strict-mcp-config"),
        *("--include-partial-messages", "--replay-user-messages", "--no-session-persistence"),
    }
)
_OUTPUT_FORMATS = ("text", "json", "stream-json")


class Options:
    """The command line of the agent, as far as the double cares."""

    def __init__(self) -> None:
        self.print_mode = False
        self.version = False
        self.help = False
        self.resume: str | None = None
        self.resume_latest = False
        self.session: str | None = None
        self.model = DEFAULT_MODEL
        self.output_format = "text"
        self.settings: list[str] = []
        self.prompt: str | None = None


def parse_arguments(arguments: Sequence[str]) -> Options:
    """Read the command line; flags that the double does not know are accepted and ignored."""
    options = Options()
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        if word == "--":
            options.prompt = waiting[0] if waiting else options.prompt
            break
        if not word.startswith("-") or word == "-":
            options.prompt = word
            continue
        flag, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        values = [value] if equals else _take_values(flag, waiting)
        _apply(options, flag, values)
    return options


def _take_values(flag: str, waiting: list[str]) -> list[str]:
    """Remove the values of a flag from the front of the waiting words."""
    values: list[str] = []

    def next_is_value() -> bool:
        return bool(waiting) and (not waiting[0].startswith("-") or waiting[0] == "-")

    if flag in _ONE_VALUE:
        return [waiting.pop(0)] if waiting else []
    if flag in _MANY_VALUES:
        while next_is_value():
            values.append(waiting.pop(0))
    elif flag in ("-r", "--resume"):
        if next_is_value():
            values.append(waiting.pop(0))
    elif flag not in _NO_VALUE and next_is_value() and len(waiting) > 1:
        # An unknown flag: a word between it and more words is its value, the last word is not,
        # because there the prompt stands.
        values.append(waiting.pop(0))
    return values


def _apply(options: Options, flag: str, values: list[str]) -> None:
    value = values[0] if values else ""
    if flag in ("-p", "--print"):
        options.print_mode = True
    elif flag in ("-v", "--version"):
        options.version = True
    elif flag in ("-h", "--help"):
        options.help = True
    elif flag in ("-c", "--continue"):
        options.resume_latest = True
    elif flag in ("-r", "--resume"):
        options.resume = value or None
        options.resume_latest = not value
    elif flag == "--session-id":
        options.session = value
    elif flag == "--model":
        options.model = value
    elif flag == "--output-format":
        options.output_format = value
    elif flag == "--settings":
        options.settings.append(value)


def main(arguments: Sequence[str], doubles_dir: str, name: str = "claude") -> int:
    """Run the double under a name, and return its exit code."""
    _open_standard_files()
    options = parse_arguments(arguments)
    if options.version or options.help:
        _write_all(1, f"{VERSION}\n" if options.version else "Usage: claude [options] [prompt]\n")
        return 0
    if options.output_format not in _OUTPUT_FORMATS:
        valid = ", ".join(_OUTPUT_FORMATS)
        _write_all(2, f"error: --output-format {options.output_format}: choose from {valid}\n")
        return 1
    interactive = not options.print_mode and os.isatty(0)
    terminal = Terminal(0 if interactive else None, 1)
    try:
        if interactive:
            # Before the first record: who sees that may type at once.
            terminal.open()
        if not os.path.isdir(doubles_dir):
            raise CannotRecord(f"{doubles_dir}: no such directory (set MUTINY_DOUBLES)")
        try:
            cwd = os.getcwd()
        except FileNotFoundError as error:
            raise CannotRecord(f"the working directory is gone: {error}") from error
        return _run(options, arguments, cwd, doubles_dir, terminal, name)
    except CannotRecord as error:
        _write_all(2, f"claude (double): cannot record what happens: {error}\n")
    finally:
        terminal.close()
    return EXIT_CANNOT_WORK


def _open_standard_files() -> None:
    """Give files 0 to 2 to /dev/null where the caller closed them, or our own would land there."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)


def _run(
    options: Options,
    arguments: Sequence[str],
    cwd: str,
    doubles_dir: str,
    terminal: Terminal,
    name: str,
) -> int:
    """Start the session that the options ask for and stay with it to its end."""
    session, source = _choose_session(options, cwd)
    worker = os.environ.get("MUTINY_WORKER") or os.path.basename(cwd)
    log = Log(doubles_dir, worker, session)
    log.write("start", argv=list(arguments), cwd=cwd, interactive=terminal.interactive)
    try:
        processes.rename(name, arguments)
    except OSError as error:
        log.problem(f"the process keeps the name of its interpreter: {error}")
    agent = Agent(
        cwd=cwd,
        doubles_dir=doubles_dir,
        log=log,
        terminal=terminal,
        model=options.model,
        settings=options.settings,
    )
    if agent.next_behaviour()[0] == "exit-at-start":
        log.write("exit", reason="exit-at-start", exit_code=1)
        return 1
    if source == "resume" and not agent.transcript.exists():
        _write_all(2, f"No conversation found with session ID: {session}\n")
        log.write("exit", reason="unknown session", exit_code=1)
        return 1
    if terminal.interactive:
        return _interactive(agent, terminal, source, options.prompt)
    return _print(agent, terminal, source, options)


def _choose_session(options: Options, cwd: str) -> tuple[str, str]:
    """Return session id and start source (``startup`` or ``resume``)."""
    if options.resume:
        return options.resume, "resume"
    if options.resume_latest:
        folder = os.path.dirname(Transcript(cwd, "", "").path)
        files = list(os.scandir(folder)) if os.path.isdir(folder) else []
        if files:
            latest = max(files, key=lambda entry: entry.stat().st_mtime_ns)
            return latest.name.removesuffix(".jsonl"), "resume"
    return options.session or new_session_id(), "startup"


def _interactive(agent: Agent, terminal: Terminal, source: str, prompt: str | None) -> int:
    """Talk with the terminal until someone leaves."""
    if prompt:
        terminal.prompts.append(prompt)
    reason, code = _converse(agent, terminal, source)
    agent.log.write("exit", reason=reason, exit_code=code)
    return code


def _converse(agent: Agent, terminal: Terminal, source: str) -> tuple[str, int]:
    """Take prompts one after the other; return why the conversation ended and the exit code."""
    try:
        agent.start(source)
        while True:
            terminal.show_prompt()
            prompt = terminal.next_prompt()
            if prompt in (None, "/exit", "/quit"):
                agent.end("prompt_input_exit")
                return "end of input" if prompt is None else "command", 0
            if prompt == "/logout":
                agent.end("logout")
                return "logout", 0
            terminal.show_submitted(prompt)
            if prompt == "/clear":
                agent.clear()
                continue
            turn = agent.turn(prompt)
            if turn.reply:
                terminal.show(f"\r\x1b[K● {turn.reply}\r\n")
    except Interrupted:
        agent.end("prompt_input_exit")
        return "interrupt", 0
    except HungUp as hung_up:
        agent.end("other")
        return hung_up.reason, hung_up.exit_code
    except AgentExit as leaving:
        return leaving.reason, leaving.exit_code


def _print(agent: Agent, terminal: Terminal, source: str, options: Options) -> int:
    """Do one turn without a terminal and print its result."""
    began = time.monotonic()
    try:
        prompt = options.prompt
        if prompt is None or agent.next_behaviour()[0] == "read-stdin":
            text = _read_stdin(terminal)
            prompt = text if prompt is None else prompt
        if not prompt.strip():
            _write_all(2, "Error: no prompt: give it as an argument or on standard input\n")
            agent.log.write("exit", reason="no prompt", exit_code=1)
            return 1
        agent.start(source)
        if options.output_format == "stream-json":
            _write_json({"type": "system", "subtype": "init", **_init_fields(agent)})
        stays = agent.next_behaviour()[0] == "stays"
        turn = agent.turn(prompt.strip())
        if turn.outcome == "interrupted":
            reason, code = "interrupt", 130
        else:
            reason, code = "end of turn", 1 if turn.outcome == "failed" else 0
            _print_result(agent, options.output_format, turn, began)
            while stays:
                terminal.wait(None)
        agent.end("other")
    except Interrupted:
        agent.end("other")
        reason, code = "interrupt", 130
    except HungUp as hung_up:
        agent.end("other")
        reason, code = hung_up.reason, hung_up.exit_code
    except AgentExit as leaving:
        reason, code = leaving.reason, leaving.exit_code
    except BrokenPipeError:
        reason, code = "nobody reads the output", 1
    agent.log.write("exit", reason=reason, exit_code=code)
    return code


def _init_fields(agent: Agent) -> dict[str, object]:
    return {
        "session_id": agent.log.session,
        "cwd": agent.cwd,
        "model": agent.model,
        "permissionMode": "bypassPermissions",
        "tools": ["Bash", "Edit", "Read", "Write"],
    }


def _print_result(agent: Agent, output_format: str, turn: Turn, began: float) -> None:
    if output_format == "text":
        _write_all(1, f"{turn.reply}\n")
        return
    if output_format == "stream-json":
        message = agent.transcript.assistant_message(turn.reply)
        _write_json({"type": "assistant", "session_id": agent.log.session, "message": message})
    failed = turn.outcome == "failed"
    _write_json(
        {
            "type": "result",
            "subtype": "error_during_execution" if failed else "success",
            "is_error": failed,
            "duration_ms": int((time.monotonic() - began) * 1000),
            "num_turns": 1,
            "result": turn.reply,
            "session_id": agent.log.session,
            "total_cost_usd": 0.0,
            "usage": {"input_tokens": 1, "output_tokens": max(1, len(turn.reply.split()))},
        }
    )


def _read_stdin(terminal: Terminal) -> str:
    """Read standard input to its end while signals stay heard."""
    data = b""
    while True:
        terminal.wait(None, 0)
        piece = os.read(0, 65536)
        if not piece:
            return data.decode("utf-8", "replace")
        data += piece


def _write_json(value: dict[str, object]) -> None:
    _write_all(1, json.dumps(value) + "\n")


def _write_all(fd: int, text: str) -> None:
    data = text.encode("utf-8", "replace")
    while data:
        data = data[os.write(fd, data) :]
