"""`mutiny doctor`: what this machine can isolate and inject, tried live."""

from __future__ import annotations

import json
from dataclasses import asdict

import click


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="A JSON list.")
def command(as_json: bool) -> int:
    """Try live what this machine can do, and say what is not available and why.

    Exit 0 when runs are possible (a box, tmux and git), 3 when they are not.
    """
    from mutiny.box.isolation import TECHNIQUES
    from mutiny.box.probes import probe_all

    probes = probe_all()
    by_name = {probe.name: probe for probe in probes}
    boxed = next((t.name for t in TECHNIQUES if t.probe() is None), None)
    able = boxed is not None and all(
        by_name[name].available for name in ("tmux", "git") if name in by_name
    )
    if as_json:
        click.echo(
            json.dumps(
                {"able": able, "box": boxed, "probes": [asdict(p) for p in probes]}, indent=2
            )
        )
        return 0 if able else 3
    for probe in probes:
        mark = "yes" if probe.available else "no "
        click.echo(f"{mark}  {probe.name:<26} {probe.duration_ms:6.1f} ms  {probe.detail}")
        if not probe.available:
            click.echo(f"     {'':<26} needed for: {probe.what_for}")
    click.echo(f"box: {boxed or 'none of the techniques works here'}")
    return 0 if able else 3
