"""The command `mutiny`: one module a verb, loaded only when it is used.

`mutiny --help` must stay cheap, so this module imports nothing but click and knows each command
only by its name, its module and one line of help.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

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
    "plants": ("plants", "List the bugs that can be planted into longboat."),
    "rules": ("rules", "List the promises that are checked."),
    "doctor": ("doctor", "Say what this machine can isolate and inject."),
}
ALIASES = {"shrink": "minimise", "minimize": "minimise"}

EXIT_CODES = """\b
Exit codes:
  0  clean                     4  timeout or no convergence
  1  bug found                 5  a gate failed
  2  usage                    70  Mutiny itself failed
  3  inconclusive            130  interrupted

\b
Begin with:
  mutiny run --all-scenarios                    the seven scenarios on longboat
  mutiny run --plant doctor-lies                find a planted bug, up to its report
  mutiny explore --contract workers --seed 7    random, model-guided, with faults
"""


class _Lazy(click.Group):
    """Loads a command's module when the command is called."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        name = ALIASES.get(name, name)
        if name not in COMMANDS:
            return None
        module = import_module(f"mutiny.cli.{COMMANDS[name][0]}")
        command: click.Command = module.command
        return command

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


def main(argv: list[str] | None = None) -> int:
    """Entry point; every outcome becomes an exit code in this one place."""
    try:
        answer: Any = mutiny.main(args=argv, prog_name="mutiny", standalone_mode=False)
        return answer if isinstance(answer, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("interrupted; the box is gone, what was written stays", err=True)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except Exception as error:
        from mutiny.errors import MutinyError

        if isinstance(error, MutinyError):
            click.echo(f"mutiny: {error}", err=True)
            return error.exit_code
        raise


if __name__ == "__main__":
    sys.exit(main())
