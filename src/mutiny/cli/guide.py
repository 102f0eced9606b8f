"""The command line with click: help, completions, and mistakes in the words that were given."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import click

from mutiny.cli.envelope import JSON, tell_error
from mutiny.cli.main import ALIASES, COMMANDS, COMPLETION, find_command

EXIT_CODES = """\b
Exit codes:
  0  clean                     4  timeout or no convergence
  1  bug found                70  Mutiny itself failed
  2  usage                   130  interrupted (143: terminated)
  3  inconclusive            141  nobody reads the output any more

\b
Begin with:
  mutiny run --all-scenarios                    everything on longboat, one line each
  mutiny scenarios                              what can be run
  mutiny run --plant doctor-lies                find a planted bug, up to its report
  mutiny explore --contract workers --seed 7    random, model-guided, with faults
"""


class _Lazy(click.Group):
    """Loads a command's module when the command is called."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        command = find_command(name)
        return None if command is None else command.built()

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if (
            args
            and args[0] not in COMMANDS
            and args[0] not in ALIASES
            and not args[0].startswith("-")
        ):
            import difflib

            close = difflib.get_close_matches(args[0], [*COMMANDS, *ALIASES], n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", context)
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_text) for name, (_, help_text) in COMMANDS.items()])


@click.command(
    cls=_Lazy, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="mutiny", prog_name="mutiny")
def mutiny() -> None:
    """Break multi-agent coding orchestrators on purpose, and hand back the shortest sequence that
    does it.

    Mutiny drives an orchestrator through its own commands inside a box, injects faults, checks
    after every step that each promise still holds and that every piece of work is accounted for. No
    model is ever called.
    """


def call(words: list[str]) -> Any:
    """Read the words with click and do what they say."""
    if COMPLETION in os.environ:
        return mutiny.main(args=words, prog_name="mutiny")
    try:
        # Not `main`: it would end a command whose output nobody reads with the code of a bug.
        with mutiny.make_context("mutiny", list(words)) as context:
            return mutiny.invoke(context)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        with contextlib.suppress(OSError):  # nobody listens
            error.show()
        if JSON in words:
            tell_error(words, 2, error.format_message())
        return 2
