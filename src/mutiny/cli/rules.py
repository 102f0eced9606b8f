"""`mutiny rules`: the promises that are checked."""

from __future__ import annotations

from dataclasses import asdict

import click

from mutiny.cli.options import json_option
from mutiny.cli.output import echo


@click.command("rules")
@json_option
def command(as_json: bool) -> int:
    """List the promises of the contracts; their ids are stable names for replays and reports."""
    from mutiny.contracts.catalogue import all_rules

    rules = list(all_rules().values())
    if as_json:
        from mutiny.cli.envelope import tell

        tell("rules", 0, {"rules": [asdict(rule) for rule in rules]})
        return 0
    for rule in rules:
        echo(f"{rule.id:<32} {rule.category:<20} {rule.promise}")
    return 0
