"""`mutiny known`: findings that somebody has looked at, and that no longer stop a run."""

from __future__ import annotations

import datetime
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from mutiny.cli.options import json_option
from mutiny.cli.output import echo, echo_wrapped

LONGEST_DAYS = 366


@click.group("known")
def command() -> None:
    """Known findings of a target: counted and shown, and the run goes on behind them.

    They stand in a file of [[known]] entries that `mutiny run`, `explore`, `sweep`, `race` and `campaign`
    take with --known, or find beside your target file (my.toml: my.known.toml).

    \b
    Examples:
      mutiny known add chaos_runs/latest --reason "seen" --file my.known.toml
      mutiny explore --target my.toml --seeds 60 --known my.known.toml
      mutiny known list my.known.toml
    """


@command.command("add")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--reason", required=True, help="Why it is known: what somebody found out.")
@click.option("--link", default="", help="Where it is being mended.")
@click.option(
    "--days",
    type=click.IntRange(1, LONGEST_DAYS),
    default=90,
    show_default=True,
    help="After so many days somebody has to look again.",
)
@click.option(
    "--file",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("known.toml"),
    show_default=True,
    help="The file that gets the entry.",
)
@json_option
def add(run: Path, reason: str, link: str, days: int, path: Path, as_json: bool) -> int:
    """Write the finding of a failed run into a file of known findings."""
    from mutiny.cli.envelope import tell
    from mutiny.contracts.catalogue import all_rules
    from mutiny.engine.known import Known, load_known, written
    from mutiny.errors import UsageError

    error = _error(run)
    cause: dict[str, Any] = error.get("cause") or {}
    if not error.get("rule") or not cause:
        raise UsageError(f"{run}: this run broke no rule; there is nothing to be known")
    today = datetime.datetime.now(datetime.UTC).date()
    entry = Known(
        rule=str(error["rule"]),
        reason=reason,
        expires=(today + datetime.timedelta(days=days)).isoformat(),
        said=tuple(map(str, cause["said"])),
        operation=str(cause["operation"]),
        link=link,
    )
    problem = entry.problem(today)
    if problem is not None:
        raise UsageError(f"--reason: {problem}")
    before = path.read_text("utf-8") if path.exists() else ""
    # What is in it has to be readable before it grows, whether or not it has expired.
    known = load_known(path, datetime.date.min, all_rules()).entries if before else ()
    same = next((one for one in known if one.names_the_same(entry)), None)
    if same is None:
        path.write_text(f"{before.rstrip()}\n\n{written(entry)}".lstrip(), "utf-8")
    if as_json:
        tell("known add", 0, {"entries": [asdict(same or entry)]})
    elif same is not None:
        echo(f"{path}: {same.rule} is there already, until {same.expires}; nothing was written")
    else:
        echo(f"{path}: {entry.rule}, until {entry.expires}")
        if not path.name.endswith(".known.toml"):  # the others are found beside their target file
            echo(f"Runs go on behind it with --known {path}")
    return 0


@command.command("list")
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path), default=Path("known.toml"))
@json_option
def listed(path: Path, as_json: bool) -> int:
    """Show a file of known findings (default: known.toml); one that has expired is an error."""
    from mutiny.cli.envelope import tell
    from mutiny.contracts.catalogue import all_rules
    from mutiny.engine.known import load_known

    found = load_known(path, datetime.datetime.now(datetime.UTC).date(), all_rules())
    if as_json:
        tell("known list", 0, {"entries": [asdict(entry) for entry in found.entries]})
        return 0
    for entry in found.entries:
        echo_wrapped(f"{entry.rule}  until {entry.expires}  {entry.reason}  {entry.link}".rstrip())
        said = "; ".join(entry.said) or "whatever is said"
        echo_wrapped(f"    at {entry.operation or 'any step'}: {said}", 8)
    return 0


def _error(run: Path) -> dict[str, Any]:
    """What the summary of a run tells about its failure."""
    from mutiny import documents
    from mutiny.engine.rundir import RunDirectory
    from mutiny.errors import UsageError

    summary = documents.read_json(RunDirectory(run).summary_path, "summary of the run")
    error = summary.get("error") if isinstance(summary, dict) else None
    if not isinstance(error, dict):
        raise UsageError(f"{run}: this run did not fail; there is nothing to be known")
    return error
