"""`mutiny minimise`: the shortest sequence that breaks the same rule."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mutiny.cli import values
from mutiny.cli.options import (
    DEFAULT_ROOT,
    bin_option,
    default_target,
    isolation_option,
    json_option,
    make_bench,
)
from mutiny.cli.output import echo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutiny.engine.replay import Replay
    from mutiny.modes.shrinking import Shrunk

MOST_TRIES = 1000
"""Of one candidate; `--confirm` asks for them."""


@click.command("minimise")
@click.argument("source", metavar="RUN|FILE", type=values.PATH)
@click.option(
    "--rule", type=values.RULE, help="The rule to keep broken; default: the one in the file."
)
@click.option(
    "--trials",
    type=values.COUNT,
    default=120,
    show_default=True,
    help="At most so many trial runs.",
)
@click.option(
    "--seconds",
    type=values.SECONDS,
    default=300.0,
    show_default=True,
    help="At most so many seconds.",
)
@click.option(
    "--confirm",
    default="1/1",
    show_default=True,
    metavar="K/N",
    help="A candidate must fail K of N times.",
)
@click.option("--output", type=values.FILE, help="Where to write it.")
@click.option("--target", type=values.TARGET, help="Another target than the one in the file.")
@bin_option
@click.option("--plant", type=values.PLANT, help="Another plant than the one in the file.")
@isolation_option
@json_option
@click.option("--verbose", is_flag=True, help="Show what each pass took and won.")
def command(
    source: Path,
    rule: str | None,
    trials: int,
    seconds: float,
    confirm: str,
    output: Path | None,
    target: str | None,
    program: str | None,
    plant: str | None,
    isolation: str | None,
    as_json: bool,
    verbose: bool,
) -> int:
    """Shrink a run or a replay file: any subsequence that the model allows, then arguments, workers
    and waits.

    \b
    Examples:
      mutiny minimise chaos_runs/latest
      mutiny minimise bug.json --confirm 2/3 --seconds 600
    """
    from mutiny.cli.options import load_sequence, seeing, trials_at_once
    from mutiny.cli.progress import minimising
    from mutiny.engine.minimise import Budget
    from mutiny.engine.rundir import RunDirectory
    from mutiny.errors import UsageError
    from mutiny.kit.rules import canonical
    from mutiny.modes.shrinking import shrink
    from mutiny.targets.kit.requirements import refuse_lacking

    times, of = _parse_confirm(confirm)
    journal = source / "operations.jsonl" if source.is_dir() else source
    replay = load_sequence(journal if journal.exists() else source, target)
    wanted = canonical(rule) if rule else replay.expect
    if wanted is None:
        raise UsageError(f"{source}: no rule was broken in it; name one with --rule")
    name = target or replay.target or default_target(replay)
    planted = replay.plant if plant is None else plant
    made = make_bench(name, program, planted, "double", isolation, DEFAULT_ROOT, None)
    bench = seeing(made, replay)
    refuse_lacking("this sequence", replay.operations, replay.techniques, isolation)
    scratch = RunDirectory.create(DEFAULT_ROOT, latest=False)
    try:
        budget = Budget(trials, seconds, times, of, trials_at_once())
        with minimising(budget, quiet=as_json) as line:
            what = (bench.target, replay.operations, wanted, replay.seed)
            found = shrink(*what, scratch.path, budget, line.minimise)
    finally:
        scratch.discard()
    if found.seen is not None:
        told = f"it does not break {wanted} here: {found.reproduced}, got {found.seen}"
        echo(f"mutiny: {source}: {told}", err=True)
        if as_json:
            from mutiny.cli.envelope import tell_error

            tell_error("minimise", 3, f"{source}: {told}")
        return 3
    shortest = replace(replay, expect=wanted, target=name, plant=planted, **found.told())
    place = output or (source if source.is_dir() else source.parent) / "minimal_replay.json"
    RunDirectory(place.parent).write_json(place, shortest.as_json())
    _tell(shortest, len(replay.operations), found, place, as_json=as_json, verbose=verbose)
    return 0


def _tell(
    replay: Replay, before: int, found: Shrunk, place: Path, *, as_json: bool, verbose: bool
) -> None:
    """What was found, for a program or for a person."""
    from mutiny.engine.replay import python_form

    if as_json:
        from mutiny.cli.envelope import tell

        document = {
            "rule": replay.expect,
            "from": before,
            "to": len(found.operations),
            "runs": found.runs,
            "seconds": round(found.seconds, 1),
            "complete": found.complete,
            "passes": {name: asdict(one) for name, one in found.passes.items()},
            "reproduced": found.reproduced.as_json(),
            "without_plant": found.without_plant and found.without_plant.as_json(),
            "file": str(place),
        }
        tell("minimise", 0, document, target=replay.target, plant=replay.plant, seed=replay.seed)
        return
    echo(python_form(found.operations, mark_last=replay.vouched))
    echo(
        f"\n{before} -> {len(found.operations)} operations in {found.runs} runs, "
        f"{found.seconds:.0f}s; {replay.standing}\nWritten to {place}"
    )
    if verbose:
        echo("\n".join(_table(found)))


def _table(found: Shrunk) -> Iterator[str]:
    """What each pass of minimising took and won."""
    yield f"\n{'pass':<20} {'trials':>7} {'won':>5}"
    for name, one in found.passes.items():
        yield f"{name:<20} {one.trials:>7} {one.won:>5}"


def _parse_confirm(text: str) -> tuple[int, int]:
    from mutiny.errors import UsageError

    try:
        times, of = (int(part) for part in text.split("/"))
    except ValueError:
        raise UsageError(f"--confirm {text!r}: write K/N, for example 2/3") from None
    if not 1 <= times <= of <= MOST_TRIES:
        raise UsageError(f"--confirm {text!r}: 1 <= K <= N <= {MOST_TRIES}")
    return times, of
