"""The command `mutiny`: one module a verb, loaded only when it is used.

Start-up is a part of every answer, so this module imports nothing and knows each command only by its
name, its module and one line of help; click is loaded when there is help to show or a mistake to tell.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutiny.cli.words import Command

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run", "Run scenarios against a target and stop at the first broken promise."),
    "explore": ("explore", "Run sequences that the model allows, with faults mixed in."),
    "sweep": ("sweep", "Break one operation at every system call."),
    "race": ("race", "Let commands compete: every order, then many rounds."),
    "load": ("load", "Many commands: cost, growth, graphs, payloads, bursts."),
    "experiment": ("experiment", "Run experiments in YAML: steady state, method, rollback."),
    "replay": ("replay", "Repeat a journal or a minimal replay step by step."),
    "minimise": ("minimise", "Find the shortest sequence that breaks the same rule."),
    "report": ("report", "Show the report of a run again."),
    "target": ("target", "List, check and create targets."),
    "scenarios": ("scenarios", "List the scenarios by contract, one line each."),
    "plants": ("plants", "List the bugs that can be planted into longboat."),
    "rules": ("rules", "List the promises that are checked."),
    "doctor": ("doctor", "Say what this machine can isolate and inject."),
}
ALIASES = {"shrink": "minimise", "minimize": "minimise"}
FEW_COLLECTIONS = 50_000
"""So many new objects before Python looks for garbage; its own 700 is meant for long runs."""
COMPLETION = "_MUTINY_COMPLETE"
"""A shell asks click for completions through this variable."""


def find_command(name: str) -> Command | None:
    """A command by its name or its other name."""
    name = ALIASES.get(name, name)
    if name not in COMMANDS:
        return None
    module = __import__(f"mutiny.cli.{COMMANDS[name][0]}", fromlist=["command"])
    command: Command = module.command
    return command


def main(argv: list[str] | None = None) -> int:
    """Entry point. As a program (without `argv`) it does not return."""
    # What a command loads stays to its end: looking through it for garbage finds nothing.
    gc.set_threshold(FEW_COLLECTIONS)
    if argv is not None:
        return _outcome(argv)
    from mutiny import stopping

    stopping.listen()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # whoever started Mutiny has closed it
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  to the end
    try:
        code = _outcome(sys.argv[1:])
    except stopping.Stopped:  # between the last word and the end
        code = stopping.exit_code()
    _leave(code)
    return code


def _leave(code: int) -> None:
    """End at once when everything is written: to take the interpreter apart can outlast the command."""
    threads = sys.modules.get("threading")
    if threads is not None and any(
        not thread.daemon for thread in threads.enumerate() if thread is not threads.main_thread()
    ):
        return  # Python waits for it
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (
        OSError,
        ValueError,
    ):  # a reader that is gone, a closed stream: Python's own end tells it
        return
    os._exit(code)


def _outcome(words: list[str]) -> int:
    """Every outcome becomes an exit code in this one place; a program that listens hears why."""
    from mutiny.cli.words import Documents

    told: list[str] = []
    before = Documents.printed

    def say(line: str) -> None:
        told.append(line)
        _say(line)

    code = _result(words, say)
    if told and "--json" in words and Documents.printed == before:
        from mutiny.cli.envelope import tell_error

        tell_error(words, code, told[-1])
    return code


def _result(words: list[str], say: Callable[[str], None]) -> int:
    from mutiny import stopping

    try:
        answer = _call(words)
        stopping.obey()
        return answer if isinstance(answer, int) else 0
    except KeyboardInterrupt:
        say(f"{stopping.reason()}; the box is gone, what was written stays")
        return stopping.exit_code()
    except Exception as error:  # noqa: BLE001  nothing may end as "bug found" but a bug
        from mutiny.cli.ending import crashed, drop_output, reader_gone
        from mutiny.errors import MutinyError

        if isinstance(error, MutinyError):
            say(f"mutiny: {error}")
            return error.exit_code
        if isinstance(error, BrokenPipeError) and reader_gone():
            return drop_output()
        return crashed(error, say)


def _say(line: str) -> None:
    """One line to whoever still listens."""
    from mutiny.report.escape import plain

    try:
        sys.stderr.write(f"{plain(line)}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass


def _call(words: list[str]) -> Any:
    """Plain words at once; everything else through click."""
    from mutiny.cli.words import NotPlain

    if words and COMPLETION not in os.environ:
        command = find_command(words[0])
        if command is not None:
            try:
                return command.call(words[1:])
            except NotPlain:
                pass
    from mutiny.cli.guide import call

    return call(words)


if __name__ == "__main__":
    sys.exit(main())
