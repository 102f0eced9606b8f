"""`mutiny plants`: the bugs that can be planted into longboat."""

from __future__ import annotations

import click

from mutiny.cli.options import json_option
from mutiny.cli.output import echo


@click.command("plants")
@json_option
def command(as_json: bool) -> int:
    """List the bugs that can be planted into longboat, each with its class and where it was seen.

    Each is a small change of a real code path, off by default: `mutiny run --plant NAME` switches
    one on.
    """
    from longboat.plants import PLANTS

    if as_json:
        from mutiny.cli.envelope import tell

        tell("plants", 0, {"plants": [plant._asdict() for plant in PLANTS.values()]})
        return 0
    for plant in PLANTS.values():
        board = f" board {' '.join(plant.boards)};" if plant.boards else ""
        echo(f"{plant.name:<34} {plant.failure_class:<20}{board} {plant.source}")
        echo(f"    {plant.what}")
        if plant.sweep:
            kind, scenario, at = plant.sweep.split()
            echo(f"    Found by: mutiny sweep {kind} --scenario {scenario} --at {at}")
        elif plant.scenario:
            echo(f"    Found by: mutiny run --scenario {plant.scenario} ({plant.rule})")
    echo(f"{len(PLANTS)} plants")
    return 0
