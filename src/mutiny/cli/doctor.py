"""`mutiny doctor`: what this machine can isolate and inject, tried live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from mutiny.cli.options import json_option
from mutiny.cli.output import echo, echo_rows

if TYPE_CHECKING:
    from mutiny.faults.base import Availability


@click.command("doctor")
@json_option
def command(as_json: bool) -> int:
    """Try live what this machine can do, and say what is not available and why.

    Exit 0 when runs are possible (a box, tmux and git), 3 when they are not.
    """
    from mutiny.box.isolation import TECHNIQUES
    from mutiny.box.probes import probe_all
    from mutiny.faults.catalogue import by_family, survey_machine, survey_without_box

    probes = probe_all()
    by_name = {probe.name: probe for probe in probes}
    boxed = next((t.name for t in TECHNIQUES if t.probe() is None), None)
    able = boxed is not None and all(
        by_name[name].available for name in ("tmux", "git") if name in by_name
    )
    faults = survey_machine() if boxed is not None else survey_without_box()
    if as_json:
        document: dict[str, object] = {
            "able": able,
            "box": boxed,
            "probes": [asdict(p) for p in probes],
            "faults": {
                family: [{**asdict(item), "available": item.available} for item in items]
                for family, items in by_family(faults).items()
            },
            "faults_available": sum(item.available for item in faults),
            "faults_known": len(faults),
        }
        from mutiny.cli.envelope import tell

        tell("doctor", 0 if able else 3, document)
        return 0 if able else 3
    for probe in probes:
        needed = "" if probe.available else f"; needed for: {probe.what_for}"
        echo_rows([(_mark(probe.available), f"{probe.name:<17}", f"{probe.detail}{needed}")])
    echo(f"box: {boxed or 'none of the techniques works here'}")
    _show_faults(faults)
    return 0 if able else 3


def _mark(available: bool) -> str:
    return "yes" if available else "no "


def _show_faults(faults: Sequence[Availability]) -> None:
    """Every fault by family: by which technique, or why not; and the share that is available."""
    from mutiny.faults.catalogue import by_family

    for family, items in by_family(faults).items():
        echo(f"\nfaults: {family}")
        for item in items:
            name = item.fault.partition(": ")[2]
            reason = "" if item.reason is None else f": {item.reason}"
            echo_rows([(_mark(item.available), f"{name:<23}", f"{item.technique}{reason}")])
    able = sum(item.available for item in faults)
    echo(f"\n{able} of {len(faults)} faults available ({able / len(faults):.0%})")
