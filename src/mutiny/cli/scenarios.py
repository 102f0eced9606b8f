"""`mutiny scenarios`: which scenarios there are."""

from __future__ import annotations

import click

from mutiny.cli import values
from mutiny.cli.options import json_option
from mutiny.cli.output import echo, echo_rows


@click.command("scenarios")
@click.option("--contract", type=values.CONTRACT, help="Only those of one contract.")
@click.option("--target", type=values.TARGET, help="Only those that this target runs.")
@json_option
def command(contract: str | None, target: str | None, as_json: bool) -> int:
    """List the scenarios by contract, each with one line about it.

    \b
    Examples:
      mutiny scenarios
      mutiny scenarios --target longboat-broker
      mutiny run --scenario merge_conflict
    """
    from mutiny.contracts.catalogue import scenarios_about, with_targets

    chosen = [contract] if contract is not None else list(with_targets())
    found = {name: dict(scenarios_about(name)) for name in chosen}
    if target is not None:
        found = _of_target(target, found)
    if as_json:
        rows = [
            {"name": name, "contract": contract_name, "about": about}
            for contract_name, scenarios in found.items()
            for name, about in scenarios.items()
        ]
        from mutiny.cli.envelope import tell

        tell("scenarios", 0, {"scenarios": rows}, target=target)
        return 0
    for contract_name, scenarios in found.items():
        echo(f"{contract_name}: {len(scenarios)} scenarios")
        echo_rows(scenarios.items(), indent=2)
    return 0


def _of_target(target: str, found: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Those that a target runs: its file leaves out what makes no sense for it."""
    from mutiny.targets.registry import find_spec

    spec, _ = find_spec(target)
    about = found.get(spec.contract, {})
    runs = spec.make_contract("double").scenarios
    return {spec.contract: {name: about[name] for name in runs if name in about}}
