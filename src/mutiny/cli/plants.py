"""`mutiny plants`: the bugs that can be planted into longboat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mutiny.cli import values
from mutiny.cli.options import json_option
from mutiny.cli.output import echo, echo_wrapped

if TYPE_CHECKING:
    from longboat.plants import Plant


@click.command("plants")
@click.option("--target", type=values.TARGET, help="Only those that this target can have.")
@json_option
def command(target: str | None, as_json: bool) -> int:
    """List the bugs that can be planted into longboat, each with its class and where it was seen.

    Each is a small change of a real code path, off by default: `mutiny run --plant NAME` switches
    one on.

    \b
    Examples:
      mutiny plants --target longboat-board
      mutiny run --scenario honest_doctor --plant doctor-lies
    """
    from longboat.plants import PLANTS
    from mutiny.targets.plants import targets_of
    from mutiny.targets.registry import find_spec

    if target is not None:
        find_spec(target)  # refuses a name that is none
    chosen = [one for one in PLANTS.values() if target is None or target in targets_of(one)]
    if as_json:
        from mutiny.cli.envelope import tell

        tell("plants", 0, {"plants": [plant._asdict() for plant in chosen]}, target=target)
        return 0
    for plant in chosen:
        board = f" board {' '.join(plant.boards)};" if plant.boards else ""
        echo_wrapped(f"{plant.name:<34} {plant.failure_class:<20}{board} {plant.source}", 35)
        echo_wrapped(f"    {plant.what}")
        found = found_by(plant, targets_of(plant)[0])
        if found:
            echo(f"    Found by: mutiny {found}")
    echo(f"{len(chosen)} plants")
    return 0


def found_by(plant: Plant, target: str) -> str:
    """The command that finds it, where its table says one."""
    on = f"--target {target} --plant {plant.name}"
    if plant.sweep:
        kind, scenario, at = plant.sweep.split()
        return f"sweep {kind} --scenario {scenario} --at {at} {on}"
    return f"run --scenario {plant.scenario} {on}" if plant.scenario else ""
