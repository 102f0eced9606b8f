"""`mutiny ci`: Mutiny in a CI."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import click

from mutiny.cli import values
from mutiny.cli.options import json_option
from mutiny.contracts.catalogue import default_for

SAFE = re.compile(r"[A-Za-z0-9./][\w./@:=+,\[\]<>~-]*")
"""What may stand in the workflow as it is: nothing that YAML or a shell would read as its own."""


@click.group("ci")
def command() -> None:
    """Mutiny in a CI.

    Every verb that judges takes --junit FILE. Where the environment is GitHub's (GITHUB_ACTIONS), what
    did not pass becomes an annotation and a row of the job's summary by itself.

    \b
    Examples:
      mutiny ci init --target my.toml --bin ./my-program
      mutiny run --target my.toml --all-scenarios --junit junit.xml
    """


@command.command("init")
@click.argument("file", type=values.FILE, default=Path(".github/workflows/mutiny.yml"))
@click.option(
    "--target",
    type=values.TARGET,
    default=default_for("run").default_target,
    show_default=True,
    help="A target's name, or its TOML file.",
)
@click.option("--bin", "program", default="", metavar="PATH", help="The target's program.")
@click.option(
    "--install",
    default="mutiny",
    show_default=True,
    help="What pip installs: a name, a wheel, a URL.",
)
@click.option("--corpus", default="corpus", show_default=True, help="The folder of kept replays.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option
def init_command(
    file: Path, target: str, program: str, install: str, corpus: str, force: bool, as_json: bool
) -> int:
    """Write a GitHub workflow: set up, what failed once, scenarios, exploration, the report site."""
    from mutiny.cli.templates import write_template
    from mutiny.errors import UsageError
    from mutiny.targets.registry import find_spec

    find_spec(target)  # a workflow for a target that nobody can load would fail in every job
    text = files("mutiny.cli").joinpath("workflow.yml.txt").read_text(encoding="utf-8")
    given = {"TARGET": target, "PROGRAM": program, "INSTALL": install, "CORPUS": corpus}
    for word, value in given.items():
        if value and not SAFE.fullmatch(value):
            raise UsageError(
                f"{value!r} cannot stand in a workflow file as it is; write it yourself"
            )
        text = text.replace(f"@{word}@", value)
    then = "commit it, and look at the job's summary"
    return write_template("ci init", file, text, then, force=force, as_json=as_json)
