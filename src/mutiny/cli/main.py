"""The command `mutiny`: one module a verb, loaded only when it is used, and one place for exit codes."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable
from typing import Any

import click

from mutiny import stopping
from mutiny.cli.lazy_group import LazyCommand, LazyGroup
from mutiny.cli.output import Documents

COMMANDS = {
    name: LazyCommand(f"mutiny.cli.{name}", about)
    for name, about in {
        "run": "Run scenarios against a target and stop at the first broken promise.",
        "explore": "Run sequences that the model allows, with faults mixed in.",
        "sweep": "Break one operation at every system call.",
        "race": "Let commands compete: every order, then many rounds.",
        "load": "Many commands: cost, growth, graphs, payloads, bursts.",
        "soak": "Hours of a long session in minutes, under faults.",
        "campaign": "Carry out a matrix of runs, on many slots or machines.",
        "experiment": "Run experiments in YAML: steady state, method, rollback.",
        "accept": "Run acceptance goals: matrix, gates, quarantine.",
        "replay": "Repeat a journal or a minimal replay step by step.",
        "minimise": "Find the shortest sequence that breaks the same rule.",
        "report": "Show the report of a run again, also as a page.",
        "corpus": "Keep what failed once: run first, a guard once mended.",
        "known": "Keep findings that are known: they no longer stop a run.",
        "ci": "Write a workflow file that runs Mutiny in a CI.",
        "mcp": "Serve these verbs as MCP tools, for agents.",
        "serve": "Show all runs in a browser, and follow what runs now.",
        "target": "List, check and create targets.",
        "scenarios": "List the scenarios by contract, one line each.",
        "plants": "List the bugs that can be planted into longboat.",
        "rules": "List the promises that are checked.",
        "doctor": "Say what this machine can isolate and inject.",
    }.items()
}
OBJECTS_PER_COLLECTION = 50_000
"""What a command loads stays to its end: to look through it for garbage each 700 objects finds nothing."""
ALIASES = {"shrink": "minimise", "minimize": "minimise"}
COMPLETION = "_MUTINY_COMPLETE"
"""A shell asks click for completions through this variable."""
EXIT_CODES = """\b
Exit codes:
  0  clean                     4  timeout or no convergence
  1  bug found                70  Mutiny itself failed
  2  usage                   130  interrupted (143: terminated)
  3  inconclusive            141  nobody reads the output any more
  5  a gate failed: of `mutiny accept`, or slower than `--baseline`

\b
Begin with:
  mutiny run --all-scenarios                    everything on longboat, one line each
  mutiny scenarios                              what can be run
  mutiny run --scenario honest_doctor --plant doctor-lies
                                                find a planted bug, up to its report
  mutiny explore --contract workers --seed 7    random, model-guided, with faults
"""


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    aliases=ALIASES,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="mutiny", prog_name="mutiny")
def mutiny() -> None:
    """Break multi-agent coding orchestrators on purpose, and hand back the shortest sequence that
    does it.

    Mutiny drives an orchestrator through its own commands inside a box, injects faults, checks
    after every step that each promise still holds and that every piece of work is accounted for. No
    model is ever called.
    """


def main(argv: list[str] | None = None) -> int:
    """Entry point; without `argv` as the program, which also takes the signals that ask it to stop."""
    if argv is not None:
        return _outcome(argv)
    gc.set_threshold(OBJECTS_PER_COLLECTION)
    stopping.listen()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # whoever started Mutiny has closed it
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  to the end
    try:
        code = _outcome(sys.argv[1:])
    except stopping.Stopped:  # between the last word and the end
        code = stopping.exit_code()
    finally:
        stopping.ignore()
    if stopping.asked():
        stopping.leave(code)
    return code


def _outcome(words: list[str]) -> int:
    """Every outcome becomes an exit code in this one place; a program that listens hears why."""
    told: list[str] = []
    before = Documents.printed

    def say(line: str) -> None:
        told.append(line)
        _say(line)

    code = _result(words, say, told)
    if told and "--json" in words and Documents.printed == before:
        from mutiny.cli.envelope import tell_error

        tell_error(_verb_of(words), code, told[-1])
    return code


def _verb_of(line: list[str]) -> str:
    """The verb of a command line, with its second word where it is a group."""
    command = mutiny.load(line[0]) if line else None
    if command is None:
        return ""
    name = mutiny.aliases.get(line[0], line[0])
    second = line[1] if len(line) > 1 else ""
    return f"{name} {second}" if second in getattr(command, "commands", ()) else name


def _result(words: list[str], say: Callable[[str], None], told: list[str]) -> int:
    try:
        answer = _call(words)
        stopping.obey()
        return answer if isinstance(answer, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        with contextlib.suppress(OSError):  # nobody listens
            error.show()
        told.append(error.format_message())
        return 2
    except click.ClickException as error:
        say(_mistake(error, words))
        return 2
    except (KeyboardInterrupt, click.Abort):
        say(f"{stopping.reason()}; the box is gone, what was written stays")
        return stopping.exit_code()
    except Exception as error:  # noqa: BLE001  nothing may end as "bug found" but a bug
        from mutiny.cli.ending import crashed, drop_output, reader_gone, too_long
        from mutiny.errors import MutinyError

        if name := too_long(error, words):
            say(f"mutiny: that name is too long for a file: {name:.60}…")
            return 2
        if isinstance(error, MutinyError):
            say(f"mutiny: {error}")
            return error.exit_code
        if isinstance(error, BrokenPipeError) and reader_gone():
            return drop_output()
        return crashed(error, say)


def _mistake(error: click.ClickException, words: list[str]) -> str:
    """What is wrong with a command line, and where it is told what is right, on one line."""
    context = getattr(error, "ctx", None)
    path = f"mutiny {_verb_of(words)}".strip() if context is None else context.command_path
    message = " ".join(error.format_message().split())
    end = "" if message.endswith((".", "?", ")")) else "."
    return f"mutiny: {message}{end} See: {path} --help"


def _say(line: str) -> None:
    """One line to whoever still listens."""
    from mutiny.report.escape import unobeyed
    from mutiny.report.screen import wrapped

    with contextlib.suppress(OSError, ValueError, AttributeError):
        for part in unobeyed(line).splitlines():
            for shown in wrapped(part, sys.stderr):
                sys.stderr.write(f"{shown}\n")
        sys.stderr.flush()


def _call(words: list[str]) -> Any:
    """Do what the words say."""
    if COMPLETION in os.environ:
        return mutiny.main(args=words, prog_name="mutiny")
    try:
        # Not `main`: it would end a command whose output nobody reads with the code of a bug.
        with mutiny.make_context("mutiny", list(words)) as context:
            return mutiny.invoke(context)
    except click.exceptions.Exit as stop:
        return stop.exit_code
