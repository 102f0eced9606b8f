"""`mutiny rules`: the promises that are checked."""

from __future__ import annotations

from dataclasses import asdict

import click

from mutiny.cli import values
from mutiny.cli.options import json_option
from mutiny.cli.output import echo_rows


@click.command("rules")
@click.option("--contract", type=values.CONTRACT, help="Only those of one contract.")
@json_option
def command(contract: str | None, as_json: bool) -> int:
    """List the promises of the contracts; their ids are stable names for replays and reports."""
    from mutiny.contracts.catalogue import all_rules, contract_named

    rules = list(all_rules().values())
    if contract is not None:
        contract_named(contract)  # refuses a name that is none
        rules = [rule for rule in rules if rule.id.partition(".")[0] == contract]
    if as_json:
        from mutiny.cli.envelope import tell

        tell("rules", 0, {"rules": [asdict(rule) for rule in rules]})
        return 0
    echo_rows((rule.id, f"{rule.category}: {rule.promise}") for rule in rules)
    return 0
